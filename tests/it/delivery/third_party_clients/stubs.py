"""Every call of the handler and of discovery through the code that The Things Network generated for its own client.

Told by the environment: HANDLER and DISCOVERY (gRPC addresses without TLS), HANDLER_ID, APP_ID, GATEWAY_ID, and the
credentials ACCESS_KEY, GATEWAY_TOKEN, HANDLER_TOKEN, ROUTER_TOKEN, BROKER_TOKEN.
"""

import os

import grpc
import ttn.github_com.TheThingsNetwork.api.discovery.discovery_pb2 as discovery
import ttn.github_com.TheThingsNetwork.api.discovery.discovery_pb2_grpc as discovery_grpc
import ttn.github_com.TheThingsNetwork.api.handler.handler_pb2 as handler
import ttn.github_com.TheThingsNetwork.api.handler.handler_pb2_grpc as handler_grpc
import ttn.github_com.TheThingsNetwork.api.protocol.lorawan.device_address_pb2 as address
import ttn.github_com.TheThingsNetwork.api.protocol.lorawan.device_address_pb2_grpc as address_grpc
import ttn.github_com.TheThingsNetwork.api.protocol.lorawan.device_pb2 as lorawan
from google.protobuf.empty_pb2 import Empty

APP_ID, HANDLER_ID, GATEWAY_ID = os.environ["APP_ID"], os.environ["HANDLER_ID"], os.environ["GATEWAY_ID"]
KEY = [("key", os.environ["ACCESS_KEY"])]
GATEWAY, HANDLER, ROUTER, BROKER = (
    [("token", os.environ[name])] for name in ["GATEWAY_TOKEN", "HANDLER_TOKEN", "ROUTER_TOKEN", "BROKER_TOKEN"]
)
NOBODY = []
DENIED, INVALID, MISSING, TAKEN = (
    grpc.StatusCode.PERMISSION_DENIED,
    grpc.StatusCode.INVALID_ARGUMENT,
    grpc.StatusCode.NOT_FOUND,
    grpc.StatusCode.ALREADY_EXISTS,
)

# What our answers to these calls have beyond v2: what a trial cost, and what came of it.
OURS = {"DryUplink": {101, 102, 103}, "DryDownlink": {101, 102}, "SimulateUplink": {101, 102, 103}}
# What need not come up: rates need traffic, join EUIs cannot be announced, nonces belong to joining.
UNSEEN = {
    "handler.Status.uplink",
    "handler.Status.downlink",
    "handler.Status.activations",
    "lorawan.Device.used_dev_nonces",
    "lorawan.Device.used_app_nonces",
    "lorawan.Device.last_seen",
}

seen = set()


def note(message, ours=frozenset()):
    """Notes which fields are set, at any depth, and that v2 knows all but those with these numbers."""
    name = message.DESCRIPTOR.full_name
    unknown = {field.field_number for field in message.UnknownFields()}
    assert unknown <= ours, f"{name} has the unknown fields {unknown}"
    for field, value in message.ListFields():
        seen.add(f"{name}.{field.name}")
        if field.message_type and not field.message_type.GetOptions().map_entry:
            for part in value if field.label == field.LABEL_REPEATED else [value]:
                note(part)


def known(answer, call):
    """The answer as v2 understands it."""
    note(answer, OURS.get(call, set()))
    answer.DiscardUnknownFields()
    return answer


def pem(what):
    return f"-----BEGIN {what}-----\nAAAA\n-----END {what}-----\n"


def announcement(service, id, *served):
    return discovery.Announcement(
        id=id,
        service_name=service,
        service_version="2.10.5-abcdef (2020-01-01T00:00:00Z)",
        description=f"The {service} Ü",
        url="https://example.com/docs",
        public=True,
        net_address="localhost:1901,localhost:1902",
        public_key=pem("PUBLIC KEY"),
        certificate=pem("CERTIFICATE"),
        api_address="https://localhost:8084",
        mqtt_address="mqtts://localhost:8883",
        amqp_address="amqp://localhost:5672",
        metadata=served,
    )


