//! The link with which whoever has started the server creates the first account.

use std::fs;

use airlock_account::Settings;
use serde_json::{Value, json};
use server::{audit::AuditLog, telemetry::TelemetrySettings};

use super::{Browser, Page};
use crate::{
    processes::audit::record_here,
    service::{PASSWORD, Service, bearer},
};

const USERS: &str = "/api/v2/users";
/// More writes than the first account takes.
const WRITES_MAX: i64 = 20;

/// The path of the link, and its token.
async fn link(service: &Service) -> (String, String) {
    let link = service.account.first_account_link().await.unwrap().unwrap();
    let path = link.strip_prefix(&service.base).unwrap().to_owned();
    let token = path.strip_prefix("/register?first=").unwrap().to_owned();
    assert!(token.len() == 32 && token.bytes().all(|byte| byte.is_ascii_hexdigit()), "{token}");
    (path, token)
}

async fn register(service: &Service, token: &str, name: &str, password: &str) -> Page {
    let email = format!("{name}@example.com");
    let fields = [("first", token), ("username", name), ("email", &email), ("password", password)];
    Browser::new(service).post("/register", &fields).await
}

/// Returns true if this user may list all users.
async fn is_operator(service: &Service, name: &str) -> bool {
    let token = service.login(name, PASSWORD, Value::Null).await.json();
    let response = service.get(USERS, &bearer(&token["access_token"])).await;
    assert!([200, 403].contains(&response.status.as_u16()), "{response:?}");
    response.status == 200
}

// Conformance: the first account: an operator's, by a link that works once
#[tokio::test]
async fn the_link_creates_one_account_which_is_an_operators() {
    for service in Service::start_on_each_store().await {
        let (path, token) = link(&service).await;
        let page = Browser::new(&service).get(&path).await;
        page.check(&path);
        assert_eq!((page.text("h1").as_str(), page.value("[name=first]")), ("Create the first account", &*token));
        assert_eq!((page.value("#username"), page.value("#email")), ("admin", "admin@localhost"));
        assert_eq!(page.all("main input[type=password]").len(), 1, "there is nothing else to type");
        assert!(page.has("#password[autofocus]:not([value])") && !page.has("#application"), "there is no console");

        let refused = register(&service, &token, "alice", "short").await;
        assert_eq!((refused.status.as_u16(), refused.value("[name=first]")), (400, &*token), "it is still valid");
        assert_eq!(refused.value("#username"), "alice");
        assert!(service.account.awaits_first_account().await.unwrap());
        assert_eq!(register(&service, &token, "alice", PASSWORD).await.place(), "/my/applications");
        assert!(!service.account.awaits_first_account().await.unwrap());
        assert!(is_operator(&service, "alice").await);

        assert_eq!(register(&service, &token, "bobby", PASSWORD).await.status, 403);
        let page = Browser::new(&service).get(&path).await;
        page.check(&path);
        assert!(page.status == 403 && page.text("main").contains("works once"), "{}", page.html.html());
        let users = service.account.list_users(None).await.unwrap();
        assert_eq!(users.len(), 1);
        assert!(users[0].user.valid, "nobody has to confirm the address");
        assert!(service.account.first_account_link().await.unwrap().is_none());
    }
}

// Conformance: the first account: an operator's, by a link that works once
#[tokio::test]
async fn of_two_who_use_the_link_at_once_one_gets_the_account() {
    let service = Service::start().await;
    let (_, token) = link(&service).await;
    let (alice, bobby) =
        tokio::join!(register(&service, &token, "alice", PASSWORD), register(&service, &token, "bobby", PASSWORD));
    let mut statuses = [alice.status.as_u16(), bobby.status.as_u16()];
    statuses.sort_unstable();
    assert_eq!(statuses, [303, 403]);
    assert_eq!(service.account.list_users(None).await.unwrap().len(), 1);
}

