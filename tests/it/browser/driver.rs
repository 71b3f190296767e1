//! Headless Chromium, driven as a user would.

use std::{
    collections::HashSet,
    fs,
    io::{BufRead, BufReader},
    os::unix::process::CommandExt,
    path::Path,
    process::{Child, Command, Stdio},
    sync::OnceLock,
};

use base64::{Engine, engine::general_purpose::STANDARD};
use fantoccini::{
    Client, ClientBuilder, Locator,
    actions::{InputSource, KeyAction, KeyActions},
    elements::Element,
    key::Key,
    wd::TimeoutConfiguration,
};
use hyper_util::client::legacy::connect::HttpConnector;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use testing::Node;

use crate::harness::MESSAGE_TIMEOUT;

/// The audit that every page must pass also where npm is not reached: some rules are stricter than axe's.
const AUDIT: &str = include_str!("audit.js");
/// The accessibility rules that every page must pass, WCAG's and axe's own, with the checksum of what is run.
const AXE: &str = "axe-core@4.14.1";
const AXE_SHA256: &str = "29348999450cdf2849a8e70b7912fc2da85a849da39c0d0d5394f51d4a9ed95c";
const AXE_RUN: &str = include_str!("axe.js");

pub(crate) struct Browser {
    pub(crate) client: Client,
    session: String,
    driver: Driver,
    base: String,
    /// Prefix of its screenshots.
    name: &'static str,
    look: Look,
}

/// The WebDriver process.
struct Driver {
    child: Child,
    url: String,
}

#[derive(Clone, Copy)]
pub(crate) struct Look {
    pub(crate) width: u32,
    pub(crate) dark: bool,
    pub(crate) scripts: bool,
}

/// A network between the browser and the rest of the world.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Link {
    pub(crate) offline: bool,
    pub(crate) latency_ms: u64,
    pub(crate) bytes_per_second: u64,
}

impl Link {
    pub(crate) const FAST: Self = Self { offline: false, latency_ms: 0, bytes_per_second: 100_000_000 };
    pub(crate) const NONE: Self = Self { offline: true, ..Self::FAST };
}

