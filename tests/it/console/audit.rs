//! The page of the audit log: who sees it, its search, and how it goes on in older files.

use std::fs;

use serde_json::json;

use super::{
    operator::{AUDIT, operated, start},
    visitor::Visitor,
};

const PATH: &str = "/console/operator/audit";

/// Lines about applications with these numbers.
fn lines(numbers: impl Iterator<Item = usize>) -> String {
    let line = |number| {
        let (time, object) = ("2026-11-27T10:00:00Z", format!("app-{number}"));
        json!({"timestamp": time, "event": "key added", "actor": "user carol", "object": object}).to_string() + "\n"
    };
    numbers.map(line).collect()
}

// Conformance: console: the audit log with its search, for operators
#[tokio::test(flavor = "multi_thread")]
async fn all_events_that_are_kept_are_searched_page_by_page() {
    let network = operated(&lines(100..150)).await;
    fs::write(network.dir.path().join(format!("{AUDIT}.1")), lines(0..100)).unwrap();
    network.owner("bobby").await;
    let account = &network.stack.settings().client.auth_server;
    let (alice, bobby) = (Visitor::logged_in(account, "alice").await, Visitor::logged_in(account, "bobby").await);
    for visitor in [&alice, &bobby] {
        visitor.get("/console").await;
    }
    assert!(alice.get("/console/operator").await.html.contains("href=\"/console/operator/audit\""));
    let page = alice.get(&format!("{PATH}?search=CAROL")).await;
    assert_eq!(page.html.matches("<td>key added</td>").count(), 100, "{}", page.html);
    for (object, is_there) in [(">app-149<", true), (">app-50<", true), (">app-49<", false)] {
        assert_eq!(page.html.contains(object), is_there, "{object}: {}", page.html);
    }
    let page = alice.get(&format!("{PATH}?search=CAROL&before={}", page.value("before"))).await;
    assert_eq!(page.html.matches("<td>key added</td>").count(), 50, "{}", page.html);
    assert!(page.html.contains(">app-0<") && !page.html.contains("name=\"before\""), "{}", page.html);
    assert!(page.html.contains("href=\"/console/operator/audit\">Newest events</a>"), "{}", page.html);
    let page = alice.get(&format!("{PATH}?search=%3Cb%3Enobody")).await;
    assert!(page.html.contains("There are no such events") && !page.html.contains("<b>"), "{}", page.html);

    let unknown = bobby.get("/console/nothing").await.html;
    assert_eq!((bobby.get(PATH).await.html, bobby.post(PATH, &[]).await.status), (unknown, 404));
    network.stack.stop().await;
}

// Conformance: console: the audit log with its search, for operators
#[tokio::test]
async fn a_console_alone_says_where_to_look() {
    let (_network, [alice, ..]) = start(None).await;
    let page = alice.get(PATH).await;
    assert!(page.status == 200 && page.html.contains("telemetry.audit_file"), "{}: {}", page.status, page.html);
}
