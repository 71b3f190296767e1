//! Who may connect, subscribe and publish; and that nobody sees what belongs to others.

use handler::output::{Output, Topic};
use mqtt5::QoS;

use crate::{
    peer::{Login, Peer},
    stage::{APPS, Stage, message, publish_up},
};

/// The codes of MQTT 3.1.1 and of MQTT 5.
const VERSIONS: [u8; 2] = [4, 5];

fn code(version: u8, old: u8, new: u8) -> u8 {
    if version == 4 { old } else { new }
}

#[tokio::test]
async fn bad_credentials_are_refused_with_the_code_that_clients_look_for() {
    let stage = Stage::set().await;
    stage.keys.grant("app-one", "account.none", &[]);
    for version in VERSIONS {
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
            let (_, answered, _) = Peer::greet(stage.broker.address(), &login(user, password)).await;
            assert_eq!(answered, expected, "version {version}, user {user:?}, password {password:?}");
        }
    }
}

#[tokio::test]
async fn an_account_service_that_is_away_is_no_reason_to_ask_for_another_password() {
    let stage = Stage::set().await;
    stage.keys.set_away(true);
    for version in VERSIONS {
        let (_, answered, _) =
            Peer::greet(stage.broker.address(), &Login::new(version, "app-one", "account.read")).await;
        assert_eq!(answered, code(version, 3, 0x88));
    }
}

#[tokio::test]
async fn other_versions_are_told_that_they_are_not_spoken() {
    let stage = Stage::set().await;
    for (version, expected) in [(3, 1), (6, 0x84)] {
        let (_, answered, _) =
            Peer::greet(stage.broker.address(), &Login::new(version, "app-one", "account.read")).await;
        assert_eq!(answered, expected, "version {version}");
    }
}

#[tokio::test]
async fn the_engine_itself_takes_no_credential_of_an_application() {
    let stage = Stage::set().await;
    let engine = stage.broker.internal().address.parse().unwrap();
    for user in ["app-one", "app-one:rw", "handler:"] {
        let (_, answered, _) = Peer::greet(engine, &Login::new(4, user, "account.both")).await;
        assert_eq!(answered, 4, "{user}");
    }
}

#[tokio::test]
async fn the_handler_speaks_for_every_device_and_hears_every_downlink() {
    let stage = Stage::set().await;
    let internal = stage.broker.internal();
    let login = Login {
        user: Some(Box::leak(internal.username.into_boxed_str())),
        password: Some(Box::leak(internal.password.expose().to_owned().into_boxed_str())),
        ..Login::new(4, "", "")
    };
    let mut handler = Peer::connect(internal.address.parse().unwrap(), &login).await;
    assert_eq!(handler.subscribe("#").await, 0x80);
    assert_eq!(handler.subscribe("+/devices/+/down").await, 2);
    for app_id in APPS {
        let topic = format!("{app_id}/devices/dev/down");
        let mut peer = Peer::connect(stage.broker.address(), &Login::new(4, app_id, "account.both")).await;
        peer.publish(&topic, "down").await;
        assert_eq!(handler.next().await, (topic, "down".to_owned()));
        peer.subscribe("#").await;
        handler.publish("elsewhere", "unheard").await;
        handler.publish(&format!("{app_id}/devices/dev/up"), "up").await;
        assert_eq!(peer.next().await.1, "up");
    }
}

#[tokio::test]
async fn a_credential_subscribes_to_its_own_application_if_it_may_read() {
    let stage = Stage::set().await;
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
            let mut peer = Peer::connect(stage.broker.address(), &Login::new(version, "app-one", key)).await;
            assert_eq!(peer.subscribe(filter).await, expected, "version {version}, {key}, {filter}");
        }
    }
}

#[tokio::test]
async fn a_credential_publishes_downlinks_of_its_own_application_if_it_may_write() {
    let stage = Stage::set().await;
    let mut observers = Vec::new();
    for app_id in APPS {
        let mut observer = Peer::connect(stage.broker.address(), &Login::new(4, app_id, "account.both")).await;
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
            let mut peer = Peer::connect(stage.broker.address(), &Login::new(version, "app-one", key)).await;
            peer.publish(topic, "tried").await;
            // Whatever was published before this has been routed when this arrives.
            let mut marker = Peer::connect(stage.broker.address(), &Login::new(4, "app-one", "account.write")).await;
            marker.publish("app-one/devices/marker/down", "marker").await;
            let first = observers[0].next().await;
            if allowed {
                assert_eq!(first, (topic.to_owned(), "tried".to_owned()));
                observers[0].next().await;
            } else {
                assert_eq!(first.1, "marker", "version {version}, {key}, {topic}");
            }
        }
    }
    let mut marker = Peer::connect(stage.broker.address(), &Login::new(4, "app-two", "account.write")).await;
    marker.publish("app-two/devices/marker/down", "marker").await;
    assert_eq!(observers[1].next().await.1, "marker", "app-two got what app-one published");
}

