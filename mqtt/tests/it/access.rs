//! Clients may connect, subscribe and publish by their rights, and none sees another application's messages.

mod logs;

use std::time::Duration;

use mqtt::BrokerSettings;
use mqtt5_protocol::QoS;

use crate::harness::{
    APPS, Harness, publish_up,
    raw_client::{Login, MQTT_31, RawClient},
    settings,
};

/// The codes of MQTT 3.1.1 and of MQTT 5.
const VERSIONS: [u8; 2] = [4, 5];

/// The same with MQTT 3.1, to which some clients fall back when they are refused.
const ALL_VERSIONS: [u8; 3] = [MQTT_31, 4, 5];

/// The code in the client's protocol version.
fn code(version: u8, old: u8, new: u8) -> u8 {
    if version == 5 { new } else { old }
}

// Conformance: MQTT 3.1, 3.1.1 and 5
// Conformance: Wrong, empty, missing, expired and foreign credentials
#[tokio::test]
async fn refuses_bad_credentials_with_the_code_that_clients_expect() {
    let harness = Harness::start().await;
    harness.authenticator.grant("app-one", "account.none", &[]);
    for version in ALL_VERSIONS {
        let login = |user, password| Login { user, password, ..Login::new(version, "", "") };
        for (user, password, expected) in [
            (Some("app-one"), Some("account.read"), 0),
            (Some("app-one"), Some("account.wrong"), code(version, 4, 0x86)),
            (Some("app-one"), Some("no.access.key"), code(version, 4, 0x86)),
            (Some("app-one"), Some(""), code(version, 4, 0x86)),
            (Some("app-one"), None, code(version, 4, 0x86)),
            (Some("app-three"), Some("account.read"), code(version, 4, 0x86)),
            (Some("handler:"), Some("account.read"), code(version, 4, 0x86)),
            (Some("app-one:rw"), Some("account.read"), code(version, 4, 0x86)),
            (Some(""), Some("account.read"), code(version, 4, 0x86)),
            (None, None, code(version, 4, 0x86)),
            (Some("app-one"), Some("account.none"), code(version, 5, 0x87)),
        ] {
            let (_, status, _) = RawClient::try_connect(harness.broker.address(), &login(user, password)).await;
            assert_eq!(status, expected, "version {version}, user {user:?}, password {password:?}");
        }
    }
}

#[tokio::test]
async fn does_not_report_bad_credentials_while_the_account_service_is_down() {
    let harness = Harness::start().await;
    harness.authenticator.set_unavailable(true);
    for version in VERSIONS {
        let (_, status, _) =
            RawClient::try_connect(harness.broker.address(), &Login::new(version, "app-one", "account.read")).await;
        assert_eq!(status, code(version, 3, 0x88));
    }
}

// Conformance: What is not a CONNECT, a second one, another protocol name or level
#[tokio::test]
async fn refuses_other_protocol_versions() {
    let harness = Harness::start().await;
    for (version, expected) in [(3, 1), (6, 0x84)] {
        let (_, status, _) =
            RawClient::try_connect(harness.broker.address(), &Login::new(version, "app-one", "account.read")).await;
        assert_eq!(status, expected, "version {version}");
    }
}

// Conformance: Every entitled subscriber gets an uplink, once however many of its filters match
#[tokio::test]
async fn the_handler_publishes_for_every_device_and_receives_every_downlink() {
    let harness = Harness::start().await;
    let mut handler = harness.handler().await;
    for app_id in APPS {
        let topic = format!("{app_id}/devices/dev/down");
        let mut client = RawClient::connect(harness.broker.address(), &Login::new(4, app_id, "account.both")).await;
        client.publish(&topic, "down").await;
        assert_eq!(handler.next().await, (topic, "down".to_owned()));
        client.subscribe("#").await;
        handler.publish(&format!("{app_id}-else/devices/dev/up"), "unheard").await;
        handler.publish(&format!("{app_id}/devices/dev/up"), "up").await;
        assert_eq!(client.next().await.1, "up");
    }
}

