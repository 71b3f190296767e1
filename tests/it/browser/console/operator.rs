//! The pages of operators in a real browser: their server, bridges, the audit log, and users.

use serde_json::json;

use super::{BROKEN, log_in, wait_for_text};
use crate::{
    browser::{
        DESK,
        driver::{Browser, Look},
        site,
    },
    console::{bridges::away, operator::operated_with},
};

/// The pages of operators, with what every server has, functions that fail, a long line in the audit log, and a network
/// that is away.
async fn operate(name: &'static str, look: Look) {
    let (time, event) = ("2026-11-27T10:00:00Z", "collaborator set");
    let line = |object: &str| json!({"timestamp": time, "event": event, "actor": "user alice", "object": object});
    let audit = format!("{}\n{}\n", line("alice-app"), line(&"alice-app ".repeat(40)));
    let network = operated_with(&audit, |settings| settings.bridge.into = vec![away("alice-app")]).await;
    let bobby = network.owner("bobby").await;
    bobby.add_device("dev-1").await;
    bobby.set_functions([BROKEN, "", ""]).await.unwrap();
    for number in 0..10 {
        bobby.simulate("dev-1", &[1, 2][..1 + number % 2], 1).await.unwrap();
    }
    let Some(browser) = Browser::start(site(&network), name, look).await else { return };
    log_in(&browser).await;
    browser.click("header a[href='/console/operator']").await;
    browser.wait_for("Operator").await;
    wait_for_text(&browser, "td", event).await;
    browser.look("console-operator").await;
    browser.click("main a[href='/console/bridges']").await;
    browser.wait_for("Bridges").await;
    wait_for_text(&browser, "span", "not connected").await;
    browser.look("console-bridges").await;
    browser.click("main a[href='/console/bridges/new']").await;
    browser.wait_for("Connect a network").await;
    browser.look("console-bridge-new").await;
    let closed = [("api_url", "http://127.0.0.1:1"), ("mqtt_url", "mqtt://127.0.0.1:1"), ("api_key", "key")];
    let applications = [("application", "lab"), ("app_id", "alice-app")];
    let fields = [&closed[..], &applications].concat();
    browser.submit("main form", &fields, "main form button", "Connect a network").await;
    wait_for_text(&browser, "dd", "failed").await;
    browser.look("console-bridge-checked").await;
    browser.open("/console/operator/audit").await;
    browser.wait_for("Audit log").await;
    browser.submit("main form", &[("search", "COLLABORATOR")], "main form button", "Audit log").await;
    wait_for_text(&browser, "td", event).await;
    browser.look("console-audit").await;
    browser.open("/console/operator").await;
    browser.wait_for("Operator").await;
    browser.submit("main form", &[("owner", "nobody")], "main form button", "Operator").await;
    wait_for_text(&browser, "p", "is no owner").await;
    browser.look("console-operator-nobody").await;
    browser.click("main a[href='/console/operator/users']").await;
    browser.wait_for("Users").await;
    wait_for_text(&browser, "td", "bobby@example.com").await;
    browser.look("console-users").await;
    browser.submit("main form", &[("search", "nobody")], "main form button", "Users").await;
    wait_for_text(&browser, "p", "has “nobody”").await;
    browser.look("console-users-nobody").await;
    browser.submit("main form", &[("search", "bobby@")], "main form button", "Users").await;
    wait_for_text(&browser, "td", "bobby@example.com").await;
    browser.click("main td a").await;
    browser.wait_for("bobby").await;
    browser.look("console-user").await;
}

// Conformance: console: the page of operators
// Conformance: console: users, for operators
#[tokio::test]
async fn an_operator_looks_at_the_server() {
    operate("console-operator-desk", Look { width: 1280, dark: true, ..DESK }).await;
}

// Conformance: console: the page of operators
// Conformance: console: users, for operators
#[tokio::test]
async fn an_operator_looks_at_the_server_on_a_phone_without_scripts() {
    operate("console-operator-phone", Look { width: 375, dark: false, scripts: false }).await;
}
