"""The Things Network's own generated code and an MQTT client of others against services without any TLS.

The client of v2 itself always dials a handler with TLS, so the calls are made with its stubs.
Told by the environment: DISCOVERY (address), APP_ID, ACCESS_KEY.
"""

import json
import os
import queue

import grpc
import paho.mqtt.client as mqtt
import ttn.github_com.TheThingsNetwork.api.discovery.discovery_pb2 as discovery
import ttn.github_com.TheThingsNetwork.api.handler.handler_pb2 as messages
import ttn.github_com.TheThingsNetwork.api.handler.handler_pb2_grpc as services
import ttn.github_com.TheThingsNetwork.api.protocol.lorawan.device_pb2 as lorawan
from ttn import DiscoveryClient

DISCOVERY, APP_ID, ACCESS_KEY = os.environ["DISCOVERY"], os.environ["APP_ID"], os.environ["ACCESS_KEY"]
DECODER = "function Decoder(bytes, port) { return { first: bytes[0], port: port }; }"
METADATA = [("key", ACCESS_KEY)]


def discover():
    (handler,) = DiscoveryClient(DISCOVERY, insecure_channel=True).get_all("handler")
    assert handler.certificate == ""
    assert handler.api_address.startswith("http://")
    return handler


def manage(manager):
    application = messages.Application(app_id=APP_ID, decoder=DECODER, payload_format="custom")
    manager.SetApplication(application, 30, METADATA)
    device = messages.Device(app_id=APP_ID, dev_id="dev-1", description="by the door")
    device.lorawan_device.CopyFrom(lorawan.Device(app_id=APP_ID, dev_id="dev-1", dev_eui=bytes(range(1, 9))))
    manager.SetDevice(device, 30, METADATA)
    (listed,) = manager.GetDevicesForApplication(messages.ApplicationIdentifier(app_id=APP_ID), 30, METADATA).devices
    assert (listed.dev_id, listed.description) == ("dev-1", "by the door")


def listen(address):
    uplinks, subscribed = queue.Queue(), queue.Queue()
    client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2)
    client.username_pw_set(APP_ID, ACCESS_KEY)
    client.on_message = lambda client, data, message: uplinks.put(json.loads(message.payload))
    client.on_subscribe = lambda client, data, identifier, reasons, properties: subscribed.put(reasons)
    client.on_connect = lambda client, data, flags, reason, properties: client.subscribe("+/devices/+/up")
    host, port = address.rsplit(":", 1)
    client.connect(host, int(port))
    client.loop_start()
    subscribed.get(timeout=60)
    return client, uplinks


handler = discover()
manager = services.ApplicationManagerStub(grpc.insecure_channel(handler.net_address))
manage(manager)
client, uplinks = listen(handler.mqtt_address)
manager.SimulateUplink(
    messages.SimulatedUplinkMessage(app_id=APP_ID, dev_id="dev-1", payload=b"\x07", port=3), 30, METADATA
)
assert uplinks.get(timeout=60)["payload_fields"] == {"first": 7, "port": 3}
client.loop_stop()
print("done")
