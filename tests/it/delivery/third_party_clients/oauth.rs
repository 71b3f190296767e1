//! Third-party OAuth libraries against our account service.

use std::{
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use account::ClientSettings;
use airlock::{
    serve::{Service, Stack},
    settings::Settings,
};
use client::account::{AccountClient, ClientCredentials};
use tempfile::TempDir;
use testing::{Node, Python};
use types::{Scope, Secret};

use super::browser::Browser;
use crate::harness::{PASSWORD, environment};

const SECRET: &str = "Ki6yF0cYAK2xB-the-clients-secret_1qZ";

/// The account service with the program as a client, and the user alice.
struct Site {
    base: String,
    stack: Stack,
    _dir: TempDir,
}

impl Site {
    async fn start() -> Self {
        server::system::install_crypto();
        let dir = tempfile::tempdir().unwrap();
        let mut settings = Settings::default().temporary(dir.path());
        let client = ClientSettings {
            secret: Some(Secret::new(SECRET)),
            first_party: true,
            scope: vec![Scope::Apps, Scope::Profile],
            redirect_uris: vec!["https://third-party.example/callback".to_owned()],
            legacy: false,
        };
        settings.account.clients.insert("third-party".parse().unwrap(), client);
        let stack = Stack::start(settings, Some(Service::Account), environment()).await.unwrap();
        let base = stack.settings().client.auth_server.clone();
        Self { base, stack, _dir: dir }
    }

    fn account(&self) -> AccountClient {
        AccountClient::new(&self.base).unwrap()
    }
}

// Conformance: GET /users/authorize: login, consent, redirect with a code
#[tokio::test(flavor = "multi_thread")]
async fn authlib_does_the_code_refresh_and_password_flows() {
    let script = "authlib_flows.py";
    let Some(python) = Python::install(&dir(script), &["Authlib==1.9.9", "requests==2.34.2"]) else { return };
    let mut command = python.command(&path(script));
    // Authlib refuses plain HTTP, even on this machine, unless it is told.
    command.env("AUTHLIB_INSECURE_TRANSPORT", "1");
    flows(command).await;
}

// Conformance: POST /users/token: `password`, `authorization_code`
#[tokio::test(flavor = "multi_thread")]
async fn simple_oauth2_does_the_code_refresh_and_password_flows() {
    let script = "simple_oauth2_flows.js";
    let Some(node) = Node::install(&dir(script), &["simple-oauth2@5.1.0"]) else { return };
    flows(node.command(&path(script))).await;
}

// Conformance: GET /key
// Conformance: A bearer token is verified with the published key
#[tokio::test(flavor = "multi_thread")]
async fn pyjwt_verifies_a_token_with_the_published_key_alone() {
    let script = "pyjwt_key.py";
    let Some(python) = Python::install(&dir(script), &["PyJWT==2.15.1", "cryptography==50.0.2"]) else { return };
    let site = Site::start().await;
    Browser::register(&site.base).await;
    let client = ClientCredentials { id: "third-party".parse().unwrap(), secret: Secret::new(SECRET) };
    let (alice, password) = ("alice".parse().unwrap(), Secret::new(PASSWORD));
    let token = site.account().password_token(&client, &alice, &password, &[]).await.unwrap().access_token;
    let mut command = python.command(&path(script));
    let output = tokio::task::spawn_blocking({
        command.args([&site.base, token.expose()]);
        move || command.output().unwrap()
    });
    let output = output.await.unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "done", "{output:?}");
    site.stack.stop().await;
}

/// Runs a program that prints an authorization URL and reads the redirect URL.
async fn flows(mut command: Command) {
    let site = Site::start().await;
    let browser = Browser::register(&site.base).await;
    command.args([&site.base, SECRET, PASSWORD]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let url = lines.next().expect("it says where a browser must go").unwrap();
    let redirected = browser.allow(&url).await;
    writeln!(child.stdin.take().unwrap(), "{redirected}").unwrap();
    let ended = tokio::task::spawn_blocking(move || (lines.next(), child.wait().unwrap()));
    let (last, status) = ended.await.unwrap();
    assert!(status.success() && last.is_some_and(|line| line.is_ok_and(|line| line == "done")), "{status}");
    site.stack.stop().await;
}

/// Returns the directory in which the packages of a script are installed.
fn dir(script: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("third_party_clients").join(script)
}

fn path(script: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/delivery/third_party_clients").join(script)
}
