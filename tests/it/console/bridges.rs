//! The page of bridges: who sees it, what it shows of a real network, and that nothing in it is markup.

mod refreshed;
mod trials;

use std::{fs, path::Path, sync::Arc, time::Duration};

use airlock::{
    serve::Stack,
    settings::{ApplicationSettings, NetworkSettings},
};
use api::chirpstack::CodecRuntime;
use bridge::Remote;
use chirpstack::{ChirpStackSettings, GrpcSettings};
use console::{
    ConnectionStatus, Count, DroppedEventStatus, EventStatus, NetworkStatus, NetworksStatus, RouteStatus,
    ShadowCodecStatus, ShadowConnection, ShadowStatus,
};
use server::system::SystemClock;
use testing::{CHIRPSTACK_APPLICATION, CHIRPSTACK_APPLICATION_NAME, CHIRPSTACK_TOKEN, ManualClock};
use tokio::net::TcpListener;
use types::{AppId, Clock, DeviceIds, Timestamp};

use super::{
    DECODER,
    browsing::{ask, logged_in},
    operator::{Fake, HOSTILE, id_of, start},
    visitor::{Page, Visitor},
};
use crate::{
    browser::{DESK, console::wait_for_text},
    harness::{Network, environment_at},
    networks::harness::{ChirpStack, DEVICE, uplink},
};

const PATH: &str = "/console/bridges";
/// All connections of a network are made.
const CONNECTED: &str = "badge good\">connected</span></h2>";

/// A network all of whose texts are this one.
fn network(text: &str) -> NetworkStatus {
    let text = || text.to_owned();
    let since = Timestamp::from_millis(1_790_000_000_000);
    NetworkStatus {
        name: text(),
        kind: text(),
        addresses: vec![(text(), text())],
        connections: vec![ConnectionStatus { name: text(), is_connected: false, since, failure: Some(text()) }],
        api: Some(ConnectionStatus { name: text(), is_connected: false, since, failure: Some(text()) }),
        routes: vec![RouteStatus {
            application: text(),
            app_id: text(),
            registers: true,
            decoded: 1,
            failed: 2,
            invalid: 3,
            not_converted: 4,
        }],
        events: EventStatus {
            received: 9,
            taken: 8,
            others: vec![Count { what: text(), count: 1 }],
            dropped: vec![DroppedEventStatus { time: since, device: text(), reason: "refused", detail: text() }],
            ..EventStatus::default()
        },
        downlinks: Err(text()),
    }
}

fn with_networks(networks: Vec<NetworkStatus>) -> Fake {
    let counts = vec![Count { what: "uplinks: decoded".to_owned(), count: 77 }];
    Fake::with_networks(NetworksStatus { networks, counts, ..NetworksStatus::default() })
}

#[tokio::test]
async fn operators_see_the_page_and_others_do_not_learn_of_it() {
    let (network, [alice, bobby, nobody]) = start(Some(with_networks(vec![network("north")]))).await;
    let page = alice.get(PATH).await;
    assert!(page.status == 200 && page.html.contains("8 of 9 handed over"), "{}: {}", page.status, page.html);
    assert!(page.html.contains("uplinks: decoded") && page.html.contains(">77<"), "{}", page.html);
    assert!(page.html.contains("href=\"/console/operator\" aria-current=\"true\""), "{}", page.html);
    assert!(alice.get("/console/operator").await.html.contains("href=\"/console/bridges\""));
    assert_eq!(alice.post(PATH, &[]).await.status, 404);

    let (page, unknown) = (bobby.get(PATH).await, bobby.get("/console/nothing").await);
    assert_eq!((page.status, page.html), (404, unknown.html));
    let page = nobody.get(PATH).await;
    assert!(page.path.starts_with("/users/login"), "{}", page.path);

    network.stack.stop().await;
    let page = alice.get(PATH).await;
    assert!(page.status == 200 && page.html.contains("Cannot reach the account service"), "{}", page.html);
    assert!(!page.html.contains("north") && !page.html.contains(">77<"), "{}", page.html);
    assert_eq!(bobby.get(PATH).await.status, 404);
}

/// A comparison all of whose texts are this one.
fn shadow(text: &str) -> ShadowStatus {
    let text = || text.to_owned();
    let codec = ShadowCodecStatus {
        name: text(),
        summary: text(),
        causes: vec![Count { what: text(), count: 1 }],
        time_us_max: 2,
        fuel_max: 3,
    };
    ShadowStatus {
        name: text(),
        kind: text(),
        addresses: vec![(text(), text())],
        connection: ShadowConnection::NotStarted(text()),
        since: Timestamp::from_millis(1_790_000_000_000),
        summary: text(),
        codecs: vec![codec],
    }
}

