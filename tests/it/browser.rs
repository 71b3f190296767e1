//! The account site in a real browser.

pub(crate) mod console;
pub(crate) mod driver;

use account::ClientSettings;
use driver::{Browser, Look, axe};
use fantoccini::key::Key;
use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::TcpListener,
};
use types::{Scope, Secret};

use crate::harness::{MESSAGE_TIMEOUT, Network, PASSWORD};

pub(crate) const DESK: Look = Look { width: 1200, dark: false, scripts: true };
const SECRET: &str = "app-secret";

/// A program that users allow to act for them. It only waits for the code.
struct Program {
    listener: TcpListener,
    redirect_uri: String,
}

impl Program {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let redirect_uri = format!("http://{}/callback", listener.local_addr().unwrap());
        Self { listener, redirect_uri }
    }

    /// The path with which the browser returns.
    async fn called(&self) -> String {
        let (stream, _) =
            tokio::time::timeout(MESSAGE_TIMEOUT, self.listener.accept()).await.expect("it comes").unwrap();
        let mut stream = BufReader::new(stream);
        let mut line = String::new();
        stream.read_line(&mut line).await.unwrap();
        let page = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: text/html\r\n\r\n<h1>Welcome back</h1>";
        stream.write_all(page.as_bytes()).await.unwrap();
        line.split(' ').nth(1).unwrap().to_owned()
    }

    async fn network(&self) -> Network {
        let client = ClientSettings {
            secret: Some(Secret::new(SECRET)),
            first_party: false,
            scope: vec![Scope::Profile, Scope::Apps],
            redirect_uris: vec![self.redirect_uri.clone()],
            legacy: false,
        };
        Network::with(|settings| {
            settings.account.clients.insert("weather-map".parse().unwrap(), client);
        })
        .await
    }

    /// The authorization URL.
    fn asks(&self) -> String {
        format!("/users/authorize?client_id=weather-map&redirect_uri={}&response_type=code&state=s1", self.redirect_uri)
    }

    async fn redeem(&self, network: &Network, path: &str) -> Value {
        let url = reqwest::Url::parse("http://program.invalid").unwrap().join(path).unwrap();
        let given = |wanted: &str| url.query_pairs().find(|(name, _)| name == wanted).unwrap().1.into_owned();
        assert_eq!(given("state"), "s1");
        let form =
            [("grant_type", "authorization_code"), ("code", &given("code")), ("redirect_uri", &self.redirect_uri)];
        let request = reqwest::Client::new().post(format!("{}/users/token", site(network)));
        let response = request.basic_auth("weather-map", Some(SECRET)).form(&form).send().await.unwrap();
        assert_eq!(response.status(), 200);
        response.json().await.unwrap()
    }
}

fn site(network: &Network) -> &str {
    &network.stack.settings().client.auth_server
}

async fn register(browser: &Browser) {
    let (email, again) = ("alice@example.com", PASSWORD);
    let fields = [("username", "alice"), ("email", email), ("password", PASSWORD), ("password_again", again)];
    browser.open("/register").await;
    browser.look("register").await;
    browser.submit("main form", &fields, "main form button", "Applications").await;
    browser.look("first-application").await;
    browser.open("/users/profile").await;
    browser.wait_for("Profile").await;
    browser.look("profile").await;
    browser.click("header form button").await;
    browser.wait_for("Airlock account").await;
    browser.look("home").await;
}

/// The whole flow: a user registers, logs in, creates an application, and allows a program to act for them.
async fn walk(name: &'static str, look: Look) {
    let program = Program::start().await;
    let network = program.network().await;
    let Some(browser) = Browser::start(site(&network), name, look).await else { return };
    register(&browser).await;
    browser.open("/my/applications").await;
    browser.wait_for("Log in").await;
    let wrong = [("username", "alice"), ("password", "wrong password")];
    browser.submit("main form", &wrong, "main form button", "Log in").await;
    browser.wait_for_refusal().await;
    browser.look("login-refused").await;
    let right = [("username", "alice"), ("password", PASSWORD)];
    browser.submit("main form", &right, "main form button", "Applications").await;
    browser.look("applications-none").await;
    make_things(&browser).await;

    browser.open(&program.asks()).await;
    browser.wait_for("Allow weather-map to act for you?").await;
    browser.look("consent").await;
    let (path, ()) = tokio::join!(program.called(), browser.click("button[value=allow]"));
    let token = program.redeem(&network, &path).await;
    assert!(token["access_token"].is_string(), "{token}");
    browser.wait_for("Welcome back").await;

    browser.open("/users/profile").await;
    browser.look("profile-client").await;
    browser.open("/nowhere").await;
    browser.look("not-found").await;
    // A page that stands alone, and is too long for a picture.
    browser.open("/api/v2/docs").await;
    assert_eq!(browser.problems().await, ["no nav", "no footer"]);
}

