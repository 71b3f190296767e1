"""The Python client of Eclipse Paho, in every version of MQTT that it speaks.

The cases are those of the Paho interoperability tests that apply here. Each client may publish downlinks of `app-one`
and subscribe to them. Told by the environment: HOST, PORT.
"""

import os
import queue
import socket

import paho.mqtt.client as mqtt
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.subscribeoptions import SubscribeOptions

HOST, PORT = os.environ["HOST"], int(os.environ["PORT"])
VERSIONS = {"3.1": mqtt.MQTTv31, "3.1.1": mqtt.MQTTv311, "5": mqtt.MQTTv5}
APP = "app-one"
WAIT = 20


def down(dev_id):
    return f"{APP}/devices/{dev_id}/down"


def properties(packet, **values):
    made = Properties(packet)
    for name, value in values.items():
        setattr(made, name, value)
    return made


class Client:
    """A client that keeps what happens in queues."""

    def __init__(self, version, name="", key="account.both", persistent=False, **options):
        self.is_5 = version == mqtt.MQTTv5
        self.persistent = persistent
        self.messages, self.connected, self.ended = queue.Queue(), queue.Queue(), queue.Queue()
        self.subscribed, self.unsubscribed, self.published = queue.Queue(), queue.Queue(), queue.Queue()
        if not self.is_5:
            options["clean_session"] = not persistent
        # A session is one client's, in one version.
        name = f"{name} with {version:d}" if name else ""
        self.paho = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, name, protocol=version, **options)
        self.paho.username_pw_set(APP, key)
        self.paho.on_message = lambda client, data, message: self.messages.put(message)
        self.paho.on_connect = lambda client, data, *answer: self.connected.put(answer)
        self.paho.on_disconnect = lambda client, data, flags, reason, properties: self.ended.put(reason)
        self.paho.on_subscribe = lambda client, data, number, reasons, properties: self.subscribed.put(reasons)
        self.paho.on_unsubscribe = lambda client, data, number, reasons, properties: self.unsubscribed.put(reasons)
        self.paho.on_publish = lambda client, data, number, reason, properties: self.published.put(reason)

    def connect(self, keep_alive=60, loops=True, clean=None, **asked):
        """Connects; returns the flags, the reason code and the properties of the CONNACK."""
        if self.is_5:
            if self.persistent:
                asked.setdefault("SessionExpiryInterval", 600)
            clean = not self.persistent if clean is None else clean
            given = properties(PacketTypes.CONNECT, **asked)
            self.paho.connect(HOST, PORT, keep_alive, clean_start=clean, properties=given)
        else:
            self.paho.connect(HOST, PORT, keep_alive)
        self.paho.loop_start()
        answer = self.connected.get(timeout=WAIT)
        if not loops:
            self.paho.loop_stop()
        return answer

    def subscribe(self, topic, qos=2, **options):
        """Subscribes; returns the reason code."""
        if options.get("identifier"):
            identifier = properties(PacketTypes.SUBSCRIBE, SubscriptionIdentifier=options.pop("identifier"))
            self.paho.subscribe(topic, options=SubscribeOptions(qos=qos, **options), properties=identifier)
        elif options:
            self.paho.subscribe(topic, options=SubscribeOptions(qos=qos, **options))
        else:
            self.paho.subscribe(topic, qos)
        return self.subscribed.get(timeout=WAIT)[0].value

    def publish(self, topic, body, qos=1, retain=False, **values):
        given = properties(PacketTypes.PUBLISH, **values) if values else None
        self.paho.publish(topic, body, qos, retain, given)
        return self.published.get(timeout=WAIT)

    def next(self):
        return self.messages.get(timeout=WAIT)

    def bodies(self, count):
        return [self.next().payload.decode() for _ in range(count)]

    def has_nothing_before(self, publisher, topic):
        """Whether no message comes before one that is published now."""
        publisher.publish(topic, "last")
        return self.next().payload == b"last"

    def leave(self, with_will=False, **values):
        given = properties(PacketTypes.DISCONNECT, **values) if values else None
        reason = mqtt.ReasonCode(PacketTypes.DISCONNECT, identifier=4) if with_will else None
        self.paho.disconnect(reason, given)
        self.ended.get(timeout=WAIT)
        self.paho.loop_stop()

    def lose_connection(self):
        """The network fails; the client does not come back by itself."""
        self.paho.loop_stop()
        self.paho.socket().shutdown(socket.SHUT_RDWR)


def connected(version, name="", **options):
    client = Client(version, name, **options)
    _, reason, _ = client.connect()
    assert reason == 0, reason
    return client