#[tokio::test]
async fn names_and_reasons_are_never_markup() {
    let (networks, shadows) = (vec![network(HOSTILE)], vec![shadow(HOSTILE)]);
    let fake = Fake::with_networks(NetworksStatus { networks, shadows, counts: Vec::new() });
    let (_network, [alice, ..]) = start(Some(fake)).await;
    let page = alice.get(PATH).await;
    assert_eq!(page.status, 200, "{}", page.html);
    assert!(!page.html.contains("<b>") && !page.html.contains(['\u{1b}', '\u{202e}']), "{}", page.html);
    assert!(page.html.matches(r"&#60;b&#62;\u001b[2J\u202e").count() >= 20, "{}", page.html);
}

#[tokio::test]
async fn a_network_that_sends_webhooks_has_no_connections_and_only_own_applications_are_links() {
    let (connections, downlinks) = (Vec::new(), Ok((3, 2)));
    let mut north = NetworkStatus { connections, api: None, downlinks, ..network("bobby-app") };
    north.routes.push(RouteStatus { app_id: "alice-app".to_owned(), ..north.routes[0].clone() });
    let (_network, [alice, ..]) = start(Some(with_networks(vec![north]))).await;
    let page = alice.get(PATH).await;
    for part in [
        "sends webhooks",
        "3 sent, 2 attempts refused",
        "not known yet",
        "href=\"/console/applications/alice-app\">alice-app</a>",
    ] {
        assert!(page.html.contains(part), "{part}: {}", page.html);
    }
    assert!(!page.html.contains("applications/bobby-app") && !page.html.contains(">connected<"), "{}", page.html);
}

#[tokio::test]
async fn a_console_alone_says_where_to_look() {
    let (_network, [alice, ..]) = start(None).await;
    let page = alice.get(PATH).await;
    assert!(page.status == 200 && page.html.contains("<code>/metrics</code>"), "{}: {}", page.status, page.html);
}

/// An entry of `[[bridge]]` for a ChirpStack that is away.
pub(crate) fn away(app_id: &str) -> NetworkSettings {
    let mqtt = Remote { url: "mqtt://127.0.0.1:1".to_owned(), ..Remote::default() };
    let settings = ChirpStackSettings { mqtt, ..ChirpStackSettings::default() };
    of_application(settings, &app_id.parse().unwrap())
}

/// An entry of `[[bridge]]` that leads an application of ChirpStack to one of ours.
fn entry(chirpstack: &ChirpStack, dir: &Path, app_id: &AppId) -> NetworkSettings {
    let settings = ChirpStackSettings {
        mqtt: Remote { url: chirpstack.broker.url(), ..Remote::default() },
        grpc: api_at(&chirpstack.api_url, dir),
        ..ChirpStackSettings::default()
    };
    of_application(settings, app_id)
}

/// An API with a key, which is in a file of this directory.
fn api_at(url: &str, dir: &Path) -> GrpcSettings {
    let token_file = dir.join("chirpstack.key");
    fs::write(&token_file, CHIRPSTACK_TOKEN).unwrap();
    GrpcSettings { url: url.to_owned(), token_file: Some(token_file), ..GrpcSettings::default() }
}

fn of_application(settings: ChirpStackSettings, app_id: &AppId) -> NetworkSettings {
    let application = ApplicationSettings {
        application: CHIRPSTACK_APPLICATION.to_owned(),
        app_id: app_id.clone(),
        register: true,
        ids: DeviceIds::default(),
    };
    NetworkSettings { chirpstack: Some(settings), applications: vec![application], ..NetworkSettings::default() }
}

/// Sends an uplink that the network received at this time.
async fn send(chirpstack: &mut ChirpStack, (counter, payload): (u32, &str), received: Timestamp) {
    let mut body = uplink(DEVICE, "Kitchen", counter);
    body["time"] = received.to_rfc3339().into();
    body["data"] = payload.into();
    chirpstack.send(DEVICE, "up", &body).await;
}

pub(super) fn check(page: &Page, parts: &[&str]) {
    for part in parts {
        assert!(page.html.contains(part), "{part}: {}", page.html);
    }
}

