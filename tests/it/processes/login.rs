//! Logging in on the command line, with a code from the account site, and beyond the lifetime of a token.

use std::{
    fs::Permissions,
    io::{BufRead, BufReader, Read, Write},
    os::unix::fs::PermissionsExt,
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
    delivery::third_party_clients::browser::Browser,
    harness::{PASSWORD, airlock, at_terminal, complaint, environment, printed, run},
};

/// The account service with the user alice, and her files.
struct CommandLine {
    base: String,
    stack: Stack,
    dir: TempDir,
    browser: Browser,
}

impl CommandLine {
    async fn start() -> Self {
        server::system::install_crypto();
        let dir = tempfile::tempdir().unwrap();
        let settings = Settings::default().temporary(dir.path());
        let stack = Stack::start(settings, Some(Service::Account), environment()).await.unwrap();
        let base = stack.settings().client.auth_server.clone();
        let browser = Browser::register(&base).await;
        Self { base, stack, dir, browser }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = airlock(self.dir.path());
        command.args(["--auth-server", &self.base]).args(arguments);
        command
    }

    fn type_command(&self, arguments: &[&str], input: &str) -> Output {
        run(&mut self.command(arguments), input)
    }

    /// Starts a login; returns the printed URL.
    fn begin(&self) -> String {
        let output = self.type_command(&["user", "login"], "");
        assert!(complaint(&output).contains("not logged in yet"), "nobody has logged in");
        let said = String::from_utf8_lossy(&output.stdout);
        said.lines().find(|line| line.starts_with("http")).expect("it says where to get a code").to_owned()
    }

    /// Consents as alice; returns the code on the page.
    async fn code(&self, url: &str) -> String {
        let shown = Url::parse(&self.base).unwrap().join(&self.browser.allow(url).await).unwrap();
        assert!(["/oauth/callback/airlock", "/oauth/callback/ttnctl"].contains(&shown.path()), "{shown}");
        let code = shown.query_pairs().find(|(name, _)| name == "code").expect("there is a code");
        code.1.into_owned()
    }

    fn file(&self, name: &str) -> std::path::PathBuf {
        Path::new(self.dir.path()).join("client").join(name)
    }
}