// Conformance: the first account: an operator's, by a link that works once
#[tokio::test]
async fn who_sends_the_form_twice_goes_on() {
    let service = Service::start().await;
    let (_, token) = link(&service).await;
    // Of a double click, both are sent before there is an answer, so that neither has a session.
    let (one, other) =
        tokio::join!(register(&service, &token, "alice", PASSWORD), register(&service, &token, "alice", PASSWORD));
    assert_eq!([one.place(), other.place()], ["/my/applications"; 2]);
    let form = |password| {
        [("first", token.as_str()), ("username", "alice"), ("email", "alice@example.com"), ("password", password)]
    };
    let mut alice = Browser::new(&service);
    for _ in 0..2 {
        assert_eq!(alice.post("/register", &form(PASSWORD)).await.place(), "/my/applications");
        assert_eq!(alice.get("/users/profile").await.status, 200, "she is logged in");
    }
    assert_eq!(service.account.list_users(None).await.unwrap().len(), 1);
    let mut bobby = Browser::of_user(&service, "bobby").await;
    assert_eq!(bobby.post("/register", &form("not the password of Alice")).await.status, 403);
}

// Conformance: the first account: an operator's, by a link that works once
#[tokio::test]
async fn without_the_link_nobody_becomes_an_operator() {
    let service = Service::start().await;
    // Before there is a link, and while there is one.
    assert_eq!(register(&service, "00", "mallory", PASSWORD).await.status, 403);
    let (_, token) = link(&service).await;
    for wrong in [&token[1..], &token.to_uppercase(), "0", &"0".repeat(32)] {
        assert_eq!(register(&service, wrong, "mallory", PASSWORD).await.status, 403, "{wrong}");
        let page = Browser::new(&service).get(&format!("/register?first={wrong}")).await;
        assert_eq!(page.status, 403, "{wrong}");
    }
    assert!(service.account.list_users(None).await.unwrap().is_empty());
    Browser::of_user(&service, "mallory").await;
    assert!(!is_operator(&service, "mallory").await);
    assert!(service.reopen().await.account.first_account_link().await.unwrap().is_none(), "there are users");
}

// Conformance: the first account: an operator's, by a link that works once
#[tokio::test]
async fn the_link_ends_with_its_process_and_the_operator_stays() {
    let first = Service::start().await;
    let (_, old) = link(&first).await;
    let service = first.reopen().await;
    let (_, token) = link(&service).await;
    assert_eq!(register(&service, &old, "alice", PASSWORD).await.status, 403);
    assert_eq!(register(&service, &token, "alice", PASSWORD).await.status, 303);
    assert!(is_operator(&service.reopen().await, "alice").await);

    let operators = vec!["0102030405060708090a0b0c".parse().unwrap()];
    let named = service.reopen_with(Settings { operators: operators.clone(), ..Settings::default() }).await;
    assert!(!is_operator(&named, "alice").await, "the settings name others");
    let empty = Service::start_with(Settings { operators, ..Settings::default() }).await;
    assert!(empty.account.first_account_link().await.unwrap().is_none());
}

// Conformance: the first account: an operator's, by a link that works once
#[tokio::test]
async fn of_two_processes_on_one_store_one_appoints_the_operator() {
    let first = Service::start().await;
    let second = first.reopen().await;
    let ((_, one), (path, other)) = (link(&first).await, link(&second).await);
    assert_eq!(register(&first, &one, "alice", PASSWORD).await.status, 303);
    assert!(!second.account.awaits_first_account().await.unwrap());
    assert_eq!(Browser::new(&second).get(&path).await.status, 403, "its link has ended, too");
    let refused = register(&second, &other, "bobby", PASSWORD).await;
    assert!(refused.status == 403 && refused.all("main form").is_empty(), "{}", refused.html.html());
    assert_eq!(second.account.list_users(None).await.unwrap().len(), 1);
    for service in [&first, &second, &first.reopen().await] {
        assert!(is_operator(service, "alice").await);
    }
}

// Conformance: the first account: an operator's, by a link that works once
#[tokio::test]
async fn of_two_processes_whose_links_are_used_at_once_one_appoints_the_operator() {
    let first = Service::start().await;
    let second = first.reopen().await;
    let ((_, one), (_, other)) = (link(&first).await, link(&second).await);
    let (alice, bobby) =
        tokio::join!(register(&first, &one, "alice", PASSWORD), register(&second, &other, "bobby", PASSWORD));
    for (name, page, other) in [("alice", &alice, &bobby), ("bobby", &bobby, &alice)] {
        if page.status == 303 {
            assert_eq!(other.status, 403);
            for service in [&first, &second] {
                assert_eq!(service.account.list_users(None).await.unwrap().len(), 1, "beside {name}");
                assert!(is_operator(service, name).await);
            }
            return;
        }
    }
    panic!("{} and {}", alice.status, bobby.status);
}