/// A server with an entry of `[[bridge]]`, whose operator is Alice, and her browser.
pub(super) async fn bridged(
    clock: Arc<dyn Clock>,
    entry: impl FnOnce(&Path, &AppId) -> NetworkSettings,
) -> (Network, Visitor) {
    let network = Network::at(clock.clone(), |_| ()).await;
    let alice = network.owner("alice").await;
    alice.set_functions([DECODER, "", ""]).await.unwrap();
    let operators = vec![id_of(&network, &alice).await];
    network.stack.stop().await;
    let dir = network.dir;
    let mut settings = Network::settings(dir.path());
    settings.console.operators = operators;
    settings.bridge.into = vec![entry(dir.path(), &alice.app_id)];
    let stack = Stack::start(settings, None, environment_at(clock)).await.unwrap();
    let visitor = Visitor::logged_in(&stack.settings().client.auth_server, "alice").await;
    visitor.get("/console").await;
    (Network { stack, dir }, visitor)
}

/// The row of a connection.
fn connection<'a>(page: &'a Page, name: &str) -> &'a str {
    let (_, row) = page.html.split_once(&format!("<td>{name}</td>")).unwrap();
    row.split("</tr>").next().unwrap()
}

// Conformance: console: bridges, kept up to date, and trials of networks
#[tokio::test(flavor = "multi_thread")]
async fn a_network_shows_what_it_brings_and_why_it_is_away() {
    let Some(mut chirpstack) = ChirpStack::start().await else { return };
    let clock: Arc<ManualClock> = ManualClock::at(SystemClock.now());
    let (network, visitor) = bridged(clock.clone(), |dir, app_id| entry(&chirpstack, dir, app_id)).await;
    let page = visitor.until(PATH, CONNECTED).await;
    let address = format!("<code>{}</code> (events)", chirpstack.broker.url());
    let name = format!(">ChirpStack at {} <span", chirpstack.broker.address());
    check(&page, &["ChirpStack", &name, &address, "0 of 0 handed over", "0 sent", "not known yet", ">yes<"]);

    // The first payload is too short for the decoder.
    let received = clock.now().minus(Duration::from_millis(2500));
    send(&mut chirpstack, (1, "AQ=="), received).await;
    send(&mut chirpstack, (2, "AQI="), received).await;
    let page = visitor.until(PATH, "2 of 2 handed over").await;
    let lag = "2.5 s of the last event, 2.5 s on average and 2.5 s at most in the last five minutes";
    check(
        &page,
        &[lag, "2.00/s in the last minute, 2.00/s in the last five", "href=\"/console/applications/alice-app\""],
    );
    check(&page, &["data-label=\"Decoded\">1<", "data-label=\"Failed\">1<", "data-label=\"Invalid\">0<"]);
    chirpstack.send(DEVICE, "up", &serde_json::json!({"deviceInfo": {"devEui": "a300000000000009"}})).await;
    let page = visitor.until(PATH, "2 of 3 handed over").await;
    check(&page, &["1 cannot be read", "<td class=\"mono\">a300000000000001</td>\n<td>cannot be read</td>"]);
    let elsewhere = format!("application/52f14cd4-c6f1-4fbd-8f87-4025e1d49242/device/{DEVICE}/event/up");
    chirpstack.client.publish(&elsewhere, uplink(DEVICE, "Kitchen", 3).to_string()).await;
    let page = visitor.until(PATH, "2 of 4 handed over").await;
    check(&page, &["1 ignored: no route has the application", "application 52f14cd4-c6f1-4fbd-8f87-4025e1d49242"]);
    clock.advance(Duration::from_secs(100));
    check(&visitor.get(PATH).await, &["0.00/s in the last minute, 0.02/s in the last five"]);

    drop(chirpstack);
    let page = visitor.until(PATH, "<td>events</td>\n<td><span class=\"badge bad\">not connected<").await;
    let events = connection(&page, "events");
    assert!(events.contains("class=\"wide\">") && !events.contains("class=\"wide\"><"), "{events}");
    network.stack.stop().await;
}