def present(answer):
    flags, reason, _ = answer
    assert reason == 0, reason
    return flags.session_present


# Cases of all versions.


def publishes_and_receives_with_every_qos(version):
    client = connected(version, "basic")
    assert client.subscribe(down("basic")) == 1, "QoS 2 is granted as 1"
    for qos in [0, 1, 2]:
        client.publish(down("basic"), f"with {qos}", qos)
        message = client.next()
        assert (message.payload.decode(), message.qos) == (f"with {qos}", min(qos, 1)), message.qos
    client.leave()


def queues_messages_for_a_client_that_is_away(version):
    client = Client(version, "away", persistent=True)
    assert not present(client.connect())
    client.subscribe(down("away"))
    client.leave()
    other = connected(version, "sender")
    for qos in [1, 2]:
        other.publish(down("away"), f"with {qos}", qos)
    client = Client(version, "away", persistent=True)
    # MQTT 3.1 cannot say that there is a session.
    assert present(client.connect()) or version == mqtt.MQTTv31
    assert client.bodies(2) == ["with 1", "with 2"]
    client.paho.unsubscribe(down("away"))
    client.unsubscribed.get(timeout=WAIT)
    client.leave()
    other.leave()


def a_clean_session_forgets(version):
    client = Client(version, "clean", persistent=True)
    client.connect()
    client.subscribe(down("clean"))
    client.leave()
    other = connected(version, "sender")
    other.publish(down("clean"), "forgotten")
    client = Client(version, "clean")
    assert not present(client.connect())
    client.leave()
    client = Client(version, "clean", persistent=True)
    client.connect()
    client.subscribe(down("clean"))
    assert client.has_nothing_before(other, down("clean"))
    client.leave()
    other.leave()


def overlapping_subscriptions_deliver_once_with_the_highest_qos(version):
    client = connected(version, "overlap")
    client.subscribe(f"{APP}/devices/+/down", 0)
    client.subscribe(down("overlap"), 1)
    client.subscribe(f"{APP}/#", 0)
    client.publish(down("overlap"), "first")
    message = client.next()
    assert (message.payload, message.qos) == (b"first", 1)
    assert client.has_nothing_before(client, down("overlap"))
    client.leave()


def a_silent_client_is_disconnected_and_its_will_published(version):
    observer = connected(version, "observer")
    observer.subscribe(down("silent"))
    client = Client(version, "silent")
    client.paho.will_set(down("silent"), "silent too long", 1)
    client.connect(keep_alive=1, loops=False)
    assert observer.next().payload == b"silent too long"
    observer.leave()


def a_will_is_published_when_the_connection_breaks_but_not_after_disconnect(version):
    observer = connected(version, "observer")
    observer.subscribe(down("will"))
    for breaks in [False, True]:
        client = Client(version, "dying")
        client.paho.will_set(down("will"), "broken" if breaks else "left", 1)
        client.connect()
        if breaks:
            client.lose_connection()
        else:
            client.leave()
    message = observer.next()
    assert message.payload == b"broken", message.payload
    observer.leave()


def what_was_not_acknowledged_comes_again_marked(version):
    other = connected(version, "sender")
    client = Client(version, "again", persistent=True, manual_ack=True)
    client.connect()
    client.subscribe(down("again"))
    for number in range(3):
        other.publish(down("again"), str(number))
    first = [client.next() for _ in range(3)]
    assert [(message.payload, message.dup) for message in first] == [(b"0", False), (b"1", False), (b"2", False)]
    client.paho.ack(first[0].mid, 1)
    # The PUBACK is on its way before anything that follows it.
    client.publish(down("elsewhere"), "after it")
    client.lose_connection()
    client = Client(version, "again", persistent=True)
    client.connect()
    again = [client.next() for _ in range(2)]
    assert [(message.payload, message.dup) for message in again] == [(b"1", True), (b"2", True)]
    assert client.has_nothing_before(other, down("again"))
    client.leave()
    other.leave()


def refuses_subscriptions_outside_the_application(version):
    client = connected(version, "curious")
    expected = 0x87 if version == mqtt.MQTTv5 else 0x80
    for topic in ["app-two/#", "app-two/devices/+/up", "$SYS/#", "$share/group/app-two/#", "/app-one/#"]:
        assert client.subscribe(topic) == expected, topic
    # These mean the own application.
    for topic in ["#", "+/devices/+/down", "+/#"]:
        assert client.subscribe(topic) == 1, topic
    client.leave()


