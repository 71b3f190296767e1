//! Networks that operators try before they are in the settings.

use std::{fs, path::Path, sync::Arc, time::Duration};

use api::chirpstack::CodecRuntime;
use console::NetworksStatus;
use server::system::SystemClock;
use testing::{
    CHIRPSTACK_APPLICATION, CHIRPSTACK_APPLICATION_NAME, CHIRPSTACK_TOKEN, ChirpStackApi, THINGS_STACK_KEY,
    ThingsStackApi,
};
use tokio::{
    io::AsyncReadExt,
    net::{TcpListener, TcpStream},
    time::sleep,
};
use types::AppId;

use crate::{
    console::{
        bridges::{away, bridged, check},
        operator::{Fake, HOSTILE, start},
    },
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
    check(&page, &["The network cannot be used", "Broker: everything of user ", "badge bad\">failed<"]);
    check(&page, &["value=\"http://localhost:1\""]);
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

// Conformance: console: bridges, kept up to date, and trials of networks
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
    (elsewhere[4].1, elsewhere[5].1) = ("attic", "bobby-app");
    let page = visitor.post(PATH, &elsewhere).await;
    check(&page, &["bobby-app is not registered with this handler", "airlock applications add"]);
    check(&page, &["it accepts the key", "ChirpStack has no application with this name"]);
    assert!(!page.html.contains("register = true"), "{}", page.html);

    for (application, is_taken) in [(CHIRPSTACK_APPLICATION_NAME, true), ("attic", false)] {
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
        check(&page, &["chirpstack.grpc.token_file", "alice-app already, and with two of them"]);
        assert_eq!(page.html.contains("it would be ignored"), !is_taken, "{}", page.html);
        assert_eq!(page.html.contains("cannot search for names"), !is_taken, "{}", page.html);
        assert!(!page.html.contains(CHIRPSTACK_TOKEN), "{}", page.html);
        chirpstack.api.restrict_token();
    }
    assert_eq!(fs::read_dir(&trials).unwrap().count(), 0, "nothing is kept");
    network.stack.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_key_of_the_things_stack_and_one_of_another_application_are_told_apart() {
    let (network, visitor) = bridged(Arc::new(SystemClock), |_, _| away("alice-app")).await;
    let api = ThingsStackApi::start().await;
    api.restrict_key("attic");
    let url = api.url();
    let tried = async |api_key: &str, application: &str| {
        let kind = ("kind", "things-stack");
        let fields =
            [kind, ("api_url", &*url), ("api_key", api_key), ("application", application), ("app_id", "bobby-app")];
        visitor.post(PATH, &fields).await
    };
    check(&tried("wrong", "attic@lab").await, &["failed</span> bobby-app is not registered", "accept an API key"]);
    let page = tried(THINGS_STACK_KEY, "sensors@lab").await;
    check(&page, &["it accepts the key", "the API key is that of the application attic: enter that one"]);
    let page = tried(THINGS_STACK_KEY, "attic@lab").await;
    check(&page, &["passed</span> the API has it", "bobby-app is not registered"]);
    network.stack.stop().await;
}

/// A ChirpStack whose broker accepts connections and says nothing.
struct Silent {
    api: ChirpStackApi,
    broker: TcpListener,
}

impl Silent {
    async fn start() -> Self {
        Self { api: ChirpStackApi::start().await, broker: TcpListener::bind("127.0.0.1:0").await.unwrap() }
    }

    fn urls(&self) -> [String; 2] {
        [format!("mqtt://{}", self.broker.local_addr().unwrap()), self.api.url()]
    }

    /// The connection of a trial.
    async fn connection(&self) -> TcpStream {
        self.broker.accept().await.unwrap().0
    }
}

/// Waits until nothing is left of any trial.
async fn ended(trials: &Path) {
    while fs::read_dir(trials).unwrap().count() > 0 {
        sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trial_ends_with_the_server() {
    let (Network { stack, dir }, visitor) = bridged(Arc::new(SystemClock), |_, _| away("alice-app")).await;
    let silent = Silent::start().await;
    let (urls, trials) = (silent.urls(), dir.path().join(TRIALS));
    let fields = form(&urls, CHIRPSTACK_TOKEN);
    let stopping = async {
        let _connection = silent.connection().await;
        assert_eq!(fs::read_dir(&trials).unwrap().count(), 1);
        stack.stop().await;
    };
    let (page, ()) = tokio::join!(visitor.post(PATH, &fields), stopping);
    check(&page, &["The network cannot be used", "the server is stopping"]);
    assert_eq!(fs::read_dir(&trials).unwrap().count(), 0, "nothing is kept");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trial_ends_when_the_browser_leaves() {
    let (network, visitor) = bridged(Arc::new(SystemClock), |_, _| away("alice-app")).await;
    let silent = Silent::start().await;
    let (urls, trials) = (silent.urls(), network.dir.path().join(TRIALS));
    let fields = form(&urls, CHIRPSTACK_TOKEN);
    let greeted = async {
        let mut connection = silent.connection().await;
        connection.read_u8().await.unwrap();
        connection
    };
    let mut connection = tokio::select! {
        page = visitor.post(PATH, &fields) => panic!("the broker is silent: {}", page.html),
        connection = greeted => connection,
    };
    // The request has been dropped, and with it its connection. Whether it was closed or reset is the same here.
    _ = connection.read_to_end(&mut Vec::new()).await;
    ended(&trials).await;
    network.stack.stop().await;
}

// Conformance: console: bridges, kept up to date, and trials of networks
#[tokio::test(flavor = "multi_thread")]
async fn a_second_trial_of_the_same_user_replaces_the_first() {
    let (network, visitor) = bridged(Arc::new(SystemClock), |_, _| away("alice-app")).await;
    let silent = Silent::start().await;
    let (urls, trials) = (silent.urls(), network.dir.path().join(TRIALS));
    let fields = form(&urls, CHIRPSTACK_TOKEN);
    let second = async {
        let _connection = silent.connection().await;
        visitor.post(PATH, &form(&urls, "wrong")).await
    };
    let (first, second) = tokio::join!(visitor.post(PATH, &fields), second);
    check(&first, &["The network cannot be used", "you have started another trial"]);
    check(&second, &["The network cannot be used", "does not accept the API key"]);
    ended(&trials).await;
    network.stack.stop().await;
}
