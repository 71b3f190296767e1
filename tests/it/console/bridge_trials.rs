//! Networks that operators try before they are in the settings.

use std::{fs, path::Path, sync::Arc, time::Duration};

use api::chirpstack::CodecRuntime;
use console::NetworksStatus;
use server::system::SystemClock;
use testing::{CHIRPSTACK_APPLICATION, CHIRPSTACK_APPLICATION_NAME, CHIRPSTACK_TOKEN};
use tokio::{net::TcpListener, time::sleep};
use types::AppId;

use super::{
    bridges::{away, bridged, check},
    operator::{Fake, HOSTILE, start},
};
use crate::{
    harness::Network,
    networks::harness::{ChirpStack, DEVICE, uplink},
};

const PATH: &str = "/console/bridges/new";
/// Where networks that are tried are imported, in the data directory.
const TRIALS: &str = "bridge/trial";

/// The form of a ChirpStack.
fn form<'a>(chirpstack: &'a [String; 2], api_key: &'a str) -> [(&'a str, &'a str); 6] {
    let [mqtt_url, api_url] = chirpstack.each_ref().map(String::as_str);
    [
        ("kind", "chirpstack"),
        ("mqtt_url", mqtt_url),
        ("api_url", api_url),
        ("api_key", api_key),
        ("application", CHIRPSTACK_APPLICATION_NAME),
        ("app_id", "alice-app"),
    ]
}

#[tokio::test]
async fn only_operators_try_networks_and_what_fails_is_no_markup() {
    let fake = Fake::with_networks(NetworksStatus::default());
    let (_network, [alice, bobby, nobody]) = start(Some(fake)).await;
    check(&alice.get("/console/bridges").await, &["href=\"/console/bridges/new\""]);
    assert_eq!(alice.get(PATH).await.status, 200);
    let urls = [HOSTILE, "http://localhost:1"].map(str::to_owned);
    let page = alice.post(PATH, &form(&urls, "hush-key")).await;
    check(&page, &["The network cannot be used", "everything of user ", "value=\"http://localhost:1\""]);
    assert!(!page.html.contains("hush-key") && !page.html.contains("<b>"), "{}", page.html);
    let page = alice.post(PATH, &form(&urls, "")).await;
    assert_eq!(page.status, 400);
    check(&page, &["The API key is missing"]);

    for page in [bobby.get(PATH).await, bobby.post(PATH, &form(&urls, "key")).await] {
        assert_eq!(page.status, 404, "{}", page.html);
    }
    assert!(nobody.get(PATH).await.path.starts_with("/users/login"));
    assert_eq!(alice.post_from(Some("https://evil.example"), PATH, &form(&urls, "key")).await.status, 403);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_sees_the_first_uplink_of_a_network_and_what_to_set() {
    let Some(mut chirpstack) = ChirpStack::start().await else { return };
    let codec = "function decodeUplink(input) { return {data: {n: input.bytes[0]}} }";
    chirpstack.api.set_profile("profile", CodecRuntime::Js, codec);
    let entry = |dir: &Path, _: &AppId| {
        let left = dir.join(TRIALS).join("killed");
        fs::create_dir_all(&left).unwrap();
        fs::write(left.join("imported.json"), "{}").unwrap();
        away("alice-app")
    };
    let (network, visitor) = bridged(Arc::new(SystemClock), entry).await;
    let trials = network.dir.path().join(TRIALS);
    assert!(!trials.exists(), "what a killed process left is removed");
    let urls = [chirpstack.broker.url(), chirpstack.api_url.clone()];
    let page = visitor.post(PATH, &form(&urls, "wrong")).await;
    check(&page, &["The network cannot be used", "does not accept the API key;"]);
    let closed = [urls[0].clone(), "http://127.0.0.1:1".to_owned()];
    let page = visitor.post(PATH, &form(&closed, CHIRPSTACK_TOKEN)).await;
    check(&page, &["cannot reach the ChirpStack API at 127.0.0.1:1", "Connection refused"]);
    assert!(!page.html.contains("code: "), "{}", page.html);
    let without_scheme = ["localhost".to_owned(), urls[1].clone()];
    let page = visitor.post(PATH, &form(&without_scheme, CHIRPSTACK_TOKEN)).await;
    check(&page, &["<p>Broker: must be like mqtt://host:1883</p>"]);
    let mut elsewhere = form(&urls, CHIRPSTACK_TOKEN);
    elsewhere[5].1 = "bobby-app";
    let page = visitor.post(PATH, &elsewhere).await;
    assert_eq!(page.status, 400);
    check(&page, &["The application here, bobby-app, is not registered", "airlock applications add"]);
    assert!(!page.html.contains("[[bridge]]"), "{}", page.html);

    for (application, is_taken) in [("attic", false), (CHIRPSTACK_APPLICATION_NAME, true)] {
        let mut fields = form(&urls, CHIRPSTACK_TOKEN);
        fields[4].1 = application;
        let sending = async {
            // Nobody keeps what is sent before it listens.
            for counter in 0.. {
                chirpstack.send(DEVICE, "up", &uplink(DEVICE, "Kitchen", counter)).await;
                sleep(Duration::from_millis(50)).await;
            }
        };
        let page = tokio::select! {
            page = visitor.post(PATH, &fields) => page,
            () = sending => panic!("it sends until the page is there"),
        };
        let heard = format!("the application {CHIRPSTACK_APPLICATION_NAME} ({CHIRPSTACK_APPLICATION}) came");
        check(&page, &["The network is connected", &heard, "profile profile", "&#34;n&#34;: 1"]);
        check(&page, &["chirpstack.grpc.token_file"]);
        assert_eq!(page.html.contains("it would be ignored"), !is_taken, "{}", page.html);
        assert!(!page.html.contains(CHIRPSTACK_TOKEN), "{}", page.html);
    }
    assert_eq!(fs::read_dir(&trials).unwrap().count(), 0, "nothing is kept");
    network.stack.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trial_ends_with_the_server() {
    let (Network { stack, dir }, visitor) = bridged(Arc::new(SystemClock), |_, _| away("alice-app")).await;
    // It accepts connections, and says nothing.
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let urls = ["mqtt://127.0.0.1:1".to_owned(), format!("http://{}", silent.local_addr().unwrap())];
    let (fields, trials) = (form(&urls, "key"), dir.path().join(TRIALS));
    let stopping = async {
        while fs::read_dir(&trials).map_or(0, Iterator::count) == 0 {
            sleep(Duration::from_millis(10)).await;
        }
        stack.stop().await;
    };
    let (page, ()) = tokio::join!(visitor.post(PATH, &fields), stopping);
    check(&page, &["The network cannot be used", "the server is stopping"]);
    assert_eq!(fs::read_dir(&trials).unwrap().count(), 0, "nothing is kept");
}
