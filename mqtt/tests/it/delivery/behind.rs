//! Messages that are sent again: sessions get them only while they have room for more than live messages.

use mqtt::{Publication, Recipients};
use types::AppId;

use crate::harness::{
    Harness, eventually,
    raw_client::{Login, RawClient},
};

const UP: &str = "app-one/devices/dev/up";

fn app_id() -> AppId {
    "app-one".parse().unwrap()
}

fn publication(topic: &str, payload: usize) -> Publication {
    Publication { topic: topic.to_owned(), payload: payload.to_string().into() }
}

/// A client with these subscriptions, whose session waits for it.
async fn client(harness: &Harness, id: &'static str, filters: &[&str]) -> RawClient {
    let login = Login::new(5, "app-one", "account.read").with_client_id(id).persistent();
    let mut client = RawClient::connect(harness.broker.address(), &login).await;
    for filter in filters {
        client.subscribe(filter).await;
    }
    client
}

/// Publishes as many live messages as a session may have when it has no room for others.
fn fill(harness: &Harness) {
    harness.router.publish(&app_id(), (0..100).map(|number| publication(UP, number))).forget();
}

#[tokio::test]
async fn a_session_with_many_live_messages_gets_no_others_and_keeps_them() {
    let harness = Harness::start().await;
    client(&harness, "away", &["#"]).await.disconnect().await;
    let spare = |topic| harness.router.spare(&app_id(), [topic].into_iter(), 1);
    assert_eq!((spare(UP).sessions, spare(UP).messages), (1, 100));
    fill(&harness);
    let mut present = client(&harness, "present", &["app-one/devices/+/up"]).await;
    let full = spare(UP).full;
    assert_eq!((spare(UP).sessions, spare(UP).messages, full.len()), (1, 100, 1));
    assert_eq!(spare("app-one/devices/dev/events/create").sessions, 0, "nobody else gets them");
    let (recipients, published) = harness.router.publish_behind(&app_id(), publication(UP, 7));
    assert_eq!(recipients, Recipients { taken: 1, full });
    published.stored().await.unwrap();
    assert_eq!(present.next().await.1, "7");
    let mut away = client(&harness, "away", &[]).await;
    for number in 0..100 {
        assert_eq!(away.next().await.1, number.to_string());
    }
    eventually("there is room when the client has what was live", async {
        while !spare(UP).full.is_empty() {
            away.ping().await;
        }
    })
    .await;
}

#[tokio::test]
async fn of_those_who_share_a_subscription_one_with_room_gets_them() {
    let harness = Harness::start().await;
    client(&harness, "away", &["#", "$share/group/app-one/again/#"]).await.disconnect().await;
    let mut present = client(&harness, "present", &["$share/group/app-one/again/#"]).await;
    fill(&harness);
    for number in 0..4 {
        let (recipients, _published) =
            harness.router.publish_behind(&app_id(), publication("app-one/again/devices/dev/up", number));
        assert_eq!(recipients, Recipients { taken: 1, full: vec![] });
        assert_eq!(present.next().await.1, number.to_string());
    }
}

#[tokio::test]
async fn topics_below_a_prefix_reach_filters_that_name_it_and_no_wildcards() {
    let topic = "app-one/again/devices/dev/up";
    for (filter, expected) in [
        ("app-one/again/devices/+/up", 1),
        ("app-one/again/#", 1),
        ("+/again/+/+/+", 1),
        ("app-one/again/devices/dev/up", 1),
        ("#", 0),
        ("app-one/#", 0),
        ("app-one/+/devices/+/up", 0),
        ("app-one/devices/+/up", 0),
        ("app-one/other/#", 0),
    ] {
        let harness = Harness::start().await;
        let _client = client(&harness, "client", &[filter]).await;
        assert_eq!(harness.router.spare(&app_id(), [topic].into_iter(), 1).sessions, expected, "{filter}");
        let (recipients, _published) = harness.router.publish_behind(&app_id(), publication(topic, 1));
        assert_eq!(recipients.taken, expected, "{filter}");
    }
}
