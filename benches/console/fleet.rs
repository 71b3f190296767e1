//! The table of devices of a large application.

use futures::{StreamExt, stream};
use serde_json::json;
use testing::figures::Figures;

use crate::{
    charts::fill,
    driver::Browser,
    number,
    page::{Painted, ask, logged_in},
    server_process::{Application, ServerProcess},
};

/// Number of uplinks of each device that sent some, which every other one did.
const UPLINKS: usize = 20;
/// Number of registrations at the same time.
const REGISTRATIONS: usize = 16;
/// Number of times that each page is read.
const ROUNDS: usize = 3;

const APPLICATION: &str = "fleet-app";
const DECODER: &str = "function Decoder(bytes) { return { celsius: bytes[1], battery: bytes[0] }; }";
const ROWS: &str = "return document.querySelectorAll('table tbody tr').length;";

pub(crate) async fn measure(figures: &mut Figures) {
    let count = number("CONSOLE_DEVICES", 10_000.0) as usize;
    let server = ServerProcess::start("").await;
    let functions = json!({ "payload_format": "custom", "decoder": DECODER });
    let application = server.create_application(APPLICATION, functions).await;
    let (client, numbers) = (reqwest::Client::new(), stream::iter(0..count));
    let set = |number| register(&client, &server, &application, number);
    numbers.for_each_concurrent(REGISTRATIONS, set).await;
    let senders: Vec<_> = (0..count).step_by(2).map(name).collect();
    fill(&server, &application, &senders, senders.len() * UPLINKS).await;
    let browser = logged_in(&server, APPLICATION).await;
    for (what, query, rows) in [
        ("the first page", "", 50),
        ("found by a tag", "search=hall-07", 50),
        ("found by an id", "search=sensor-00777", 1),
        ("not seen for a day, over all pages", "silent=24h", 50),
        ("those not seen for longest first", "order=last_seen", 50),
    ] {
        let whole = show(&browser, &server, query, rows).await;
        figures.add(&format!("table of {count} devices, {what}"), format!("{whole:.0} ms"), "≤ 1 s");
    }
}

fn name(number: usize) -> String {
    format!("sensor-{number:05}")
}

/// Registers a device, with a tag that some others have.
async fn register(client: &reqwest::Client, server: &ServerProcess, application: &Application, number: usize) {
    let (app_id, dev_id) = (&application.id, name(number));
    let url = format!("http://{}/applications/{app_id}/devices/{dev_id}", server.handler);
    let lorawan = json!({ "app_id": app_id, "dev_id": dev_id });
    let attributes = json!({ "hall": format!("hall-{:02}", number % 40) });
    let body = json!({ "lorawan_device": lorawan, "attributes": attributes });
    let response = client.put(url).bearer_auth(application.token.expose()).json(&body).send().await.unwrap();
    assert!(response.status().is_success(), "a device is refused: {}", response.text().await.unwrap());
}

/// Milliseconds of a page until it is painted and loaded: the least, as others may use the processors.
async fn show(browser: &Browser, server: &ServerProcess, query: &str, rows: usize) -> f64 {
    let url = format!("http://{}/console/applications/{APPLICATION}?{query}", server.account);
    let mut least = f64::INFINITY;
    for _ in 0..ROUNDS {
        least = least.min(Painted::of(browser, &url).await.whole());
    }
    let shown: usize = ask(browser, ROWS, vec![]).await;
    assert_eq!(shown, rows, "{query}: {}", browser.client.source().await.unwrap());
    least
}
