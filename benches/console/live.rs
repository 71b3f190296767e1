//! The live view: how long a message takes to be seen, and what a minute of too many messages does to the page.

use std::{collections::HashMap, time::Duration};

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Value, json};
use testing::{
    figures::{Figures, quantile},
    load::{Load, Taken},
};
use tokio::time::{MissedTickBehavior, interval, sleep};

use crate::{
    driver::Browser,
    number,
    page::{PageMemory, ask, heap_mb, logged_in, now_ms, resident_mb, until},
    server_process::{Application, DEVICE, ServerProcess},
};

/// Uplinks each second of others, while messages are watched.
const BESIDE_PER_SECOND: u32 = 5000;
const CONNECTIONS: usize = 16;
/// Between two messages that are watched.
const BETWEEN: Duration = Duration::from_millis(50);
/// Messages each second in a live view.
const PER_SECOND: u32 = 1000;
/// Between two looks at what the page takes.
const LOOK: Duration = Duration::from_secs(5);
/// Of one frame, in milliseconds.
const FRAME_MS: f64 = 1e3 / 60.0;

const DECODER: &str = "function Decoder(bytes) { return { n: bytes[0] << 16 | bytes[1] << 8 | bytes[2] }; }";
const IS_OPEN: &str = "return document.getElementById('state')?.textContent.includes('appear here') ?? false;";
/// Notes when each numbered message was painted, in milliseconds since 1970: in the task after the next frame.
const WATCH: &str = r#"window.seen = {};
    new MutationObserver((changes) => {
      const rows = changes.flatMap((change) => [...change.addedNodes]);
      const numbers = rows.map((row) => /"n":\s*(\d+)/.exec(row.textContent)?.[1]).filter((number) => number !== undefined);
      requestAnimationFrame(() => {
        const channel = new MessageChannel();
        channel.port1.onmessage = () => {
          const at = performance.timeOrigin + performance.now();
          for (const number of numbers) seen[number] ??= at;
        };
        channel.port2.postMessage(null);
      });
    }).observe(document.querySelector('#live tbody'), { childList: true });"#;
const HAS_SEEN: &str = "return Object.keys(seen).length >= arguments[0];";
const SEEN: &str = "return seen;";
/// Counts the rows that were ever shown, and notes the time between frames and long tasks.
const COUNT: &str = "window.counted = { shown: 0, gaps: [], long: 0, longest: 0 };
    new MutationObserver((changes) => {
      for (const change of changes) counted.shown += change.addedNodes.length;
    }).observe(document.querySelector('#live tbody'), { childList: true });
    new PerformanceObserver((list) => {
      for (const { duration } of list.getEntries()) {
        counted.long += 1;
        counted.longest = Math.max(counted.longest, duration);
      }
    }).observe({ type: 'longtask' });
    let last = performance.now();
    const tick = (now) => {
      counted.gaps.push(now - last);
      last = now;
      requestAnimationFrame(tick);
    };
    requestAnimationFrame(tick);";
/// Rows that were shown, messages that were skipped, rows that are there, long tasks, and the longest.
const COUNTED: &str = "const skipped = Number(document.getElementById('skipped').textContent.match(/\\d+/)?.[0] ?? 0);
    return [counted.shown, skipped, document.querySelector('#live tbody').rows.length, counted.long, counted.longest];";
const GAPS: &str = "return counted.gaps;";

/// A server with the application `watched-app`, whose live view is open.
async fn watched() -> (ServerProcess, Application, Browser) {
    let server = ServerProcess::start("").await;
    let functions = json!({ "payload_format": "custom", "decoder": DECODER });
    let application = server.create_application("watched-app", functions).await;
    let browser = logged_in(&server, "watched-app").await;
    browser.open("/console/applications/watched-app/live").await;
    until(&browser, "the live view", IS_OPEN, vec![]).await;
    (server, application, browser)
}

/// Measures from the request with an uplink to its row on the screen, while others send many.
pub(crate) async fn latency(figures: &mut Figures) {
    let time = Duration::from_secs_f64(number("CONSOLE_SECONDS", 60.0));
    let (server, application, browser) = watched().await;
    ask::<Value>(&browser, WATCH, vec![]).await;
    for (beside, goal) in [(0, ""), (BESIDE_PER_SECOND, "≤ 200 ms at p99")] {
        let others = match beside {
            0 => None,
            per_second => Some(tokio::spawn(others(&server, per_second, time).await)),
        };
        let sent = send(&server, &application, time.mul_f64(if beside == 0 { 0.25 } else { 1.0 })).await;
        until(&browser, "a row of each message", HAS_SEEN, vec![json!(sent.len())]).await;
        let seen: HashMap<String, f64> = ask(&browser, SEEN, vec![]).await;
        ask::<Value>(&browser, "window.seen = {};", vec![]).await;
        let mut took: Vec<f64> = sent.iter().map(|(number, at)| seen[&number.to_string()] - at).collect();
        let rate = match others {
            None => 0.0,
            Some(others) => {
                let taken = others.await.unwrap();
                taken.all(200);
                taken.per_second()
            }
        };
        let [p50, p99, most] = [0.5, 0.99, 1.0].map(|part| quantile(&mut took, part));
        figures.add(
            &format!("live message to pixel beside {rate:.0} uplinks/s, p50, p99 and maximum of {}", took.len()),
            format!("{p50:.0} ms, {p99:.0} ms, {most:.0} ms"),
            goal,
        );
    }
}