// Conformance: the first account: an operator's, by a link that works once
#[tokio::test]
async fn a_crash_while_it_is_created_leaves_the_whole_account_or_another_link() {
    let (mut links, mut accounts) = (0, 0);
    for writes in 0..WRITES_MAX {
        let (killed, store) = Service::start_on_failing_store().await;
        let (_, token) = link(&killed).await;
        store.fail_after(writes);
        let status = register(&killed, &token, "alice", PASSWORD).await.status;
        store.recover();
        let service = killed.reopen().await;
        match service.account.first_account_link().await.unwrap() {
            Some(link) => {
                links += 1;
                assert!(service.account.list_users(None).await.unwrap().is_empty(), "after {writes} writes");
                let (_, token) = link.split_once("first=").unwrap();
                assert_eq!(register(&service, token, "alice", PASSWORD).await.status, 303, "after {writes} writes");
            }
            None => accounts += 1,
        }
        assert_eq!(service.account.list_users(None).await.unwrap().len(), 1, "after {writes} writes");
        for service in [&service, &killed, &killed.reopen().await] {
            assert!(is_operator(service, "alice").await, "after {writes} writes");
        }
        if status == 303 {
            assert!(links > 1 && accounts > 1, "{links} links and {accounts} accounts");
            return;
        }
        assert_eq!(status, 503, "after {writes} writes");
    }
    panic!("it never succeeded");
}

// Conformance: the first account: an operator's, by a link that works once
#[tokio::test]
async fn who_gets_the_name_after_a_crash_is_no_operator_and_the_link_stays() {
    for writes in 0..4 {
        let (service, store) = Service::start_on_failing_store().await;
        let (_, token) = link(&service).await;
        store.fail_after(writes);
        assert_eq!(register(&service, &token, "alice", PASSWORD).await.status, 503, "after {writes} writes");
        store.recover();
        // Nobody has asked for the operator since, so the name is still free.
        service.user("alice").await;
        assert!(!is_operator(&service, "alice").await, "after {writes} writes");
        assert_eq!(register(&service, &token, "bobby", PASSWORD).await.status, 303, "after {writes} writes");
        for service in [&service, &service.reopen().await] {
            assert!(is_operator(service, "bobby").await && !is_operator(service, "alice").await);
        }
    }
}

// Conformance: the first account: an operator's, by a link that works once
#[tokio::test]
async fn an_account_that_is_finished_after_a_crash_is_in_the_audit_log_once() {
    let mut finished = 0;
    for writes in 0..WRITES_MAX {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("audit.log");
        let (killed, store) = Service::start_on_failing_store().await;
        let (_, token) = link(&killed).await;
        store.fail_after(writes);
        let status = register(&killed, &token, "alice", PASSWORD).await.status;
        store.recover();
        let telemetry = TelemetrySettings { audit_file: Some(file.clone()), ..TelemetrySettings::default() };
        let audit = AuditLog::open(&telemetry, killed.clock.clone()).unwrap();
        // After the first events, because `tracing` caches for each event whether any thread wants it.
        killed.get("/api/v2/users/me", "Bearer wrong").await;
        let _here = record_here(&audit);
        for _ in 0..2 {
            killed.reopen_audited(audit.clone()).await;
        }
        let text = fs::read_to_string(&file).unwrap();
        let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let appointed: Vec<_> = lines.iter().filter(|line| line["event"] == "operator appointed").collect();
        if let [line] = appointed[..] {
            finished += 1;
            let users = killed.account.list_users(None).await.unwrap();
            assert_eq!((users.len(), &line["actor"]), (1, &json!(users[0].user.id)), "after {writes} writes");
            assert_eq!(line["object"], "alice");
        }
        assert!(appointed.len() < 2, "after {writes} writes: {text}");
        if status == 303 {
            assert!(finished > 0 && appointed.is_empty(), "{finished}, and {text}");
            return;
        }
    }
    panic!("it never succeeded");
}
