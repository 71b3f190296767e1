//! A page in the browser: what it says, when it was painted, and what it takes.

use std::{
    fs,
    time::{Duration, UNIX_EPOCH},
};

use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::{
    driver::{Browser, Look},
    harness::MESSAGE_TIMEOUT,
    server_process::{PASSWORD, ServerProcess},
};

const DESK: Look = Look { width: 1280, dark: false, scripts: true };
/// Between two looks at a page.
const PAUSE: Duration = Duration::from_millis(50);
/// Waits until the page is loaded and painted; returns when it was begun, in milliseconds since 1970, and after how
/// many milliseconds its first byte had come, it was painted first, and it was loaded.
const PAINTED: &str = "const [done] = arguments;
    const look = () => {
      const [page] = performance.getEntriesByType('navigation');
      const [paint] = performance.getEntriesByName('first-contentful-paint');
      if (!paint || !(page?.loadEventEnd > 0)) return setTimeout(look, 5);
      done([performance.timeOrigin, page.responseStart, paint.startTime, page.loadEventEnd]);
    };
    look();";

/// When a page was there, in milliseconds after its navigation began.
pub(crate) struct Painted {
    /// In milliseconds since 1970.
    pub(crate) begun: f64,
    pub(crate) first_byte: f64,
    pub(crate) painted: f64,
    pub(crate) loaded: f64,
}

/// The memory of a page, without garbage.
pub(crate) struct PageMemory {
    pub(crate) heap_mb: f64,
    pub(crate) nodes: u64,
}

/// Starts a browser.
pub(crate) async fn browser(base: &str) -> Browser {
    let browser = Browser::start(base, "console-bench", DESK).await;
    browser.expect("the browser cannot start: install chromium and chromium-driver")
}

/// Starts a browser in which a user of the server is logged in.
pub(crate) async fn logged_in(server: &ServerProcess, user: &str) -> Browser {
    let browser = browser(&format!("http://{}", server.account)).await;
    log_in(&browser, user).await;
    browser
}

/// Logs a user in, and waits for the user's applications.
pub(crate) async fn log_in(browser: &Browser, user: &str) {
    browser.open("/console").await;
    browser.wait_for("Log in").await;
    let fields = [("username", user), ("password", PASSWORD)];
    browser.submit("main form", &fields, "main form button", "Applications").await;
}

/// Runs a script in the page, and returns its result.
pub(crate) async fn ask<T: DeserializeOwned>(browser: &Browser, script: &str, arguments: Vec<Value>) -> T {
    let answer = browser.client.execute(script, arguments).await;
    let answer = answer.unwrap_or_else(|error| panic!("a script fails: {error}\n{script}"));
    serde_json::from_value(answer).unwrap_or_else(|error| panic!("a script returns something else: {error}\n{script}"))
}

/// Runs a script in the page until it calls the function that is its last argument, and returns what it passes.
pub(crate) async fn told<T: DeserializeOwned>(browser: &Browser, script: &str, arguments: Vec<Value>) -> T {
    let answer = browser.client.execute_async(script, arguments).await;
    let answer = answer.unwrap_or_else(|error| panic!("a script does not answer: {error}\n{script}"));
    serde_json::from_value(answer).unwrap_or_else(|error| panic!("a script says something else: {error}\n{script}"))
}

/// Waits until a script returns true.
pub(crate) async fn until(browser: &Browser, what: &str, script: &str, arguments: Vec<Value>) {
    let end = Instant::now() + MESSAGE_TIMEOUT;
    while !ask::<bool>(browser, script, arguments.clone()).await {
        if Instant::now() > end {
            panic!("{what} did not happen: {}", browser.client.source().await.unwrap());
        }
        sleep(PAUSE).await;
    }
}

impl Painted {
    /// Opens a page, and waits until it was painted.
    pub(crate) async fn of(browser: &Browser, url: &str) -> Self {
        browser.client.goto(url).await.unwrap_or_else(|error| panic!("cannot open {url}: {error}"));
        let [begun, first_byte, painted, loaded] = told::<[f64; 4]>(browser, PAINTED, vec![]).await;
        Self { begun, first_byte, painted, loaded }
    }

    /// When everything was there.
    pub(crate) fn whole(&self) -> f64 {
        self.painted.max(self.loaded)
    }
}

impl PageMemory {
    pub(crate) async fn of(browser: &Browser) -> Self {
        browser.tell("HeapProfiler.collectGarbage", json!({})).await;
        let nodes = browser.tell("Memory.getDOMCounters", json!({})).await;
        Self { heap_mb: heap_mb(browser).await, nodes: nodes["value"]["nodes"].as_u64().unwrap() }
    }
}

/// The heap of the page with its garbage.
pub(crate) async fn heap_mb(browser: &Browser) -> f64 {
    let heap = browser.tell("Runtime.getHeapUsage", json!({})).await;
    heap["value"]["usedSize"].as_f64().unwrap() / 1e6
}

/// Resident memory of the server.
pub(crate) fn resident_mb(server: &ServerProcess) -> f64 {
    let status = fs::read_to_string(format!("/proc/{}/status", server.id())).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<f64>().unwrap() * 1024.0 / 1e6
}

/// Milliseconds since 1970, by the clock that the browser has, too.
pub(crate) fn now_ms() -> f64 {
    UNIX_EPOCH.elapsed().unwrap().as_secs_f64() * 1e3
}