// Conformance: console: bridges, kept up to date, and trials of networks
#[tokio::test(flavor = "multi_thread")]
async fn the_page_follows_its_networks_and_keeps_the_focus() {
    let Some(mut chirpstack) = ChirpStack::start().await else { return };
    let (network, visitor) = bridged(Arc::new(SystemClock), |dir, app_id| entry(&chirpstack, dir, app_id)).await;
    visitor.until(PATH, CONNECTED).await;
    let Some(browser) = logged_in(&network, "bridges", DESK).await else { return };
    browser.open(PATH).await;
    wait_for_text(&browser, "dd", "0 of 0 handed over").await;
    ask(&browser, "document.querySelector('#refreshed [tabindex]').focus();").await;
    let focus = "return document.activeElement.getAttribute('aria-label');";
    let focused = ask(&browser, focus).await;
    send(&mut chirpstack, (1, "AQI="), SystemClock.now()).await;
    wait_for_text(&browser, "dd", "1 of 1 handed over").await;
    assert!(focused.is_string() && ask(&browser, focus).await == focused, "{focused}");

    browser.click("#refresh button").await;
    wait_for_text(&browser, "span", "Paused.").await;
    send(&mut chirpstack, (2, "AQI="), SystemClock.now()).await;
    visitor.until(PATH, "2 of 2 handed over").await;
    wait_for_text(&browser, "dd", "1 of 1 handed over").await;
    browser.look("bridges").await;
    browser.click("#refresh button").await;
    wait_for_text(&browser, "span", "Updated every 5 seconds.").await;
    wait_for_text(&browser, "dd", "2 of 2 handed over").await;
    network.stack.stop().await;
    wait_for_text(&browser, "span", "The server does not answer").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_api_that_does_not_accept_the_key_is_a_connection_that_is_not_made() {
    let Some(mut chirpstack) = ChirpStack::start().await else { return };
    let by_name = |dir: &Path, app_id: &AppId| {
        let mut entry = entry(&chirpstack, dir, app_id);
        entry.applications[0].application = CHIRPSTACK_APPLICATION_NAME.to_owned();
        fs::write(dir.join("chirpstack.key"), "new-key").unwrap();
        entry
    };
    let (network, visitor) = bridged(Arc::new(SystemClock), by_name).await;
    let page = visitor.until(PATH, "<td>events</td>\n<td><span class=\"badge good\">connected<").await;
    check(&page, &["badge bad\">not connected</span></h2>"]);
    // Only the API knows whose event it is.
    send(&mut chirpstack, (1, "AQI="), SystemClock.now()).await;
    let page = visitor.until(PATH, "does not accept the API key in").await;
    assert!(connection(&page, "API").contains("not connected"), "{}", page.html);
    check(&visitor.until(PATH, "1 not acknowledged yet").await, &["0 of 0 handed over"]);

    chirpstack.api.replace_token("new-key");
    let page = visitor.until(PATH, "1 of 1 handed over").await;
    assert!(connection(&page, "events").contains("badge good"), "{}", page.html);
    let page = visitor.until(PATH, CONNECTED).await;
    assert!(connection(&page, "API").contains("badge good"), "{}", page.html);
    network.stack.stop().await;
}

// Conformance: console: bridges, kept up to date, and trials of networks
#[tokio::test(flavor = "multi_thread")]
async fn a_network_in_the_shadow_shows_how_its_results_compare_as_they_come() {
    let Some(mut chirpstack) = ChirpStack::start().await else { return };
    let codec = "function decodeUplink(input) { return {data: {n: input.bytes[0]}} }";
    chirpstack.api.set_profile("profile", CodecRuntime::Js, codec);
    let entry = |dir: &Path, app_id: &AppId| {
        let entry = entry(&chirpstack, dir, app_id);
        NetworkSettings { shadow: true, applications: Vec::new(), ..entry }
    };
    let (network, visitor) = bridged(Arc::new(SystemClock), entry).await;
    let page = visitor.until(PATH, "badge good\">connected<").await;
    check(&page, &["compared", "0 messages: none yet", &chirpstack.broker.url()]);
    for (counter, theirs) in [(1, 1), (2, 1), (3, 9)] {
        let mut body = uplink(DEVICE, "Kitchen", counter);
        body["object"] = serde_json::json!({"n": theirs});
        chirpstack.send(DEVICE, "up", &body).await;
    }
    let page = visitor.until(PATH, "3 messages: 2 equal, 1 different").await;
    let (_, codecs) = page.html.split_once("Codecs of ").unwrap();
    check(&page, &["Most fuel"]);
    assert!(codecs.matches("3 messages: 2 equal, 1 different").count() == 1, "{codecs}");
    assert!(!page.html.contains("handed over"), "nothing is taken from it: {}", page.html);
    drop(chirpstack);
    let page = visitor.until(PATH, "badge bad\">not connected<").await;
    assert!(page.html.contains(" class=\"wrong\">") && !page.html.contains("tried again"), "{}", page.html);
    network.stack.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_network_in_the_shadow_whose_api_is_silent_does_not_hold_up_the_server() {
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let api_url = format!("http://{}", silent.local_addr().unwrap());
    let entry = |dir: &Path, app_id: &AppId| {
        let settings = away(app_id.as_str()).chirpstack.unwrap();
        let chirpstack = Some(ChirpStackSettings { grpc: api_at(&api_url, dir), ..settings });
        NetworkSettings { chirpstack, shadow: true, ..NetworkSettings::default() }
    };
    let (network, visitor) = bridged(Arc::new(SystemClock), entry).await;
    check(&visitor.get(PATH).await, &["not started", "its API has not answered yet"]);
    network.stack.stop().await;
}