/// Creates an application and a gateway, and takes screenshots of their pages.
async fn make_things(browser: &Browser) {
    browser.open("/my/new-application").await;
    browser.look("application-new").await;
    let fields = [("id", "garden-sensors"), ("name", "Soil moisture and temperature in the garden")];
    browser.submit("main form", &fields, "main form button", "garden-sensors").await;
    browser.click("details summary").await;
    browser.look("application").await;
    assert!(browser.value(".copy input").await.contains('.'));
    let fields = [("key_name", "default key")];
    browser
        .submit("form[action$='/access-keys']", &fields, "form[action$='/access-keys'] button", "garden-sensors")
        .await;
    browser.wait_for_refusal().await;
    browser.look("application-refused").await;
    browser.open("/my/applications/garden-sensors/collaborators").await;
    browser.look("collaborators").await;
    browser.open("/my/applications/garden-sensors/delete").await;
    browser.look("delete").await;
    browser.open("/my/applications").await;
    browser.look("applications").await;
    browser.open("/my/new-gateway").await;
    browser.look("gateway-new").await;
    let fields = [("id", "roof"), ("description", "On the roof"), ("latitude", "52.52"), ("longitude", "13.405")];
    browser.click("#frequency_plan option[value=EU_863_870]").await;
    browser.submit("main form", &fields, "main form button", "roof").await;
    browser.look("gateway").await;
}

#[tokio::test]
async fn the_accessibility_audit_finds_faults() {
    let Some(browser) = Browser::start("data:text/html,", "bad", DESK).await else { return };
    browser.open("<h3 style='width:2000px'>A</h3><img><input><button></button><p style='color:silver'>B</p>").await;
    let problems = browser.problems().await.join("\n");
    for problem in [
        "scrolls sideways",
        "no language",
        "not one h1",
        "no main",
        "no alt: <img",
        "no label: <input",
        "no name: <button",
        "too small: <button",
        "contrast 1.8",
    ] {
        assert!(problems.contains(problem), "{problem} is not in {problems}");
    }
}

#[tokio::test]
async fn axe_finds_faults_whether_or_not_scripts_run() {
    if axe().is_none() {
        return;
    }
    for scripts in [true, false] {
        let Some(browser) = Browser::start("data:text/html,", "axe", Look { scripts, ..DESK }).await else { return };
        browser.open("<title>A</title><p role=knob>A</p><script>document.title = 'ran'</script>").await;
        let problems = browser.problems().await.join("\n");
        assert!(problems.contains("axe aria-roles: <p role=\"knob\">"), "{problems}");
        let title = browser.client.execute("return document.title;", vec![]).await.unwrap();
        assert_eq!(title, if scripts { "ran" } else { "A" }, "the page's own scripts stay as they were");
    }
}

#[tokio::test]
async fn a_user_registers_creates_an_application_and_authorizes_a_client() {
    walk("desk", DESK).await;
}

#[tokio::test]
async fn works_on_a_phone_in_dark_mode() {
    walk("phone", Look { width: 360, dark: true, ..DESK }).await;
}

#[tokio::test]
async fn works_without_javascript() {
    walk("plain", Look { scripts: false, ..DESK }).await;
}

#[tokio::test]
async fn a_user_logs_in_and_gets_a_code_by_keyboard_alone() {
    let program = Program::start().await;
    let network = program.network().await;
    let Some(browser) = Browser::start(site(&network), "keyboard", DESK).await else { return };
    register(&browser).await;
    let enter = Key::Enter.to_string();
    browser.open("/").await;
    browser.tab_to("a.skip").await;
    browser.press(&enter).await;
    browser.tab_to("main a[href*=ttnctl]").await;
    browser.press(&enter).await;
    browser.wait_for("Log in").await;
    browser.wait_until("#username:focus").await;
    browser.press("alice").await;
    browser.tab_to("#password").await;
    browser.press(&format!("{PASSWORD}{enter}")).await;
    browser.wait_for("Allow ttnctl to act for you?").await;
    browser.tab_to("button[value=allow]").await;
    browser.press(&enter).await;
    browser.wait_for("Access code").await;
    browser.look("code").await;
    let code = browser.value("#code").await;
    let form = [("grant_type", "authorization_code"), ("code", code.as_str())];
    let request = reqwest::Client::new().post(format!("{}/users/token", site(&network))).timeout(MESSAGE_TIMEOUT);
    let response = request.basic_auth("ttnctl", Some("ttnctl")).form(&form).send().await.unwrap();
    assert_eq!(response.status(), 200, "{}", response.text().await.unwrap());
}