def unsubscribes(version):
    client = connected(version, "leaving")
    client.subscribe(down("one"))
    client.subscribe(down("two"))
    client.paho.unsubscribe(down("one"))
    client.unsubscribed.get(timeout=WAIT)
    client.publish(down("one"), "not any more")
    assert client.has_nothing_before(client, down("two"))
    client.leave()


def refuses_wrong_credentials_with_the_right_code(version):
    # Paho turns the codes of older versions into those of MQTT 5.
    for user, key, expected in [
        (APP, "account.wrong", 0x86),
        (APP, "not a credential", 0x86),
        ("app-two", "account.nothing", 0x86),
        ("no such app", "account.both", 0x86),
        (APP, "account.nothing", 0x87),
    ]:
        client = Client(version, "stranger")
        client.paho.username_pw_set(user, key)
        _, reason, _ = client.connect(loops=False)
        assert reason.value == expected, (user, key, reason)
    client = Client(version, "nobody")
    client.paho.username_pw_set(None)
    _, reason, _ = client.connect(loops=False)
    assert reason.value == 0x86, reason


def clients_without_an_identifier_are_different(version):
    # Paho makes one up in MQTT 3.1, which needs one.
    clients = [connected(version) for _ in range(2)]
    for client in clients:
        client.subscribe(down("nameless"))
    clients[0].publish(down("nameless"), "for both")
    for client in clients:
        assert client.next().payload == b"for both"
        client.leave()


def a_client_takes_its_session_over(version):
    other = connected(version, "sender")
    first = Client(version, "taken", persistent=True, reconnect_on_failure=False)
    first.connect()
    first.subscribe(down("taken"))
    second = Client(version, "taken", persistent=True)
    second.connect()
    reason = first.ended.get(timeout=WAIT)
    assert version != mqtt.MQTTv5 or reason.value == 0x8E, reason
    other.publish(down("taken"), "for the second")
    assert second.next().payload == b"for the second"
    second.leave()
    other.leave()


def nothing_is_retained(version):
    client = connected(version, "retaining")
    if version == mqtt.MQTTv5:
        client.paho.publish(down("retained"), "kept", 1, True)
        assert client.ended.get(timeout=WAIT).value == 0x9A
        client.paho.loop_stop()
        client = connected(version, "retaining")
    else:
        client.publish(down("retained"), "kept", 1, True)
    client.subscribe(down("retained"))
    assert client.has_nothing_before(client, down("retained"))
    client.leave()


def acknowledges_and_drops_what_may_not_be_published(version):
    observer = connected(version, "observer")
    observer.subscribe(f"{APP}/devices/#")
    client = connected(version, "forbidden")
    for topic in ["app-one/devices/dev/up", "app-one/events/x", "app-two/devices/dev/down", "app-one/devices/dev/down/x"]:
        reason = client.publish(topic, "forbidden")
        assert version != mqtt.MQTTv5 or reason.value == 0x87, reason
    assert observer.has_nothing_before(client, down("dev"))
    client.leave()
    observer.leave()


# Cases of MQTT 5.


def a_session_expires_as_the_client_says(version):
    observer = connected(version, "observer")
    observer.subscribe(down("expiring"))
    for asked, left_with, expected in [(0, None, False), (600, None, True), (600, 0, False), (600, 60, True)]:
        client = Client(version, "expiring")
        client.paho.will_set(down("expiring"), "left", 1)
        client.connect(SessionExpiryInterval=asked)
        client.leave(True, **({} if left_with is None else {"SessionExpiryInterval": left_with}))
        # Its will says that the broker knows that it has left.
        assert observer.next().payload == b"left"
        client = Client(version, "expiring")
        assert present(client.connect(clean=False)) == expected, (asked, left_with)
        client.leave()
    client = Client(version, "expiring")
    _, _, granted = client.connect(SessionExpiryInterval=100_000)
    assert granted.SessionExpiryInterval == 3600
    client.leave()
    observer.leave()


def the_server_assigns_an_identifier_and_announces_its_limits(version):
    client = Client(version)
    _, _, granted = client.connect(keep_alive=65_535)
    assert granted.AssignedClientIdentifier and granted.ServerKeepAlive == 1200
    assert (granted.RetainAvailable, granted.MaximumPacketSize, granted.TopicAliasMaximum) == (0, 65_536, 16)
    assert granted.ReceiveMaximum == 32
    client.leave()


def members_of_a_group_share_messages(version):
    members = [connected(version, f"member {number}") for number in range(2)]
    for member in members:
        assert member.subscribe(f"$share/group/{APP}/devices/shared/down") == 1
    other = connected(version, "sender")
    for number in range(10):
        other.publish(down("shared"), str(number))
    shares = [member.bodies(5) for member in members]
    assert sorted(shares[0] + shares[1], key=int) == [str(number) for number in range(10)]
    for client in [*members, other]:
        client.leave()