// Conformance: Subscriptions: 0x80 or 0x87 outside the application
// Conformance: Events on their topics, for those who may read
// Conformance: Handler and MQTT clients take a token or an access key
#[tokio::test]
async fn a_client_with_the_read_right_subscribes_to_its_own_application_only() {
    let harness = Harness::start().await;
    for version in VERSIONS {
        let refused = code(version, 0x80, 0x87);
        for (key, filter, expected) in [
            ("account.read", "app-one/devices/+/up", 1),
            ("account.read", "app-one/devices/dev/events/#", 1),
            ("account.read", "+/devices/+/up", 1),
            ("account.read", "+/devices/+/events/#", 1),
            ("account.read", "#", 1),
            ("account.read", "$share/group/+/devices/+/up", 1),
            ("account.both", "$share/group/app-one/#", 1),
            ("account.read", "app-two/devices/+/up", refused),
            ("account.both", "app-two/#", refused),
            ("account.both", "$share/group/app-two/devices/+/up", refused),
            ("account.both", "$SYS/#", refused),
            ("account.both", "$share/group/$SYS/#", refused),
            ("account.both", "/app-one/devices/+/up", refused),
            ("account.write", "app-one/devices/+/up", refused),
            ("account.write", "#", refused),
        ] {
            let mut client = RawClient::connect(harness.broker.address(), &Login::new(version, "app-one", key)).await;
            assert_eq!(client.subscribe(filter).await, expected, "version {version}, {key}, {filter}");
        }
    }
}

// Conformance: Publications elsewhere than to `down` of an own device
#[tokio::test]
async fn a_client_with_the_write_right_publishes_downlinks_of_its_own_application_only() {
    let harness = Harness::start().await;
    let mut observers = Vec::new();
    for app_id in APPS {
        let mut observer = RawClient::connect(harness.broker.address(), &Login::new(4, app_id, "account.both")).await;
        assert_eq!(observer.subscribe("#").await, 1);
        observers.push(observer);
    }
    for version in VERSIONS {
        for (key, topic, allowed) in [
            ("account.write", "app-one/devices/dev/down", true),
            ("account.both", "app-one/devices/dev-2/down", true),
            ("account.read", "app-one/devices/dev/down", false),
            ("account.both", "app-one/devices/dev/up", false),
            ("account.both", "app-one/devices/dev/events/up/errors", false),
            ("account.both", "app-one/devices/dev/down/more", false),
            ("account.both", "app-one/devices/Not a device/down", false),
            ("account.both", "app-one/down", false),
            ("account.both", "app-two/devices/dev/down", false),
        ] {
            let mut client = RawClient::connect(harness.broker.address(), &Login::new(version, "app-one", key)).await;
            client.publish(topic, "attempt").await;
            harness.clock.advance(Duration::from_secs(10));
            // When the marker arrives, everything published before it has been routed.
            let mut marker =
                RawClient::connect(harness.broker.address(), &Login::new(4, "app-one", "account.write")).await;
            marker.publish("app-one/devices/marker/down", "marker").await;
            let first = observers[0].next().await;
            if allowed {
                assert_eq!(first, (topic.to_owned(), "attempt".to_owned()));
                observers[0].next().await;
            } else if first.0 == "app-one/events/down/errors" {
                assert!(key != "account.read" && topic.starts_with("app-one/"), "{key}, {topic}");
                assert_eq!(observers[0].next().await.1, "marker", "version {version}, {key}, {topic}");
            } else {
                assert_eq!(first.1, "marker", "version {version}, {key}, {topic}");
            }
        }
    }
    let mut marker = RawClient::connect(harness.broker.address(), &Login::new(4, "app-two", "account.write")).await;
    marker.publish("app-two/devices/marker/down", "marker").await;
    assert_eq!(observers[1].next().await.1, "marker", "app-two received a message of app-one");
}

/// Only MQTT 5 can refuse a publication, so the application is told of those that may be a mistake.
// Conformance: An event tells the application of downlinks to topics with a mistake
#[tokio::test]
async fn an_event_tells_of_downlinks_that_reach_no_device() {
    let harness = Harness::start().await;
    let address = harness.broker.address();
    let mut observer = RawClient::connect(address, &Login::new(4, "app-one", "account.read")).await;
    observer.subscribe("app-one/events/#").await;
    for version in VERSIONS {
        let login = Login::new(version, "app-one", "account.write").with_client_id("careless");
        let mut client = RawClient::connect(address, &login).await;
        for topic in ["app-one/devices/Dev/down", "app-one/devices/dev/down/more", "app-one/devices/dev/Down"] {
            client.publish(topic, "{}").await;
            let (told, body) = observer.next().await;
            assert_eq!(told, "app-one/events/down/errors");
            let event: serde_json::Value = serde_json::from_str(&body).unwrap();
            assert_eq!(event["client_id"], "careless");
            assert!(event["time"].as_str().unwrap().ends_with('Z'), "{event}");
            let error = format!("nothing is published on {topic}: downlinks go to app-one/devices/<device id>/down");
            assert_eq!((&event["error"], event.get("suppressed")), (&error.as_str().into(), None));
        }
        // Of others' topics, and of those who may not write, nobody is told.
        client.publish("app-two/devices/Dev/down", "{}").await;
        let mut reader = RawClient::connect(address, &Login::new(version, "app-one", "account.read")).await;
        reader.publish("app-one/devices/Dev/down", "{}").await;
        client.publish(&format!("app-one/{}", "ü".repeat(4000)), "{}").await;
        let (_, body) = observer.next().await;
        assert!(body.contains("app-one/üüü") && body.len() < 500, "{body}");
    }
}