def serves(service, id, served):
    return discovery.MetadataRequest(service_name=service, id=id, metadata=served)


def device(dev_id, **changes):
    fields = {
        "app_eui": bytes(range(8)),
        "dev_eui": bytes(range(8, 16)),
        "app_id": APP_ID,
        "dev_id": dev_id,
        "dev_addr": b"\x26\x01\x02\x03",
        "nwk_s_key": b"\x11" * 16,
        "app_s_key": b"\x22" * 16,
        "app_key": b"\x33" * 16,
        "f_cnt_up": 4294967295,
        "f_cnt_down": 7,
        "disable_f_cnt_check": True,
        "uses32_bit_f_cnt": True,
        "activation_constraints": "abp,local",
    }
    return handler.Device(
        app_id=APP_ID,
        dev_id=dev_id,
        lorawan_device=lorawan.Device(**{**fields, **changes}),
        latitude=52.375,
        longitude=-4.875,
        altitude=-12,
        attributes={"ttn-model": "Ü", "floor": ""},
        description="by the door\n☃",
    )


APPLICATION = handler.Application(
    app_id=APP_ID,
    payload_format="custom",
    decoder='function Decoder(bytes, port) { console.log("got", bytes); return { first: bytes[0], port: port }; }',
    converter="function Converter(fields) { fields.twice = 2 * fields.first; return fields; }",
    validator="function Validator(fields) { return fields.first < 128; }",
    encoder='function Encoder(fields, port) { console.log({ port: port }); return [fields.led, port]; }',
    register_on_join_access_key="account.not-a-real-key",
)
ID = handler.ApplicationIdentifier(app_id=APP_ID)
ONE = handler.DeviceIdentifier(app_id=APP_ID, dev_id="dev-1")
GATEWAY_SERVED = discovery.Metadata(gateway_id=GATEWAY_ID)
PREFIX_SERVED = discovery.Metadata(dev_addr_prefix=b"\x14\x26\x00\x00\x00")
APP_SERVED = discovery.Metadata(app_id=APP_ID)
EUI_SERVED = discovery.Metadata(app_eui=bytes(range(8)))
NO_KEYS = {"dev_addr": b"", "nwk_s_key": b"", "app_s_key": b"", "app_key": b"", "f_cnt_up": 8}


def uplink(payload):
    return handler.DryUplinkMessage(payload=payload, app=APPLICATION, port=9)


def downlink(**given):
    return handler.DryDownlinkMessage(app=APPLICATION, port=9, **given)


def log(function, *fields):
    return handler.LogEntry(function=function, fields=fields)


def is_address(answer):
    return len(answer.dev_addr) == 4 and answer.dev_addr[0] == 0x26


def is_status(answer):
    return answer.component.memory.memory > 0 and answer.system.memory.total > answer.system.memory.used > 0


def is_this_handler(answer):
    return answer.id == HANDLER_ID and answer.service_name == "handler" and not answer.metadata


