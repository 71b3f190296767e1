//! Charts of very many uplinks: the handler alone, and the page.

use std::{
    ops::Range,
    time::{Duration, Instant},
};

use base64::{Engine, engine::general_purpose::STANDARD};
use reqwest::RequestBuilder;
use serde_json::{Value, json};
use testing::figures::Figures;
use tokio::{task::JoinSet, time::sleep};
use types::Timestamp;

use crate::{
    driver::Browser,
    harness::MESSAGE_TIMEOUT,
    number,
    page::{Painted, ask, logged_in, now_ms},
    server_process::{Application, DEVICE, ServerProcess},
};

/// Number of uplinks of a request, and of requests at the same time.
const UPLINKS: usize = 20_000;
const REQUESTS: usize = 4;
/// Number of devices in one chart.
const DEVICES: usize = 8;
/// Number of times that each chart is read.
const ROUNDS: usize = 3;
/// Time in which a server uses little of a processor once it has nothing to do, and how much that is.
const QUIET: Duration = Duration::from_millis(500);
const QUIET_SHARE: f64 = 0.1;

const APPLICATION: &str = "chart-app";
const DECODER: &str = "function Decoder(bytes) {
  return { celsius: (bytes[0] << 8 | bytes[1]) / 100, battery: { volts: 3 + bytes[0] / 1000 }, motion: bytes[1] > 9 };
}";
const LINES: &str = "return document.querySelectorAll('figure.chart svg[role=img] path.line').length;";

/// A part of the time, as it is asked for.
pub(crate) struct Span {
    since: String,
    until: String,
}

pub(crate) async fn measure(figures: &mut Figures) {
    let count = (number("CONSOLE_UPLINKS", 1.0) * 1e6) as usize;
    let server = ServerProcess::start("").await;
    let functions = json!({ "payload_format": "custom", "decoder": DECODER });
    let application = server.create_application(APPLICATION, functions).await;
    let browser = logged_in(&server, APPLICATION).await;

    let (all, later) = fill(&server, &application, &[DEVICE.to_owned()], count).await;
    let what = format!("chart of {count} uplinks of a device");
    for (what, field, span) in [
        (format!("{what}, one field"), "celsius", &all),
        (format!("{what}, all fields"), "", &all),
        (format!("second half of the {what}, one field"), "celsius", &later),
    ] {
        let path = format!("devices/{DEVICE}/charts?{}", parameters(field, span));
        measure_chart(figures, (&server, &application, &browser), &what, (&path, field, span)).await;
    }
    let devices: Vec<_> = (1..=DEVICES).map(|number| format!("dev-{number}")).collect();
    for device in &devices {
        server.add_device(&application, device).await;
    }
    let (all, _) = fill(&server, &application, &devices, count).await;
    let names: String = devices.iter().map(|device| format!("&device={device}")).collect();
    let path = format!("charts?{}{names}", parameters("celsius", &all));
    let whole = show(&browser, &server, &path).await;
    let lines: usize = ask(&browser, LINES, vec![]).await;
    assert_eq!(lines, DEVICES, "each device has a line");
    figures.add(&format!("chart of {count} uplinks of {DEVICES} devices, one field: page"), ms(whole), "≤ 1 s");
}

async fn measure_chart(
    figures: &mut Figures,
    (server, application, browser): (&ServerProcess, &Application, &Browser),
    what: &str,
    (path, field, span): (&str, &str, &Span),
) {
    let (handler, examined) = read(server, application, field, span).await;
    let whole = show(browser, server, path).await;
    let lines: usize = ask(browser, LINES, vec![]).await;
    assert!(lines > 0, "the page of {what} has no chart: {}", browser.client.source().await.unwrap());
    figures.add(&format!("{what}: page, of {examined} uplinks"), ms(whole), "≤ 1 s");
    figures.add(&format!("{what}: the handler's part"), ms(handler), "");
}

fn ms(milliseconds: f64) -> String {
    format!("{milliseconds:.0} ms")
}