impl Browser {
    /// `None` if Chromium is missing and not required.
    pub(crate) async fn start(base: &str, name: &'static str, look: Look) -> Option<Self> {
        server::system::install_crypto();
        let driver = Driver::start()?;
        // Pages of third parties may load things from elsewhere, which tests must not wait for.
        let only_here = "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost";
        let arguments = ["--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", only_here];
        let options = json!({"args": arguments});
        let wanted = json!({"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}});
        let Value::Object(wanted) = wanted else { unreachable!("it is one") };
        let client = ClientBuilder::new(HttpConnector::new()).capabilities(wanted).connect(&driver.url).await.unwrap();
        // Audits of long pages take their time on a busy machine.
        client.update_timeouts(TimeoutConfiguration::new(Some(MESSAGE_TIMEOUT), None, None)).await.unwrap();
        let session = client.session_id().await.unwrap().unwrap();
        let browser = Self { client, session, driver, base: base.to_owned(), name, look };
        browser.become_like().await;
        Some(browser)
    }

    async fn become_like(&self) {
        let Look { width, dark, scripts } = self.look;
        let size = json!({"width": width, "height": 780, "deviceScaleFactor": 1, "mobile": width < 500});
        self.tell("Emulation.setDeviceMetricsOverride", size).await;
        let scheme = if dark { "dark" } else { "light" };
        let features = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
        self.tell("Emulation.setEmulatedMedia", features).await;
        self.run_scripts(scripts).await;
        let probe = "<meta name=viewport content=width=device-width><script>document.title = 'on'</script>";
        self.client.goto(&format!("data:text/html,{probe}")).await.unwrap();
        let script = "return [innerWidth, matchMedia('(prefers-color-scheme: dark)').matches, document.title == 'on'];";
        assert_eq!(self.ask(script, vec![]).await, [json!(width), json!(dark), json!(scripts)]);
    }

    async fn run_scripts(&self, scripts: bool) {
        self.tell("Emulation.setScriptExecutionDisabled", json!({"value": !scripts})).await;
    }

    /// Sends a DevTools command.
    pub(crate) async fn tell(&self, command: &str, parameters: Value) -> Value {
        let url = format!("{}/session/{}/goog/cdp/execute", self.driver.url, self.session);
        let body = json!({"cmd": command, "params": parameters});
        let response = reqwest::Client::new().post(url).json(&body).send().await.unwrap();
        assert!(response.status().is_success(), "{command}: {}", response.text().await.unwrap());
        response.json().await.unwrap()
    }

    /// Makes the network of the browser slow, or takes it away.
    pub(crate) async fn limit_network(&self, link: Link) {
        let url = format!("{}/session/{}/chromium/network_conditions", self.driver.url, self.session);
        let Link { offline, latency_ms, bytes_per_second } = link;
        let rates = json!({"download_throughput": bytes_per_second, "upload_throughput": bytes_per_second});
        let Value::Object(mut conditions) = rates else { unreachable!("it is one") };
        conditions.extend([("offline".to_owned(), json!(offline)), ("latency".to_owned(), json!(latency_ms))]);
        let body = json!({"network_conditions": conditions});
        let response = reqwest::Client::new().post(url).json(&body).send().await.unwrap();
        assert!(response.status().is_success(), "{}", response.text().await.unwrap());
    }

    pub(crate) async fn open(&self, path: &str) {
        self.client.goto(&format!("{}{path}", self.base)).await.unwrap();
    }

    /// Fills in a form, submits it, and waits for the next page.
    pub(crate) async fn submit(&self, form: &str, fields: &[(&str, &str)], button: &str, next: &str) {
        let form = self.client.form(Locator::Css(form)).await.unwrap();
        for (name, value) in fields {
            form.set_by_name(name, value).await.unwrap();
        }
        self.click(button).await;
        self.wait_for(next).await;
    }

    pub(crate) async fn click(&self, selector: &str) {
        self.client.find(Locator::Css(selector)).await.unwrap().click().await.unwrap();
    }

    pub(crate) async fn wait_for(&self, heading: &str) {
        let path = format!("//h1[normalize-space()={heading:?}]");
        let found = self.client.wait().at_most(MESSAGE_TIMEOUT).for_element(Locator::XPath(&path)).await;
        if found.is_err() {
            panic!("no page {heading:?}: {}", self.client.source().await.unwrap());
        }
    }

    /// Waits for a form with validation errors.
    pub(crate) async fn wait_for_refusal(&self) {
        self.wait_until(".problem").await;
    }

    /// Waits until the page has an element.
    pub(crate) async fn wait_until(&self, selector: &str) -> Element {
        self.client.wait().at_most(MESSAGE_TIMEOUT).for_element(Locator::Css(selector)).await.unwrap()
    }

    /// Presses keys as somebody does, whatever has the focus: a field for a file takes keys that it is sent as a path.
    pub(crate) async fn press(&self, keys: &str) {
        let strokes = keys.chars().flat_map(|value| [KeyAction::Down { value }, KeyAction::Up { value }]);
        let actions = strokes.fold(KeyActions::new("keyboard".to_owned()), InputSource::then);
        self.client.perform_actions(actions).await.unwrap();
    }

    /// Presses a key while another one is held.
    pub(crate) async fn press_with(&self, held: Key, key: char) {
        let (held, keyboard) = (char::from(held), KeyActions::new("keyboard".to_owned()));
        let keyboard = keyboard.then(KeyAction::Down { value: held }).then(KeyAction::Down { value: key });
        let keyboard = keyboard.then(KeyAction::Up { value: key }).then(KeyAction::Up { value: held });
        self.client.perform_actions(keyboard).await.unwrap();
    }

    /// Replaces the text of the editor in place of a text area, as somebody does who selects all of it and pastes.
    pub(crate) async fn write(&self, area: &str, text: &str) {
        let code = format!("{area}-code");
        self.wait_until(&code).await;
        self.client.execute("document.querySelector(arguments[0]).focus();", vec![json!(code)]).await.unwrap();
        self.press_with(Key::Control, 'a').await;
        let paste = "const clipboardData = new DataTransfer(); clipboardData.setData('text/plain', arguments[1]); \
                     const event = new ClipboardEvent('paste', { clipboardData, bubbles: true, cancelable: true }); \
                     document.querySelector(arguments[0]).dispatchEvent(event);";
        self.client.execute(paste, vec![json!(code), json!(text)]).await.unwrap();
    }

    /// The browser's complaints since this was last asked: errors, and violations of policies.
    pub(crate) async fn complaints(&self) -> Vec<String> {
        let url = format!("{}/session/{}/se/log", self.driver.url, self.session);
        let response = reqwest::Client::new().post(url).json(&json!({"type": "browser"})).send().await.unwrap();
        let log: Value = response.json().await.unwrap();
        let entries = log["value"].as_array().unwrap_or_else(|| panic!("no log: {log}"));
        entries.iter().filter(|entry| entry["level"] == "SEVERE").map(|entry| entry["message"].to_string()).collect()
    }

    /// Presses Tab until an element has the focus, and checks that focus is always visible.
    pub(crate) async fn tab_to(&self, selector: &str) {
        let mut passed = HashSet::new();
        loop {
            self.press(&Key::Tab.to_string()).await;
            let script = "const now = document.activeElement, style = getComputedStyle(now); \
                          return [now.matches(arguments[0]), now.outerHTML, style.outlineStyle];";
            let [found, element, outline] = self.ask(script, vec![json!(selector)]).await;
            assert_ne!(outline, "none", "nobody sees that {element} has the focus");
            if found == true {
                return;
            }
            assert!(passed.insert(element.to_string()), "{selector} is not reached: {passed:?}");
        }
    }

    pub(crate) async fn value(&self, selector: &str) -> String {
        self.client.find(Locator::Css(selector)).await.unwrap().prop("value").await.unwrap().unwrap()
    }

    /// Audits the page and takes a screenshot.
    pub(crate) async fn look(&self, page: &str) {
        let problems = self.problems().await;
        self.keep_picture(page).await;
        assert!(problems.is_empty(), "{page}: {problems:#?}");
    }

    /// Opens a page that stands alone, as reports do: it runs nothing, loads nothing and may have no links. Audits it, and
    /// takes a screenshot.
    pub(crate) async fn look_at_report(&self, path: &str, heading: &str) {
        self.open(path).await;
        self.wait_for(heading).await;
        let loaded = "return [document.scripts.length, performance.getEntriesByType('resource').length];";
        assert_eq!(self.client.execute(loaded, vec![]).await.unwrap(), json!([0, 0]), "{path}");
        let problems: Vec<_> = self.problems().await.into_iter().filter(|problem| problem != "no nav").collect();
        self.keep_picture("report").await;
        assert!(problems.is_empty(), "{path}: {problems:#?}");
    }

    pub(crate) async fn problems(&self) -> Vec<String> {
        let mut problems: Vec<String> =
            serde_json::from_value(self.client.execute(AUDIT, vec![]).await.unwrap()).unwrap();
        problems.extend(self.violations().await);
        problems
    }

    /// The findings of axe. It waits as scripts of pages do, so they may run meanwhile: those that were left out when
    /// the page was loaded stay so.
    async fn violations(&self) -> Vec<String> {
        let Some(axe) = tokio::task::spawn_blocking(axe).await.unwrap() else { return Vec::new() };
        self.run_scripts(true).await;
        let violations = self.client.execute(axe, vec![]).await.unwrap();
        self.run_scripts(self.look.scripts).await;
        serde_json::from_value(violations).unwrap()
    }

    async fn keep_picture(&self, page: &str) {
        let script = "return [document.documentElement.scrollWidth, document.documentElement.scrollHeight, 0];";
        let [width, height, _] = self.ask(script, vec![]).await;
        let clip = json!({"x": 0, "y": 0, "width": width, "height": height, "scale": 1});
        let wanted = json!({"clip": clip, "captureBeyondViewport": true});
        let response = self.tell("Page.captureScreenshot", wanted).await;
        let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("site");
        fs::create_dir_all(&dir).unwrap();
        let picture = STANDARD.decode(response["value"]["data"].as_str().unwrap()).unwrap();
        fs::write(dir.join(format!("{}-{page}.png", self.name)), picture).unwrap();
    }

    async fn ask<const COUNT: usize>(&self, script: &str, arguments: Vec<Value>) -> [Value; COUNT] {
        serde_json::from_value::<Vec<Value>>(self.client.execute(script, arguments).await.unwrap())
            .unwrap()
            .try_into()
            .unwrap()
    }
}

/// A script that returns what axe finds; none where axe cannot be installed. The driver runs it in pages whose policy
/// allows no script.
pub(crate) fn axe() -> Option<&'static str> {
    static SCRIPT: OnceLock<Option<String>> = OnceLock::new();
    let install = || {
        let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("axe");
        Node::install(&dir, &[AXE])?;
        let axe = fs::read_to_string(dir.join("node_modules/axe-core/axe.min.js")).unwrap();
        assert_eq!(hex::encode(Sha256::digest(&axe)), AXE_SHA256, "npm has another {AXE}");
        Some(format!("{axe}\n{AXE_RUN}"))
    };
    SCRIPT.get_or_init(install).as_deref()
}

/// Maximum number of attempts to start chromedriver.
const STARTS_MAX: usize = 5;

impl Driver {
    fn start() -> Option<Self> {
        // Another process may take the port that chromedriver has found free.
        (0..STARTS_MAX).find_map(|_| Self::try_start())?
    }

    /// None if it did not start, and none within if it is not installed.
    fn try_start() -> Option<Option<Self>> {
        let mut command = Command::new("chromedriver");
        // Its browsers are in its process group.
        let child = command.arg("--port=0").process_group(0).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
        let Ok(mut child) = child else {
            testing::skip("chromedriver is missing", "install chromium and chromium-driver to test in a browser");
            return Some(None);
        };
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let port = lines.find_map(|line| line.split_once("successfully on port ").map(|(_, port)| port.to_owned()));
        let Some(port) = port else {
            drop(child.wait());
            return None;
        };
        Some(Some(Self { child, url: format!("http://127.0.0.1:{}", port.trim_end_matches('.')) }))
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // The driver does not end its browsers when it is ended.
        let group = format!("-{}", self.driver.child.id());
        _ = Command::new("kill").args(["-TERM", "--", &group]).status();
        _ = self.driver.child.wait();
    }
}
