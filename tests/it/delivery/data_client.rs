//! The data clients against real services: here the one for JavaScript, in Node.js and in a browser.

mod rust;

use std::{
    fs,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    sync::OnceLock,
};

use api::handler::Application;
use testing::Node;
use types::Credential;

use crate::{
    browser::{DESK, driver::Browser},
    delivery::third_party_clients::python_sdk::full_key,
    harness::{MESSAGE_TIMEOUT, Network, Owner, printed},
};

/// Packages of npm that the client and its tests need.
const PACKAGES: [&str; 3] = ["mqtt@5.16.0", "typescript@7.0.2", "@types/node@20.19.0"];
const DECODER: &str = r#"
    function Decoder(bytes) {
        if (bytes[0] === 255) throw new Error("out of range");
        return { bytes: bytes };
    }
"#;
const ENCODER: &str = "function Encoder(fields) { return [fields.led ? 1 : 0]; }";

/// Returns the directory of the installed package, with its dependencies beside it; `None` where npm cannot be used.
fn package() -> Option<(&'static Node, &'static Path)> {
    static PACKAGE: OnceLock<Option<(Node, PathBuf)>> = OnceLock::new();
    let install = || {
        let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("data_client");
        let node = Node::install(&dir, &PACKAGES)?;
        let package = dir.join("airlock-data-client");
        _ = fs::remove_dir_all(&package);
        copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join("crates/client/js"), &package);
        Some((node, package))
    };
    PACKAGE.get_or_init(install).as_ref().map(|(node, package)| (node, package.as_path()))
}

/// Copies a directory, without what a developer has installed there.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        match entry.file_type().unwrap() {
            kind if kind.is_dir() && entry.file_name() != "node_modules" => copy(&entry.path(), &target),
            kind if kind.is_file() => _ = fs::copy(entry.path(), target).unwrap(),
            _ => {}
        }
    }
}

/// An application with two devices, a decoder and an encoder.
async fn application(network: &Network) -> Owner {
    let owner = network.owner("alice").await;
    let application = Application {
        app_id: owner.app_id.to_string(),
        decoder: DECODER.to_owned(),
        encoder: ENCODER.to_owned(),
        ..Application::default()
    };
    owner.handler.set_application(application).await.unwrap();
    owner.add_device("dev-1").await;
    owner.add_device("dev-2").await;
    owner
}

/// Runs a program while the services keep running.
async fn run(mut command: Command) -> Output {
    tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap()
}

// Conformance: The data client for JavaScript: listeners, downlinks, events of the connection
#[tokio::test(flavor = "multi_thread")]
async fn the_javascript_client_passes_its_tests() {
    let Some((node, package)) = package() else { return };
    let network = Network::start().await;
    let owner = application(&network).await;
    let Credential::Token(token) = &owner.token else { panic!("owners have tokens") };
    let mut command = node.command(Path::new("--test"));
    for entry in fs::read_dir(package.join("test")).unwrap().map(Result::unwrap) {
        if entry.file_name().to_string_lossy().ends_with(".test.js") {
            command.arg(entry.path());
        }
    }
    command.env("MQTT_ADDRESS", network.mqtt()).env("HANDLER_URL", network.handler_http());
    command.env("APP_ID", owner.app_id.as_str()).env("ACCESS_TOKEN", token.expose());
    command.env("ACCESS_KEY", full_key(&network, &owner).await.expose());
    let report = printed(&run(command).await);
    assert!(report.contains("# skipped 0") && report.contains("# fail 0"), "{report}");
    network.stack.stop().await;
}

// Conformance: The data client for JavaScript: listeners, downlinks, events of the connection
#[tokio::test(flavor = "multi_thread")]
async fn the_types_of_the_javascript_client_fit() {
    let Some((node, package)) = package() else { return };
    let compiler = package.parent().unwrap().join("node_modules/typescript/bin/tsc");
    let mut command = node.command(&compiler);
    command.arg("--project").arg(package.join("test"));
    assert_eq!(printed(&run(command).await), "");
}

/// A web server for the package.
struct WebServer {
    child: Child,
    url: String,
}

impl WebServer {
    fn start(node: &Node, package: &Path) -> Self {
        let mut command = node.command(&package.join("test/browser/server.js"));
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Self { child, url: format!("http://127.0.0.1:{}", line.trim()) }
    }
}

impl Drop for WebServer {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

// Conformance: The data client for JavaScript in a browser, over WebSocket
#[tokio::test(flavor = "multi_thread")]
async fn the_javascript_client_works_in_a_browser() {
    let Some((node, package)) = package() else { return };
    let network = Network::with(|settings| settings.broker.websocket_listen = "127.0.0.1:0".to_owned()).await;
    let broker = network.stack.mqtt_websocket_address().unwrap();
    let owner = application(&network).await;
    let key = full_key(&network, &owner).await;
    let server = WebServer::start(node, package);
    let Some(browser) = Browser::start(&server.url, "data-client", DESK).await else { return };
    let (app_id, key) = (&owner.app_id, key.expose());
    browser.open(&format!("/test/browser/index.html?app_id={app_id}&access_key={key}&broker={broker}")).await;
    // The page subscribes a moment after it is open.
    let simulate = async {
        loop {
            owner.simulate("dev-1", &[1, 255], 1).await.unwrap();
            tokio::time::sleep(MESSAGE_TIMEOUT / 100).await;
        }
    };
    tokio::select! {
        () = browser.wait_for("dev-1 gets Af8=") => {}
        () = simulate => unreachable!("it never ends"),
    }
    network.stack.stop().await;
}