/// Telemetry that goes to the wrong topics must not push uplinks out of the queues of clients that are away.
#[tokio::test]
async fn a_client_that_publishes_no_downlinks_leaves_room_for_uplinks() {
    let settings = BrokerSettings { publishes_per_second_max: 1_000_000, ..settings() };
    let harness = Harness::start_with(settings).await;
    let address = harness.broker.address();
    let absent = Login::new(4, "app-one", "account.read").with_client_id("absent").persistent();
    let mut observer = RawClient::connect(address, &absent).await;
    observer.subscribe("#").await;
    observer.disconnect().await;
    publish_up(&mut harness.handler().await, "app-one", "uplink").await;
    let login = Login::new(4, "app-one", "account.write");
    // A connection of its own for each message changes nothing.
    for _ in 0..20 {
        RawClient::connect(address, &login).await.publish("app-one/telemetry", "{}").await;
    }
    let mut client = RawClient::connect(address, &login).await;
    for qos in [QoS::AtMostOnce, QoS::AtLeastOnce] {
        for _ in 0..500 {
            client.send_publish("app-one/telemetry", "{}", qos, false).await;
        }
    }
    client.ping().await;
    harness.clock.advance(Duration::from_secs(10));
    client.send_publish("app-one/telemetry", "{}", QoS::AtMostOnce, false).await;
    client.ping().await;
    assert_eq!(harness.application_metric("queued_messages", "app-one"), Some(12));
    let mut observer = RawClient::connect(address, &absent).await;
    assert_eq!(observer.next().await.1, "uplink");
    for suppressed in [vec![None; 10], vec![Some(1000)]].concat() {
        let event: serde_json::Value = serde_json::from_str(&observer.next().await.1).unwrap();
        assert_eq!(event.get("suppressed").and_then(serde_json::Value::as_u64), suppressed, "{event}");
    }
}

// Conformance: Subscriptions: 0x80 or 0x87 outside the application
#[tokio::test]
async fn wildcards_match_the_own_application_only() {
    let harness = Harness::start().await;
    let mut handler = harness.handler().await;
    for version in VERSIONS {
        for filter in
            ["#", "+/#", "+/devices/#", "+/devices/+/up", "+/+/+/+", "$share/group/+/devices/+/up", "$share/g/#"]
        {
            let mut client =
                RawClient::connect(harness.broker.address(), &Login::new(version, "app-one", "account.read")).await;
            assert_eq!(client.subscribe(filter).await, 1);
            publish_up(&mut handler, "app-two", "foreign").await;
            publish_up(&mut handler, "app-one", "own").await;
            let arrived = client.next().await;
            assert_eq!(arrived, ("app-one/devices/dev/up".to_owned(), "own".to_owned()), "{version}, {filter}");
        }
    }
}

// Conformance: Subscriptions: 0x80 or 0x87 outside the application
#[tokio::test]
async fn shared_subscriptions_stay_within_an_application() {
    let harness = Harness::start().await;
    let mut handler = harness.handler().await;
    let mut clients = Vec::new();
    for app_id in APPS {
        let mut client = RawClient::connect(harness.broker.address(), &Login::new(5, app_id, "account.read")).await;
        assert_eq!(client.subscribe("$share/workers/+/devices/+/up").await, 1);
        clients.push(client);
    }
    for number in 0..4 {
        for app_id in APPS {
            publish_up(&mut handler, app_id, &format!("{app_id} {number}")).await;
        }
    }
    for (client, app_id) in clients.iter_mut().zip(APPS) {
        for number in 0..4 {
            assert_eq!(client.next().await.1, format!("{app_id} {number}"));
        }
    }
}

#[tokio::test]
async fn unsubscribes_a_narrowed_filter_by_its_original_text() {
    let harness = Harness::start().await;
    let mut handler = harness.handler().await;
    let mut client = RawClient::connect(harness.broker.address(), &Login::new(4, "app-one", "account.read")).await;
    client.subscribe("+/devices/+/up").await;
    client.subscribe("+/devices/+/events/#").await;
    client.unsubscribe("+/devices/+/up").await;
    publish_up(&mut handler, "app-one", "unwanted").await;
    let errors = "app-one/devices/dev/events/up/errors";
    handler.publish(errors, "wanted").await;
    assert_eq!(client.next().await.1, "wanted");
}