fn parameters(field: &str, Span { since, until }: &Span) -> String {
    let field = if field.is_empty() { String::new() } else { format!("&field={field}") };
    format!("since={since}&until={until}{field}")
}

/// Milliseconds of a page until it is painted and loaded: the least, as others may use the processors.
async fn show(browser: &Browser, server: &ServerProcess, path: &str) -> f64 {
    let url = format!("http://{}/console/applications/{APPLICATION}/{path}", server.account);
    let mut least = f64::INFINITY;
    for _ in 0..ROUNDS {
        least = least.min(Painted::of(browser, &url).await.whole());
    }
    least
}

/// Milliseconds of the handler for the same chart, and the number of uplinks in it.
async fn read(server: &ServerProcess, application: &Application, field: &str, span: &Span) -> (f64, u64) {
    let parameters = parameters(field, span);
    let url = format!(
        "http://{}/applications/{APPLICATION}/history/chart?dev_id={DEVICE}&points=120&{parameters}",
        server.handler
    );
    let client = reqwest::Client::new();
    let (mut least, mut examined) = (f64::INFINITY, 0);
    for _ in 0..ROUNDS {
        let began = Instant::now();
        let response = client.get(&url).bearer_auth(application.token.expose()).send().await.unwrap();
        assert!(response.status().is_success(), "the handler refuses a chart: {}", response.text().await.unwrap());
        let chart: Value = response.json().await.unwrap();
        least = least.min(began.elapsed().as_secs_f64() * 1e3);
        examined = chart["examined"].as_u64().unwrap();
    }
    (least, examined)
}

/// Sends so many uplinks of these devices in turn, and waits until the server is quiet. Returns the time in which they
/// were sent, and the second half of it.
pub(crate) async fn fill(
    server: &ServerProcess,
    application: &Application,
    devices: &[String],
    count: usize,
) -> (Span, Span) {
    let first = now_ms() as i64;
    let mut running = JoinSet::new();
    for request in 0..count.div_ceil(UPLINKS) {
        if running.len() == REQUESTS {
            running.join_next().await.unwrap().unwrap();
        }
        let numbers = request * UPLINKS..count.min((request + 1) * UPLINKS);
        let url = format!("http://{}/applications/{}/uplinks", server.handler, application.id);
        let request = reqwest::Client::new().post(url).bearer_auth(application.token.expose());
        running.spawn(send(request, lines(devices, numbers)));
    }
    running.join_all().await;
    let last = now_ms() as i64 + 1;
    until_quiet(server).await;
    let time = |millis: i64| Timestamp::from_millis(millis).to_rfc3339();
    let middle = first + (last - first) / 2;
    (Span { since: time(first), until: time(last) }, Span { since: time(middle), until: time(last) })
}

fn lines(devices: &[String], numbers: Range<usize>) -> String {
    let line = |number: usize| {
        let device = &devices[number % devices.len()];
        let payload = STANDARD.encode(((number % 4000) as u16).to_be_bytes());
        format!("{{\"dev_id\":\"{device}\",\"port\":1,\"payload\":\"{payload}\"}}\n")
    };
    numbers.map(line).collect()
}

async fn send(request: RequestBuilder, lines: String) {
    let count = lines.lines().count();
    let response = request.body(lines).send().await.unwrap();
    let status = response.status();
    let answers = response.text().await.unwrap();
    let taken = answers.lines().filter(|line| line.starts_with('{') && !line.contains("\"status\"")).count();
    let refused = answers.lines().find(|line| line.contains("\"status\""));
    assert_eq!(taken, count, "uplinks are refused: {status}, {refused:?}");
}

/// Waits until what was recorded is in files, as far as it will be soon.
async fn until_quiet(server: &ServerProcess) {
    let end = Instant::now() + MESSAGE_TIMEOUT;
    loop {
        let before = server.cpu_time();
        sleep(QUIET).await;
        let used = (server.cpu_time() - before).as_secs_f64() / QUIET.as_secs_f64();
        if used < QUIET_SHARE {
            return;
        }
        assert!(Instant::now() < end, "the server does not become quiet: it uses {used:.1} processors");
    }
}