#[tokio::test]
async fn a_wildcard_shows_the_own_application_and_no_other() {
    let stage = Stage::set().await;
    let output = stage.output().await;
    for version in VERSIONS {
        for filter in
            ["#", "+/#", "+/devices/#", "+/devices/+/up", "+/+/+/+", "$share/group/+/devices/+/up", "$share/g/#"]
        {
            let mut peer = Peer::connect(stage.broker.address(), &Login::new(version, "app-one", "account.read")).await;
            assert_eq!(peer.subscribe(filter).await, 1);
            publish_up(&output, "app-two", "foreign");
            publish_up(&output, "app-one", "own");
            let arrived = peer.next().await;
            assert_eq!(arrived, ("app-one/devices/dev/up".to_owned(), "own".to_owned()), "{version}, {filter}");
        }
    }
}

#[tokio::test]
async fn a_group_of_the_same_name_is_shared_within_an_application_only() {
    let stage = Stage::set().await;
    let output = stage.output().await;
    let mut peers = Vec::new();
    for app_id in APPS {
        let mut peer = Peer::connect(stage.broker.address(), &Login::new(5, app_id, "account.read")).await;
        assert_eq!(peer.subscribe("$share/workers/+/devices/+/up").await, 1);
        peers.push(peer);
    }
    for number in 0..4 {
        for app_id in APPS {
            publish_up(&output, app_id, &format!("{app_id} {number}"));
        }
    }
    for (peer, app_id) in peers.iter_mut().zip(APPS) {
        for number in 0..4 {
            assert_eq!(peer.next().await.1, format!("{app_id} {number}"));
        }
    }
}

#[tokio::test]
async fn a_scoped_filter_is_unsubscribed_by_the_name_it_was_asked_for() {
    let stage = Stage::set().await;
    let output = stage.output().await;
    let mut peer = Peer::connect(stage.broker.address(), &Login::new(4, "app-one", "account.read")).await;
    peer.subscribe("+/devices/+/up").await;
    peer.subscribe("+/devices/+/events/#").await;
    peer.unsubscribe("+/devices/+/up").await;
    publish_up(&output, "app-one", "unwanted");
    output.publish(message("app-one", Topic::UpErrors, "wanted"));
    assert_eq!(peer.next().await.1, "wanted");
}

#[tokio::test]
async fn a_will_is_a_publication_like_any_other() {
    let stage = Stage::set().await;
    for version in VERSIONS {
        let refused = code(version, 5, 0x87);
        for (key, topic, expected) in [
            ("account.write", "app-one/devices/dev/down", 0),
            ("account.read", "app-one/devices/dev/down", refused),
            ("account.both", "app-one/devices/dev/up", refused),
            ("account.both", "app-two/devices/dev/down", refused),
        ] {
            let login = Login::new(version, "app-one", key).with_will(topic);
            let (_, answered, _) = Peer::greet(stage.broker.address(), &login).await;
            assert_eq!(answered, expected, "version {version}, {key}, {topic}");
        }
    }
}

#[tokio::test]
async fn a_will_is_published_when_the_connection_breaks_and_not_when_the_client_leaves() {
    let stage = Stage::set().await;
    let mut observer = Peer::connect(stage.broker.address(), &Login::new(4, "app-one", "account.read")).await;
    observer.subscribe("#").await;
    let login = |topic| Login::new(4, "app-one", "account.write").with_will(topic);
    let leaving = Peer::connect(stage.broker.address(), &login("app-one/devices/leaving/down")).await;
    leaving.leave().await;
    let breaking = Peer::connect(stage.broker.address(), &login("app-one/devices/breaking/down")).await;
    drop(breaking);
    assert_eq!(observer.next().await, ("app-one/devices/breaking/down".to_owned(), "will".to_owned()));
}

#[tokio::test]
async fn nothing_is_retained() {
    let stage = Stage::set().await;
    let address = stage.broker.address();
    let mut old = Peer::connect(address, &Login::new(4, "app-one", "account.write")).await;
    old.send_publish("app-one/devices/dev/down", "kept?", QoS::AtLeastOnce, true).await;
    old.publish("app-one/devices/dev/down", "acknowledged").await;
    let mut new = Peer::connect(address, &Login::new(5, "app-one", "account.write")).await;
    new.send_publish("app-one/devices/dev/down", "kept?", QoS::AtLeastOnce, true).await;
    assert_eq!(new.ended().await, Some(0x9a));
    let mut late = Peer::connect(address, &Login::new(4, "app-one", "account.both")).await;
    late.subscribe("#").await;
    late.publish("app-one/devices/dev/down", "now").await;
    assert_eq!(late.next().await.1, "now");
}

#[tokio::test]
async fn what_is_published_exactly_once_arrives_at_least_once() {
    let stage = Stage::set().await;
    for version in VERSIONS {
        let mut peer = Peer::connect(stage.broker.address(), &Login::new(version, "app-one", "account.both")).await;
        assert_eq!(peer.subscribe("#").await, 1);
        peer.publish_once("app-one/devices/dev/down", "settled").await;
        assert_eq!(peer.next().await.1, "settled");
    }
}