// Conformance: Publications elsewhere than to `down` of an own device
#[tokio::test]
async fn checks_a_will_like_any_publication() {
    let harness = Harness::start().await;
    for version in VERSIONS {
        let refused = code(version, 5, 0x87);
        for (key, topic, expected) in [
            ("account.write", "app-one/devices/dev/down", 0),
            ("account.read", "app-one/devices/dev/down", refused),
            ("account.both", "app-one/devices/dev/up", refused),
            ("account.both", "app-two/devices/dev/down", refused),
        ] {
            let login = Login::new(version, "app-one", key).with_will(topic);
            let (_, status, _) = RawClient::try_connect(harness.broker.address(), &login).await;
            assert_eq!(status, expected, "version {version}, {key}, {topic}");
        }
    }
}

#[tokio::test]
async fn publishes_a_will_when_the_connection_breaks_but_not_after_disconnect() {
    let harness = Harness::start().await;
    let mut observer = RawClient::connect(harness.broker.address(), &Login::new(4, "app-one", "account.read")).await;
    observer.subscribe("#").await;
    let login = |topic| Login::new(4, "app-one", "account.write").with_will(topic);
    let leaving = RawClient::connect(harness.broker.address(), &login("app-one/devices/leaving/down")).await;
    leaving.disconnect().await;
    let breaking = RawClient::connect(harness.broker.address(), &login("app-one/devices/breaking/down")).await;
    drop(breaking);
    assert_eq!(observer.next().await, ("app-one/devices/breaking/down".to_owned(), "will".to_owned()));
}

#[tokio::test]
async fn nothing_is_retained() {
    let harness = Harness::start().await;
    let address = harness.broker.address();
    let mut old = RawClient::connect(address, &Login::new(4, "app-one", "account.write")).await;
    old.send_publish("app-one/devices/dev/down", "retained?", QoS::AtLeastOnce, true).await;
    old.publish("app-one/devices/dev/down", "acknowledged").await;
    let mut new = RawClient::connect(address, &Login::new(5, "app-one", "account.write")).await;
    new.send_publish("app-one/devices/dev/down", "retained?", QoS::AtLeastOnce, true).await;
    assert_eq!(new.closed().await, Some(0x9a));
    let mut late = RawClient::connect(address, &Login::new(4, "app-one", "account.both")).await;
    late.subscribe("#").await;
    late.publish("app-one/devices/dev/down", "now").await;
    assert_eq!(late.next().await.1, "now");
}

#[tokio::test]
async fn delivers_messages_published_with_qos_2() {
    let harness = Harness::start().await;
    for version in VERSIONS {
        let mut client =
            RawClient::connect(harness.broker.address(), &Login::new(version, "app-one", "account.both")).await;
        assert_eq!(client.subscribe("#").await, 1);
        client.publish_once("app-one/devices/dev/down", "settled").await;
        assert_eq!(client.next().await.1, "settled");
    }
}

#[tokio::test]
async fn a_client_of_mqtt_3_1_subscribes_and_publishes() {
    let harness = Harness::start().await;
    let login = Login::new(MQTT_31, "app-one", "account.both").with_client_id("old").persistent();
    let mut client = RawClient::connect(harness.broker.address(), &login).await;
    assert_eq!(client.subscribe("+/devices/+/down").await, 1);
    client.publish("app-one/devices/dev/down", "hello").await;
    assert_eq!(client.next().await, ("app-one/devices/dev/down".to_owned(), "hello".to_owned()));
    drop(client);
    // The session is there, but MQTT 3.1 has no flag to say so.
    let (mut client, code, present) = RawClient::try_connect(harness.broker.address(), &login).await;
    assert_eq!((code, present), (0, false));
    client.publish("app-one/devices/dev/down", "again").await;
    assert_eq!(client.next().await.1, "again");
}

#[tokio::test]
async fn a_session_that_outlives_its_connection_needs_a_client_identifier() {
    let harness = Harness::start().await;
    for (version, expected) in [(MQTT_31, 2), (4, 2), (5, 0)] {
        let login = Login::new(version, "app-one", "account.read").persistent();
        let (_, status, _) = RawClient::try_connect(harness.broker.address(), &login).await;
        assert_eq!(status, expected, "version {version}");
    }
}