// Conformance: user: login with a code or a password, logout, register
#[tokio::test(flavor = "multi_thread")]
async fn a_code_works_once_for_the_login_that_requested_it() {
    let line = CommandLine::start().await;
    let code = line.code(&line.begin()).await;
    let stranger = tempfile::tempdir().unwrap();
    let elsewhere = run(airlock(stranger.path()).args(["--auth-server", &line.base, "user", "login", &code]), "");
    assert!(complaint(&elsewhere).contains("get a new code with `airlock user login`"));

    let said = printed(&line.type_command(&["user", "login", &code], ""));
    assert!(said.contains("Logged in as alice (alice@example.com)"), "{said}");
    assert!(printed(&line.type_command(&["user"], "")).contains("valid until"));
    assert!(!line.file("begun.json").exists());
    let used = complaint(&line.type_command(&["user", "login", &code], ""));
    assert!(used.contains("get a new code with `airlock user login`"), "{used}");
    line.stack.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn refuses_a_code_for_an_earlier_login() {
    let line = CommandLine::start().await;
    let code = line.code(&line.begin()).await;
    line.begin();
    let error = complaint(&line.type_command(&["user", "login", &code], ""));
    assert!(error.contains("code_verifier"), "{error}");
    assert!(complaint(&line.type_command(&["user"], "")).contains("not logged in"));
    let error = complaint(&line.type_command(&["user", "login"], "no-code\n"));
    assert!(error.contains("38 characters"), "{error}");
    line.stack.stop().await;
}

// Conformance: user: login with a code or a password, logout, register
#[tokio::test(flavor = "multi_thread")]
async fn a_code_from_the_page_of_the_site_needs_no_command_before() {
    let page = "/users/authorize?client_id=ttnctl&redirect_uri=/oauth/callback/ttnctl&response_type=code";
    for is_pending in [false, true] {
        let line = CommandLine::start().await;
        if is_pending {
            line.begin();
        }
        let code = line.code(&format!("{}{page}", line.base)).await;
        let said = printed(&line.type_command(&["user", "login", &code], ""));
        assert!(said.contains("Logged in as alice (alice@example.com)"), "{said}");
        // It is refreshed and revoked as the client that it was issued to.
        let mut login: Value = serde_json::from_slice(&std::fs::read(line.file("login.json")).unwrap()).unwrap();
        login["expires"] = json!("2017-01-17T14:47:09Z");
        std::fs::write(line.file("login.json"), login.to_string()).unwrap();
        assert!(printed(&line.type_command(&["user"], "")).contains("valid until"));
        printed(&line.type_command(&["user", "logout"], ""));
        line.stack.stop().await;
    }
}

// Conformance: user: login with a code or a password, logout, register
#[tokio::test(flavor = "multi_thread")]
async fn a_code_can_be_entered_at_the_prompt() {
    let line = CommandLine::start().await;
    let mut child =
        line.command(&["user", "login"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let url = output.by_ref().lines().map_while(Result::ok).find(|line| line.starts_with("http")).unwrap();
    let code = line.code(&url).await;
    writeln!(child.stdin.take().unwrap(), "{code}").unwrap();
    let mut rest = String::new();
    output.read_to_string(&mut rest).unwrap();
    assert!(child.wait().unwrap().success() && rest.contains("Logged in as alice"), "{rest}");
    line.stack.stop().await;
}

/// The browser of the desktop is one that only notes the URL.
// Conformance: user: login with a code or a password, logout, register
#[tokio::test(flavor = "multi_thread")]
async fn a_browser_on_this_machine_brings_the_code() {
    let line = CommandLine::start().await;
    let (bin, opened) = (line.dir.path().join("bin"), line.dir.path().join("opened"));
    std::fs::create_dir(&bin).unwrap();
    let script = format!("#!/bin/sh\nprintf '%s' \"$1\" > {0}.new && mv {0}.new {0}\n", opened.display());
    std::fs::write(bin.join("xdg-open"), script).unwrap();
    std::fs::set_permissions(bin.join("xdg-open"), Permissions::from_mode(0o755)).unwrap();
    let command = line.command(&["user", "login"]);
    let mut terminal = at_terminal(&command, "$AIRLOCK", line.dir.path());
    let path = format!("{}:{}", bin.display(), std::env::var_os("PATH").unwrap().display());
    terminal.env("PATH", path).env("DISPLAY", ":99").stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = terminal.spawn().expect("it starts");
    while !opened.exists() {
        if child.try_wait().unwrap().is_some() {
            panic!("it did not wait for the browser: {:?}", child.wait_with_output());
        }
        tokio::task::yield_now().await;
    }
    let redirect = line.browser.allow(&std::fs::read_to_string(&opened).unwrap()).await;
    assert!(redirect.starts_with("http://127.0.0.1:") && redirect.contains("state="), "{redirect}");
    let page = reqwest::get(&redirect).await.unwrap().text().await.unwrap();
    assert!(page.contains("You are logged in"), "{page}");
    let said = child.wait_with_output().unwrap();
    assert!(printed(&said).contains("Logged in as alice"));
    assert!(printed(&line.type_command(&["user"], "")).contains("alice"));
    line.stack.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_expired_login_is_refreshed_until_it_is_revoked() {
    let line = CommandLine::start().await;
    printed(&line.type_command(&["user", "login", "alice", "--password-stdin"], PASSWORD));
    let kept = std::fs::read(line.file("login.json")).unwrap();
    let end = |with: &[(&str, Value)]| {
        let mut login: Value = serde_json::from_slice(&std::fs::read(line.file("login.json")).unwrap()).unwrap();
        login["expires"] = json!("2017-01-17T14:47:09Z");
        with.iter().for_each(|(name, value)| login[name] = value.clone());
        std::fs::write(line.file("login.json"), login.to_string()).unwrap();
    };
    end(&[]);
    assert!(printed(&line.type_command(&["user"], "")).contains("alice@example.com"));
    for refresh_token in [Value::Null, json!("nonsense")] {
        end(&[("refresh_token", refresh_token)]);
        let refused = line.type_command(&["user"], "");
        assert_eq!(refused.status.code(), Some(4), "as without a login");
        let error = complaint(&refused);
        assert!(error.contains("your login has expired: log in again with `airlock user login alice`"), "{error}");
    }
    // A copy of a revoked login is useless.
    std::fs::write(line.file("login.json"), &kept).unwrap();
    assert!(printed(&line.type_command(&["user", "logout"], "")).contains("Logged out"));
    std::fs::write(line.file("login.json"), &kept).unwrap();
    end(&[]);
    assert!(complaint(&line.type_command(&["user"], "")).contains("your login has expired"));
    line.stack.stop().await;
}
