//! Logging in at an OpenID Connect provider from PyPI, in a real browser.

use std::{
    fs,
    io::{BufRead, BufReader},
    path::Path,
    process::{Child, Stdio},
};

use account::ProviderSettings;
use testing::Python;

use crate::{
    browser::{
        DESK,
        driver::{Browser, Look},
    },
    harness::{Network, PASSWORD},
};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/delivery/third_party_clients/openid_provider.py");

/// The provider; it ends when this is dropped.
struct Provider {
    child: Child,
    issuer: String,
}

impl Provider {
    /// `None` when it cannot be installed and the test is skipped.
    fn start() -> Option<Self> {
        let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("third_party_clients").join("openid_provider.py");
        let python = Python::install(&dir, &["oidc-provider-mock==0.3.4"])?;
        let mut command = python.command(Path::new(SCRIPT));
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it starts");
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let issuer = lines.next().expect("it says where it is").unwrap();
        Some(Self { child, issuer })
    }

    fn settings(&self, secret: &Path) -> ProviderSettings {
        ProviderSettings {
            title: "Example".to_owned(),
            issuer: self.issuer.clone(),
            client_id: "airlock".to_owned(),
            client_secret_file: Some(secret.to_owned()),
            scope: "openid profile email".to_owned(),
            create_users: true,
        }
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

/// Logs in at the provider, whose page is open.
async fn log_in_there(browser: &Browser, subject: &str) {
    browser.submit("main form", &[("sub", subject)], "main form button[type=submit]", "Profile").await;
}

async fn log_out(browser: &Browser) {
    browser.click("header form button").await;
    browser.wait_for("Airlock account").await;
}

async fn go_to_provider(browser: &Browser) {
    browser.open("/users/login?next=/users/profile").await;
    browser.wait_for("Log in").await;
    browser.look("login").await;
    browser.click("main a.button").await;
    browser.wait_for("Authorize Client").await;
}

// Conformance: logins at OpenID Connect providers
#[tokio::test(flavor = "multi_thread")]
async fn a_browser_without_scripts_logs_in_at_a_provider_and_links_a_login() {
    let Some(provider) = Provider::start() else { return };
    let dir = tempfile::tempdir().unwrap();
    let secret = dir.path().join("secret");
    fs::write(&secret, "a secret").unwrap();
    let network = Network::with(|settings| {
        settings.account.login_providers.insert("example".parse().unwrap(), provider.settings(&secret));
    })
    .await;
    let site = network.stack.settings().client.auth_server.clone();
    let look = Look { scripts: false, ..DESK };
    let Some(browser) = Browser::start(&site, "login-provider", look).await else { return };

    go_to_provider(&browser).await;
    log_in_there(&browser, "1").await;
    assert_eq!(browser.value("#username").await, "alice");
    browser.look("profile-without-password").await;
    log_out(&browser).await;

    browser.open("/register").await;
    let fields = [("username", "bob"), ("email", "bob@example.com"), ("password", PASSWORD)];
    let fields = [&fields[..], &[("password_again", PASSWORD)]].concat();
    browser.submit("main form", &fields, "main form button", "Applications").await;
    browser.open("/users/profile/logins/example").await;
    browser.wait_for("Link Example").await;
    browser.look("link").await;
    browser.submit("main form", &[("old_password", PASSWORD)], "main form button", "Authorize Client").await;
    log_in_there(&browser, "2").await;
    browser.look("profile-linked").await;
    log_out(&browser).await;

    go_to_provider(&browser).await;
    log_in_there(&browser, "2").await;
    assert_eq!(browser.value("#username").await, "bob");
    network.stack.stop().await;
}
