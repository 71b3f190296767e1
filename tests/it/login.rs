//! Logging in on the command line, with a code from the account site, and beyond the lifetime of a token.

use std::{
    io::{BufRead, BufReader, Read, Write},
    path::Path,
    process::{Command, Output, Stdio},
};

use airlock::{
    serve::{Service, Stack},
    settings::Settings,
};
use reqwest::Url;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    harness::{PASSWORD, airlock, complaint, metrics, printed, run},
    third_party_clients::browser::Browser,
};

/// The account service with the user alice, and her files.
struct Desk {
    base: String,
    stack: Stack,
    folder: TempDir,
    browser: Browser,
}

impl Desk {
    async fn set() -> Self {
        server::system::install_crypto();
        let folder = tempfile::tempdir().unwrap();
        let settings = Settings::default().temporary(folder.path());
        let stack = Stack::start(settings, Some(Service::Account), metrics()).await.unwrap();
        let base = stack.settings().client.auth_server.clone();
        let browser = Browser::register(&base).await;
        Self { base, stack, folder, browser }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = airlock(self.folder.path());
        command.args(["--auth-server", &self.base]).args(arguments);
        command
    }

    fn type_command(&self, arguments: &[&str], input: &str) -> Output {
        run(&mut self.command(arguments), input)
    }

    /// Starts a login; returns the printed URL.
    fn begin(&self) -> String {
        let said = printed(&self.type_command(&["user", "login"], ""));
        said.lines().find(|line| line.starts_with("http")).expect("it says where to get a code").to_owned()
    }

    /// Consents as alice; returns the code on the page.
    async fn code(&self, url: &str) -> String {
        let shown = Url::parse(&self.base).unwrap().join(&self.browser.allow(url).await).unwrap();
        assert_eq!(shown.path(), "/oauth/callback/airlock");
        let code = shown.query_pairs().find(|(name, _)| name == "code").expect("there is a code");
        code.1.into_owned()
    }

    fn file(&self, name: &str) -> std::path::PathBuf {
        Path::new(self.folder.path()).join("client").join(name)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_code_works_once_for_the_login_that_requested_it() {
    let desk = Desk::set().await;
    let code = desk.code(&desk.begin()).await;
    let stranger = tempfile::tempdir().unwrap();
    let elsewhere = run(airlock(stranger.path()).args(["--auth-server", &desk.base, "user", "login", &code]), "");
    assert!(complaint(&elsewhere).contains("run `airlock user login` first"));

    let said = printed(&desk.type_command(&["user", "login", &code], ""));
    assert!(said.contains("Logged in as alice (alice@example.com)"), "{said}");
    assert!(printed(&desk.type_command(&["user"], "")).contains("valid until"));
    assert!(!desk.file("begun.json").exists());
    assert!(complaint(&desk.type_command(&["user", "login", &code], "")).contains("get the code at"));
    desk.stack.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rejects_a_code_for_an_earlier_login() {
    let desk = Desk::set().await;
    let code = desk.code(&desk.begin()).await;
    desk.begin();
    let error = complaint(&desk.type_command(&["user", "login", &code], ""));
    assert!(error.contains("code_verifier"), "{error}");
    assert!(complaint(&desk.type_command(&["user"], "")).contains("not logged in"));
    let error = complaint(&desk.type_command(&["user", "login"], "no-code\n"));
    assert!(error.contains("38 characters"), "{error}");
    desk.stack.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_code_can_be_entered_at_the_prompt() {
    let desk = Desk::set().await;
    let mut child =
        desk.command(&["user", "login"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let url = output.by_ref().lines().map_while(Result::ok).find(|line| line.starts_with("http")).unwrap();
    let code = desk.code(&url).await;
    writeln!(child.stdin.take().unwrap(), "{code}").unwrap();
    let mut rest = String::new();
    output.read_to_string(&mut rest).unwrap();
    assert!(child.wait().unwrap().success() && rest.contains("Logged in as alice"), "{rest}");
    desk.stack.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_expired_login_is_refreshed_until_it_is_revoked() {
    let desk = Desk::set().await;
    printed(&desk.type_command(&["user", "login", "alice", "--password-stdin"], PASSWORD));
    let kept = std::fs::read(desk.file("login.json")).unwrap();
    let end = |with: &[(&str, Value)]| {
        let mut login: Value = serde_json::from_slice(&std::fs::read(desk.file("login.json")).unwrap()).unwrap();
        login["expires"] = json!("2017-01-17T14:47:09Z");
        with.iter().for_each(|(name, value)| login[name] = value.clone());
        std::fs::write(desk.file("login.json"), login.to_string()).unwrap();
    };
    end(&[]);
    assert!(printed(&desk.type_command(&["user"], "")).contains("alice@example.com"));
    for refresh_token in [Value::Null, json!("nonsense")] {
        end(&[("refresh_token", refresh_token)]);
        let error = complaint(&desk.type_command(&["user"], ""));
        assert!(error.contains("your login has expired: log in again with `airlock user login alice`"), "{error}");
    }
    // A copy of a revoked login is useless.
    std::fs::write(desk.file("login.json"), &kept).unwrap();
    assert!(printed(&desk.type_command(&["user", "logout"], "")).contains("Logged out"));
    std::fs::write(desk.file("login.json"), &kept).unwrap();
    end(&[]);
    assert!(complaint(&desk.type_command(&["user"], "")).contains("your login has expired"));
    desk.stack.stop().await;
}
