"""A network broker on the code that The Things Network generated for its own, with what sets those of v2 apart: they
sign their tokens themselves, send the token of a call twice, and leave the issuer of access keys out.

Told by the environment: HANDLER (its gRPC address without TLS), HANDLER_ID, HANDLER_PUBLIC_KEY, BROKER_ID, PRIVATE_KEY
(a file), APP_ID, ACCESS_KEY, UPLINK and TEMPLATE (frames), APP_EUI, DEV_EUI, and JOIN_EUI, the device that joins. It
prints its port, waits for a line of input before it sends the uplink, and prints each step that worked.
"""

import os
import queue
import sys
import time
from concurrent import futures

import grpc
import jwt
import ttn.github_com.TheThingsNetwork.api.broker.broker_pb2 as broker
import ttn.github_com.TheThingsNetwork.api.broker.broker_pb2_grpc as broker_grpc
import ttn.github_com.TheThingsNetwork.api.handler.handler_pb2 as handler
import ttn.github_com.TheThingsNetwork.api.handler.handler_pb2_grpc as handler_grpc
from google.protobuf.empty_pb2 import Empty

APP_ID, BROKER_ID, HANDLER_ID = os.environ["APP_ID"], os.environ["BROKER_ID"], os.environ["HANDLER_ID"]
APP_EUI, DEV_EUI, JOIN_EUI = (bytes.fromhex(os.environ[name]) for name in ["APP_EUI", "DEV_EUI", "JOIN_EUI"])
HANDLER_KEY = os.environ["HANDLER_PUBLIC_KEY"]
WAIT_S = 60

uplinks, downlinks, subscribed = queue.Queue(), queue.Queue(), queue.Queue()


def check(context):
    """Verifies the caller by the key that the handler has announced."""
    metadata = {key: value for key, value in context.invocation_metadata()}
    try:
        claims = jwt.decode(metadata["token"], HANDLER_KEY, algorithms=["ES256"], options={"verify_aud": False})
        assert (claims["iss"], metadata["id"], metadata["service-name"]) == (HANDLER_ID, HANDLER_ID, "handler")
    except Exception as error:
        context.abort(grpc.StatusCode.PERMISSION_DENIED, repr(error))


class Broker(broker_grpc.BrokerServicer):
    def Subscribe(self, request, context):
        check(context)
        subscribed.put(True)
        while context.is_active():
            try:
                yield uplinks.get(timeout=0.1)
            except queue.Empty:
                pass

    def Publish(self, request_iterator, context):
        check(context)
        for downlink in request_iterator:
            downlinks.put(downlink)
        return Empty()


def own_token():
    """A token as v2's components sign it for each call."""
    now = int(time.time())
    claims = {"iss": BROKER_ID, "sub": BROKER_ID, "iat": now, "nbf": now, "exp": now + 20}
    with open(os.environ["PRIVATE_KEY"]) as key:
        return jwt.encode(claims, key.read(), algorithm="ES256")


def uplink():
    message = broker.DeduplicatedUplinkMessage(
        payload=bytes.fromhex(os.environ["UPLINK"]), app_id=APP_ID, dev_id="dev-1", app_eui=APP_EUI, dev_eui=DEV_EUI
    )
    message.server_time = time.time_ns()
    message.protocol_metadata.lorawan.data_rate = "SF7BW125"
    message.protocol_metadata.lorawan.coding_rate = "4/5"
    message.protocol_metadata.lorawan.f_cnt = 3
    message.gateway_metadata.add(gateway_id="gateway-1", frequency=868100000)
    template = message.response_template
    template.payload = bytes.fromhex(os.environ["TEMPLATE"])
    template.app_id, template.dev_id, template.app_eui, template.dev_eui = APP_ID, "dev-1", APP_EUI, DEV_EUI
    template.downlink_option.identifier = "router-1:option"
    template.downlink_option.gateway_id = "gateway-1"
    template.downlink_option.protocol_configuration.lorawan.data_rate = "SF9BW125"
    template.downlink_option.protocol_configuration.lorawan.coding_rate = "4/5"
    template.downlink_option.protocol_configuration.lorawan.f_cnt = 20
    template.downlink_option.gateway_configuration.frequency = 869525000
    return message


def join(stub):
    token = own_token()
    metadata = [("token", token), ("token", token)]
    unsigned = bytes([0]) + APP_EUI[::-1] + JOIN_EUI[::-1] + bytes([1, 0, 0, 0, 0, 0])
    about = {"app_id": APP_ID, "dev_id": "joiner", "app_eui": APP_EUI, "dev_eui": JOIN_EUI}
    challenge = broker.ActivationChallengeRequest(payload=unsigned, **about)
    signed = stub.ActivationChallenge(challenge, metadata=metadata).payload
    request = broker.DeduplicatedDeviceActivationRequest(payload=signed, **about)
    request.server_time = time.time_ns()
    request.protocol_metadata.lorawan.data_rate = "SF7BW125"
    request.protocol_metadata.lorawan.coding_rate = "4/5"
    request.activation_metadata.lorawan.rx_delay = 1
    request.gateway_metadata.add(gateway_id="gateway-1", frequency=868100000)
    request.response_template.payload = bytes.fromhex("20000000130000432E0126030100000000")
    request.response_template.downlink_option.identifier = "option"
    accept = stub.Activate(request, metadata=metadata)
    assert len(accept.payload) == 17 and accept.activation_metadata.lorawan.nwk_s_key, accept


def main():
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=8))
    broker_grpc.add_BrokerServicer_to_server(Broker(), server)
    print(server.add_insecure_port("127.0.0.1:0"), flush=True)
    server.start()
    subscribed.get(timeout=WAIT_S)
    print("subscribed", flush=True)
    sys.stdin.readline()
    uplinks.put(uplink())
    downlink = downlinks.get(timeout=WAIT_S)
    assert downlink.downlink_option.identifier == "router-1:option", downlink
    print(downlink.payload.hex().upper(), flush=True)
    channel = grpc.insecure_channel(os.environ["HANDLER"])
    join(handler_grpc.HandlerStub(channel))
    print("joined", flush=True)
    secret = os.environ["ACCESS_KEY"].split(".")[1]
    manager = handler_grpc.ApplicationManagerStub(channel)
    application = manager.GetApplication(handler.ApplicationIdentifier(app_id=APP_ID), metadata=[("key", secret)])
    assert application.app_id == APP_ID, application
    print("done", flush=True)
    server.stop(None)


main()