# In turn: the call, what is sent, by whom, and what comes back: a message, a code, or what must hold of the message.
FIND = [
    ("Announce", announcement("router", "router-1", EUI_SERVED), ROUTER, Empty()),
    ("Announce", announcement("broker", "broker-1"), BROKER, Empty()),
    ("Announce", announcement("router", "router-1"), BROKER, DENIED),
    ("AddMetadata", serves("router", "router-1", GATEWAY_SERVED), GATEWAY, Empty()),
    ("AddMetadata", serves("broker", "broker-1", PREFIX_SERVED), BROKER, Empty()),
    ("AddMetadata", serves("handler", HANDLER_ID, APP_SERVED), KEY, Empty()),
    ("AddMetadata", serves("handler", HANDLER_ID, EUI_SERVED), HANDLER, DENIED),
    ("AddMetadata", serves("handler", HANDLER_ID, discovery.Metadata()), HANDLER, DENIED),
    ("Get", discovery.GetRequest(service_name="router", id="router-2"), NOBODY, MISSING),
    (
        "Get",
        discovery.GetRequest(service_name="router", id="router-1"),
        NOBODY,
        announcement("router", "router-1", GATEWAY_SERVED),
    ),
    (
        "GetAll",
        discovery.GetServiceRequest(service_name="broker"),
        NOBODY,
        discovery.AnnouncementsResponse(services=[announcement("broker", "broker-1", PREFIX_SERVED)]),
    ),
    ("GetAll", discovery.GetServiceRequest(service_name="postman"), NOBODY, discovery.AnnouncementsResponse()),
    (
        "GetByGatewayID",
        discovery.GetByGatewayIDRequest(gateway_id=GATEWAY_ID),
        NOBODY,
        announcement("router", "router-1"),
    ),
    ("GetByAppID", discovery.GetByAppIDRequest(app_id=APP_ID), NOBODY, is_this_handler),
    ("GetByAppEUI", discovery.GetByAppEUIRequest(app_eui=bytes(range(8))), NOBODY, MISSING),
    ("GetByAppEUI", discovery.GetByAppEUIRequest(), NOBODY, INVALID),
    ("DeleteMetadata", serves("router", "router-1", GATEWAY_SERVED), HANDLER, DENIED),
    ("DeleteMetadata", serves("router", "router-1", GATEWAY_SERVED), GATEWAY, Empty()),
    ("DeleteMetadata", serves("broker", "broker-1", PREFIX_SERVED), BROKER, Empty()),
    ("GetByGatewayID", discovery.GetByGatewayIDRequest(gateway_id=GATEWAY_ID), NOBODY, MISSING),
    (
        "Get",
        discovery.GetRequest(service_name="broker", id="broker-1"),
        NOBODY,
        announcement("broker", "broker-1"),
    ),
]
MANAGE = [
    ("DeleteApplication", ID, KEY, Empty()),
    ("GetApplication", ID, KEY, MISSING),
    ("SetApplication", APPLICATION, KEY, MISSING),
    ("RegisterApplication", ID, KEY, Empty()),
    ("RegisterApplication", ID, KEY, TAKEN),
    ("GetApplication", ID, KEY, handler.Application(app_id=APP_ID)),
    ("SetApplication", APPLICATION, KEY, Empty()),
    ("GetApplication", ID, KEY, APPLICATION),
    ("GetDevicesForApplication", ID, KEY, handler.DeviceList()),
    ("SetDevice", device("dev-1"), KEY, Empty()),
    ("SetDevice", device("dev-2"), KEY, TAKEN),
    ("SetDevice", device("dev-2", dev_eui=b"\x01" * 8), KEY, Empty()),
    ("SetDevice", device("dev-3", dev_eui=b"\x01" * 7), KEY, INVALID),
    ("GetDevice", ONE, KEY, device("dev-1")),
    ("SetDevice", device("dev-1", **NO_KEYS), KEY, Empty()),
    ("GetDevice", ONE, KEY, device("dev-1", f_cnt_up=8)),
    (
        "GetDevicesForApplication",
        ID,
        KEY + [("limit", "1"), ("offset", "1")],
        handler.DeviceList(devices=[device("dev-2", dev_eui=b"\x01" * 8)]),
    ),
    (
        "DryUplink",
        uplink(b"\x05\x06"),
        KEY,
        handler.DryUplinkResult(
            payload=b"\x05\x06",
            fields='{"first":5,"port":9,"twice":10}',
            valid=True,
            logs=[log("Decoder", '"got"', "[5,6]")],
        ),
    ),
    (
        "DryUplink",
        uplink(b"\x80"),
        KEY,
        handler.DryUplinkResult(
            payload=b"\x80", fields='{"first":128,"port":9,"twice":256}', logs=[log("Decoder", '"got"', "[128]")]
        ),
    ),
    ("DryUplink", handler.DryUplinkMessage(payload=b"\x05"), KEY, INVALID),
    (
        "DryDownlink",
        downlink(fields='{"led": 3}'),
        KEY,
        handler.DryDownlinkResult(payload=b"\x03\x09", logs=[log("Encoder", '{"port":9}')]),
    ),
    ("DryDownlink", downlink(payload=b"\x07"), KEY, handler.DryDownlinkResult(payload=b"\x07")),
    ("DryDownlink", downlink(payload=b"\x07", fields="{}"), KEY, INVALID),
    ("DryDownlink", downlink(), KEY, INVALID),
    (
        "SimulateUplink",
        handler.SimulatedUplinkMessage(app_id=APP_ID, dev_id="dev-1", payload=b"\x05", port=3),
        KEY,
        Empty(),
    ),
    ("SimulateUplink", handler.SimulatedUplinkMessage(app_id=APP_ID, dev_id="dev-4"), KEY, MISSING),
    ("DeleteDevice", ONE, KEY, Empty()),
    ("DeleteDevice", ONE, KEY, MISSING),
    ("GetDevice", ONE, KEY, MISSING),
    ("DeleteApplication", ID, KEY, Empty()),
    ("DeleteApplication", ID, KEY, MISSING),
]
ADDRESSES = [
    (
        "GetPrefixes",
        address.PrefixesRequest(),
        NOBODY,
        address.PrefixesResponse(
            prefixes=[
                address.PrefixesResponse.PrefixMapping(
                    prefix="26000000/20", usage=["otaa", "abp", "world", "local", "private", "testing"]
                )
            ]
        ),
    ),
    ("GetDevAddr", address.DevAddrRequest(usage=["abp", "local"]), NOBODY, is_address),
    ("GetDevAddr", address.DevAddrRequest(usage=["lunar"]), NOBODY, MISSING),
]
FIGURES = [
    ("GetStatus", handler.StatusRequest(), HANDLER, is_status),
    ("GetStatus", handler.StatusRequest(), ROUTER, DENIED),
]