def passes_properties_on(version):
    client = connected(version, "properties")
    client.subscribe(down("properties"))
    given = {
        "PayloadFormatIndicator": 1,
        "ContentType": "application/json",
        "ResponseTopic": down("answers"),
        "CorrelationData": b"42",
        "UserProperty": [("a", "1"), ("a", "2")],
    }
    client.publish(down("properties"), "{}", **given)
    got = client.next().properties
    for name, value in given.items():
        assert getattr(got, name) == value, name
    client.leave()


def subscriptions_have_identifiers_and_options(version):
    client = connected(version, "options")
    client.subscribe(down("options"), identifier=7)
    client.subscribe(f"{APP}/devices/+/down", identifier=268_435_455)
    client.publish(down("options"), "both")
    assert sorted(client.next().properties.SubscriptionIdentifier) == [7, 268_435_455]
    client.leave()
    client = connected(version, "no local")
    client.subscribe(down("local"), noLocal=True)
    client.publish(down("local"), "own")
    other = connected(version, "sender")
    assert client.has_nothing_before(other, down("local"))
    client.leave()
    other.leave()


def aliases_stand_for_topics(version):
    client = connected(version, "alias")
    client.subscribe(down("alias"))
    client.publish(down("alias"), "with topic", TopicAlias=16)
    client.publish("", "without", TopicAlias=16)
    assert client.bodies(2) == ["with topic", "without"]
    client.leave()
    for alias in [17, 3]:
        client = connected(version, "alias", reconnect_on_failure=False)
        client.paho.publish("" if alias == 3 else down("alias"), "x", 1, properties=properties(PacketTypes.PUBLISH, TopicAlias=alias))
        assert client.ended.get(timeout=WAIT).value == (0x82 if alias == 3 else 0x94)


def a_client_gets_no_larger_packet_than_it_takes(version):
    client = Client(version, "small")
    client.connect(MaximumPacketSize=100)
    client.subscribe(down("small"))
    client.publish(down("small"), "x" * 200)
    assert client.has_nothing_before(client, down("small"))
    client.leave()


def a_client_gets_no_more_at_once_than_it_takes(version):
    client = Client(version, "slow", manual_ack=True)
    client.connect(ReceiveMaximum=2)
    client.subscribe(down("slow"))
    other = connected(version, "sender")
    for number in range(4):
        other.publish(down("slow"), str(number))
    first = [client.next(), client.next()]
    # What is answered now comes after all that was sent to the client before.
    client.publish(down("elsewhere"), "asked")
    assert client.messages.empty()
    for message in first:
        client.paho.ack(message.mid, 1)
    assert client.bodies(2) == ["2", "3"]
    client.leave()
    other.leave()


def a_client_may_leave_with_its_will(version):
    observer = connected(version, "observer")
    observer.subscribe(down("will"))
    client = Client(version, "leaving")
    client.paho.will_set(down("will"), "left", 1)
    client.connect()
    client.leave(with_will=True)
    assert observer.next().payload == b"left"
    observer.leave()


EVERY_VERSION = [
    publishes_and_receives_with_every_qos,
    queues_messages_for_a_client_that_is_away,
    a_clean_session_forgets,
    overlapping_subscriptions_deliver_once_with_the_highest_qos,
    a_silent_client_is_disconnected_and_its_will_published,
    a_will_is_published_when_the_connection_breaks_but_not_after_disconnect,
    what_was_not_acknowledged_comes_again_marked,
    refuses_subscriptions_outside_the_application,
    unsubscribes,
    refuses_wrong_credentials_with_the_right_code,
    clients_without_an_identifier_are_different,
    a_client_takes_its_session_over,
    nothing_is_retained,
    acknowledges_and_drops_what_may_not_be_published,
]
VERSION_5 = [
    a_session_expires_as_the_client_says,
    the_server_assigns_an_identifier_and_announces_its_limits,
    members_of_a_group_share_messages,
    passes_properties_on,
    subscriptions_have_identifiers_and_options,
    aliases_stand_for_topics,
    a_client_gets_no_larger_packet_than_it_takes,
    a_client_gets_no_more_at_once_than_it_takes,
    a_client_may_leave_with_its_will,
]

for name, version in VERSIONS.items():
    for case in EVERY_VERSION + (VERSION_5 if name == "5" else []):
        print(name, case.__name__, flush=True)
        case(version)
print("done")