/// The load of another owner, who has an application of the demo.
async fn others(server: &ServerProcess, per_second: u32, time: Duration) -> impl Future<Output = Taken> + use<> {
    let application = server.create_application("other-app", ServerProcess::demo_functions()).await;
    Load::new(server.handler, &application.uplink(DEVICE), CONNECTIONS).at(per_second).run_for(time)
}

/// Sends numbered uplinks for this long; returns when each was sent, in milliseconds since 1970.
async fn send(server: &ServerProcess, application: &Application, time: Duration) -> Vec<(u32, f64)> {
    let client = reqwest::Client::new();
    let url = format!("http://{}/applications/{}/devices/{DEVICE}/simulate", server.handler, application.id);
    let count = (time.as_secs_f64() / BETWEEN.as_secs_f64()) as u32;
    let mut ticks = interval(BETWEEN);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut sent = Vec::new();
    for number in 1..=count {
        ticks.tick().await;
        let body = json!({ "port": 1, "payload": STANDARD.encode(&number.to_be_bytes()[1..]) });
        sent.push((number, now_ms()));
        let request = client.post(&url).bearer_auth(application.token.expose()).json(&body);
        let status = request.send().await.unwrap().status();
        assert!(status.is_success(), "an uplink is refused: {status}");
    }
    sent
}

/// Measures the page, and the server, while more messages arrive than anybody can read.
pub(crate) async fn minute(figures: &mut Figures) {
    let seconds = number("CONSOLE_SECONDS", 60.0);
    let (server, application, browser) = watched().await;
    // Rows for as many as the page keeps, and what the server keeps for an application that was used.
    let load = Load::new(server.handler, &application.uplink(DEVICE), CONNECTIONS).at(PER_SECOND);
    load.clone().run_for(Duration::from_secs(2)).await.all(200);
    sleep(Duration::from_secs(1)).await;
    ask::<Value>(&browser, COUNT, vec![]).await;
    let [_, skipped_before, ..] = ask::<[f64; 5]>(&browser, COUNTED, vec![]).await;
    let (before, server_before) = (PageMemory::of(&browser).await, resident_mb(&server));
    let running = tokio::spawn(load.run_for(Duration::from_secs_f64(seconds)));
    let (mut heap_most, mut server_most) = (before.heap_mb, server_before);
    while !running.is_finished() {
        sleep(LOOK).await;
        heap_most = heap_most.max(heap_mb(&browser).await);
        server_most = server_most.max(resident_mb(&server));
    }
    let taken = running.await.unwrap();
    taken.all(200);
    let accounted = format!(
        "const skipped = Number(document.getElementById('skipped').textContent.match(/\\d+/)?.[0] ?? 0);
         return counted.shown + skipped - {skipped_before} >= arguments[0];"
    );
    until(&browser, "an account of all messages", &accounted, vec![json!(taken.of(200))]).await;
    let [shown, skipped, rows, long, longest] = ask::<[f64; 5]>(&browser, COUNTED, vec![]).await;
    let gaps: Vec<f64> = ask(&browser, GAPS, vec![]).await;
    let after = PageMemory::of(&browser).await;
    let what = format!("live view at {:.0} messages/s for {seconds:.0} s", taken.per_second());
    let skipped = skipped - skipped_before;
    figures.add(&format!("{what}: shown, skipped, rows at the end"), format!("{shown}, {skipped}, {rows}"), "");
    let heap = format!("{:.1} → {:.1} MB, at most {heap_most:.1} with garbage", before.heap_mb, after.heap_mb);
    figures.add(&format!("{what}: heap of the page"), heap, "bounded");
    figures.add(&format!("{what}: nodes of the page"), format!("{} → {}", before.nodes, after.nodes), "bounded");
    let memory = format!("{server_before:.0} → {:.0} MB, at most {server_most:.0}", resident_mb(&server));
    figures.add(&format!("{what}: memory of the server"), memory, "bounded");
    let dropped: f64 = gaps.iter().map(|gap| ((gap / FRAME_MS).round() - 1.0).max(0.0)).sum();
    let most = gaps.iter().copied().fold(0.0, f64::max);
    figures.add(
        &format!("{what}: frames, dropped ones, the longest between two"),
        format!("{}, {dropped}, {most:.0} ms", gaps.len()),
        "",
    );
    figures.add(&format!("{what}: tasks over 50 ms, the longest"), format!("{long}, {longest:.0} ms"), "");
}
