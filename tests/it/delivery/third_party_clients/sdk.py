"""The Things Network's own Python client, as it was published: what people's programs do with it.

Told by the environment: DISCOVERY (address), PLAIN (no TLS there), APP_ID, ACCESS_KEY.
"""

import json
import os
import queue

import grpc
import ttn.github_com.TheThingsNetwork.api.handler.handler_pb2 as messages
import ttn.github_com.TheThingsNetwork.api.handler.handler_pb2_grpc as services
import ttn.github_com.TheThingsNetwork.api.protocol.lorawan.device_address_pb2 as lorawan
import ttn.github_com.TheThingsNetwork.api.protocol.lorawan.device_address_pb2_grpc as addresses
from ttn import DiscoveryClient, HandlerClient

DISCOVERY, PLAIN = os.environ["DISCOVERY"], os.environ["PLAIN"] == "yes"
APP_ID, ACCESS_KEY = os.environ["APP_ID"], os.environ["ACCESS_KEY"]
DECODER = "function Decoder(bytes, port) { return { first: bytes[0], port: port }; }"
ENCODER = "function Encoder(fields, port) { return [fields.led, port]; }"
METADATA = [("key", ACCESS_KEY)]
TRIES = 60


def open_handler(access_key=ACCESS_KEY):
    return HandlerClient(APP_ID, access_key, discovery_address=DISCOVERY, insecure_channel=PLAIN)


def fails(call, code):
    """Whether a call is refused with a gRPC code, in the words of the client."""
    try:
        call()
    except RuntimeError as error:
        assert code in str(error), error
        return True
    return False


def discover():
    discovery = DiscoveryClient(DISCOVERY, insecure_channel=PLAIN)
    (handler,) = discovery.get_all("handler")
    assert discovery.get("handler", handler.id) == handler
    assert [served.app_id for served in handler.metadata] == [APP_ID]
    found = discovery.get_by_app_id(APP_ID)
    assert (found.id, len(found.metadata)) == (handler.id, 0)
    assert found.certificate.startswith("-----BEGIN CERTIFICATE-----")
    assert not found.mqtt_address.startswith("mqtt")
    return handler


def functions(application):
    application.set_custom_payload_functions(decoder=DECODER, encoder=ENCODER)
    kept = application.get()
    assert (kept.payload_format, kept.decoder, kept.encoder, kept.validator) == ("custom", DECODER, ENCODER, "")
    application.set_payload_format("cayennelpp")
    assert (application.get().payload_format, application.get().decoder) == ("cayennelpp", "")
    assert fails(lambda: application.set_custom_payload_functions(decoder="function ("), "INVALID_ARGUMENT")
    application.set_custom_payload_functions(decoder=DECODER, encoder=ENCODER)


def devices(application):
    assert list(application.devices()) == []
    device = {
        "description": "by the door",
        "appEui": "70B3D57ED0000001",
        "devEui": "0102030405060708",
        "appKey": "2B7E151628AED2A6ABF7158809CF4F3C",
        "devAddr": "26000001",
        "nwkSKey": "11" * 16,
        "appSKey": "22" * 16,
        "latitude": 52.375,
        "longitude": 4.875,
        "altitude": -3,
        "uses32BitFCnt": True,
        "attributes": {"floor": "3"},
    }
    for dev_id in ["dev-2", "dev-1"]:
        application.register_device(dev_id, dict(device, devEui="010203040506070" + dev_id[-1]))
    listed = application.devices()
    assert [device.dev_id for device in listed] == ["dev-1", "dev-2"]
    kept = application.device("dev-1")
    assert kept.lorawan_device.dev_eui.hex() == "0102030405060701"
    assert kept.lorawan_device.app_key.hex().upper() == device["appKey"]
    assert kept.lorawan_device.activation_constraints == "local"
    assert (kept.latitude, kept.altitude, dict(kept.attributes)) == (52.375, -3, {"floor": "3"})
    application.update_device("dev-1", {"description": "by the window", "fCntUp": 7})
    changed = application.device("dev-1")
    assert (changed.description, changed.lorawan_device.f_cnt_up) == ("by the window", 7)
    assert changed.lorawan_device.app_key == kept.lorawan_device.app_key
    application.delete_device("dev-2")
    assert [device.dev_id for device in application.devices()] == ["dev-1"]
    assert fails(lambda: application.device("dev-2"), "NOT_FOUND")
    taken = lambda: application.register_device("dev-3", dict(device, devEui="0102030405060701"))
    assert fails(taken, "ALREADY_EXISTS")


def messages_come_and_go(handler, application):
    uplinks, connected, sent = queue.Queue(), queue.Queue(), queue.Queue()
    data = handler.data()
    data.set_uplink_callback(lambda message, client: uplinks.put(message))
    data.set_connect_callback(lambda connection, client: connected.put(connection))
    data.set_downlink_callback(lambda number, client: sent.put(number))
    data.connect()
    assert connected.get(timeout=60)
    # Nothing tells a program when its subscription counts, so it may take more than one uplink.
    for _ in range(TRIES):
        uplink = messages.SimulatedUplinkMessage(app_id=APP_ID, dev_id="dev-1", payload=b"\x07\x08", port=3)
        application.client.SimulateUplink(uplink, 30, METADATA)
        try:
            message = uplinks.get(timeout=1)
            break
        except queue.Empty:
            continue
    assert (message.app_id, message.dev_id, message.port) == (APP_ID, "dev-1", 3)
    assert (message.payload_raw, message.payload_fields.first, message.payload_fields.port) == ("Bwg=", 7, 3)
    assert message.hardware_serial == "0102030405060701"
    data.send("dev-1", {"led": 1}, port=2, conf=True)
    sent.get(timeout=60)
    data.close()


def calls_that_the_client_does_not_make(announcement, application):
    app = messages.Application(app_id=APP_ID, decoder=DECODER, encoder=ENCODER)
    tried = application.client.DryUplink(messages.DryUplinkMessage(payload=b"\x05", app=app, port=9), 30, METADATA)
    assert (json.loads(tried.fields), tried.valid, tried.payload) == ({"first": 5, "port": 9}, True, b"\x05")
    downlink = messages.DryDownlinkMessage(fields='{"led": 1}', app=app, port=9)
    assert application.client.DryDownlink(downlink, 30, METADATA).payload == b"\x01\x09"
    channel = grpc.secure_channel(
        announcement.net_address, grpc.ssl_channel_credentials(announcement.certificate.encode())
    )
    manager = addresses.DevAddrManagerStub(channel)
    (mapping,) = manager.GetPrefixes(lorawan.PrefixesRequest()).prefixes
    assert (mapping.prefix, list(mapping.usage)[:2]) == ("26000000/20", ["otaa", "abp"])
    address = manager.GetDevAddr(lorawan.DevAddrRequest(usage=["abp", "local"])).dev_addr
    assert address.hex().startswith("26000"), address
    try:
        services.HandlerManagerStub(channel).GetStatus(messages.StatusRequest(), 30)
        assert False, "anybody may see the figures"
    except grpc.RpcError as error:
        assert error.code() == grpc.StatusCode.UNAUTHENTICATED, error


announcement = discover()
assert fails(lambda: open_handler("account.wrong").application().get(), "UNAUTHENTICATED")
handler = open_handler()
application = handler.application()
functions(application)
devices(application)
messages_come_and_go(handler, application)
calls_that_the_client_does_not_make(announcement, application)
application.delete_device("dev-1")
application.unregister()
assert fails(application.get, "NOT_FOUND")
print("done")