def go(service, stub, rows):
    """Makes the calls of a table; all that the service has must be in it."""
    for name, message, metadata, expected in rows:
        note(message)
        try:
            answer = known(getattr(stub, name)(message, 30, metadata), name)
            holds = expected(answer) if callable(expected) else answer == expected
        except grpc.RpcError as error:
            answer, holds = error, error.code() == expected
        assert holds, f"{name}\n{message}\nanswered\n{answer}\ninstead of\n{expected}"
    missing = set(service.methods_by_name) - {row[0] for row in rows}
    assert not missing, f"{service.full_name} also has {missing}"


def all_fields(message):
    """The fields of a message and of what is in it."""
    fields = set()
    for field in message.fields:
        fields.add(f"{message.full_name}.{field.name}")
        if field.message_type and not field.message_type.GetOptions().map_entry:
            fields |= all_fields(field.message_type)
    return fields


def every_field_was_there(services):
    methods = [method for service in services for method in service.methods]
    types = [message for method in methods for message in [method.input_type, method.output_type]]
    fields = set().union(*(all_fields(message) for message in types))
    # What the figures are made of is the machine's.
    missing = {field for field in fields - seen - UNSEEN if not field.startswith("api.")}
    assert len(fields) > 60 and not missing, missing


finder = grpc.insecure_channel(os.environ["DISCOVERY"])
manager = grpc.insecure_channel(os.environ["HANDLER"])
SERVICES = [
    (discovery.DESCRIPTOR.services_by_name["Discovery"], discovery_grpc.DiscoveryStub(finder), FIND),
    (handler.DESCRIPTOR.services_by_name["ApplicationManager"], handler_grpc.ApplicationManagerStub(manager), MANAGE),
    (address.DESCRIPTOR.services_by_name["DevAddrManager"], address_grpc.DevAddrManagerStub(manager), ADDRESSES),
    (handler.DESCRIPTOR.services_by_name["HandlerManager"], handler_grpc.HandlerManagerStub(manager), FIGURES),
]
for service, stub, rows in SERVICES:
    go(service, stub, rows)
every_field_was_there([service for service, _, _ in SERVICES])
print("done")
