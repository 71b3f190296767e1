//! The page of operators: who sees it, what it shows, and that nothing in it is markup. `bridges.rs` has networks.

use std::{fs, sync::Arc};

use airlock::serve::Stack;
use client::account::AccountClient;
use console::{
    ApplicationFunctions, ApplicationLoad, AuditTail, Check, Console, Count, FunctionCounts, FunctionFailure,
    FunctionRanking, FunctionSums, HistoryState, NetworkTrial, NetworksStatus, NewNetwork, OwnerUse, Queue,
    ServerStatus, ServiceLoad, Settings, StatusSource, TrialCheck,
};
use futures::future::BoxFuture;
use server::serve::Listeners;
use types::{AppId, Credential, Timestamp, UserId};

use super::{
    DECODER,
    alone::{self, start_with},
    visitor::Visitor,
};
use crate::harness::{Network, Owner, environment, printed};

const PATH: &str = "/console/operator";
/// The file of security events, in the data directory.
pub(super) const AUDIT: &str = "audit.log";
/// Markup, a terminal's control character, and one that changes the direction of text.
pub(super) const HOSTILE: &str = "<b>\u{1b}[2J\u{202e}";

/// A process whose parts are all named in the same way.
pub(super) struct Fake {
    name: &'static str,
    audit: AuditTail,
    ranking: FunctionRanking,
    networks: NetworksStatus,
}

impl StatusSource for Fake {
    fn status<'a>(&'a self, owner: &'a str) -> BoxFuture<'a, ServerStatus> {
        Box::pin(async move { self.now(owner) })
    }

    fn usage<'a>(&'a self, owner: &'a str) -> BoxFuture<'a, Result<Vec<OwnerUse>, String>> {
        Box::pin(async move { self.now(owner).owners })
    }

    fn audit<'a>(&'a self, _search: &'a str, _before: &'a str) -> BoxFuture<'a, AuditTail> {
        Box::pin(async { self.audit.clone() })
    }

    fn networks(&self) -> BoxFuture<'_, NetworksStatus> {
        Box::pin(async { self.networks.clone() })
    }

    fn try_network<'a>(
        &'a self,
        user_id: &'a UserId,
        _app_id: &'a AppId,
        _network: NewNetwork,
    ) -> BoxFuture<'a, NetworkTrial> {
        let check = TrialCheck::failed("Broker", format!("{} of user {user_id}{HOSTILE}", self.name));
        Box::pin(async move { NetworkTrial { checks: vec![check], uplink: None } })
    }

    fn checks(&self) -> BoxFuture<'_, Vec<Check>> {
        Box::pin(async { self.now("").checks })
    }
}

impl Fake {
    fn named(name: &'static str) -> Self {
        let (audit, networks) = (AuditTail::NoFile, NetworksStatus::default());
        Self { name, audit, ranking: ranking([name, "alice-app", "bobby-app"]), networks }
    }

    pub(super) fn with_networks(networks: NetworksStatus) -> Self {
        Self { networks, ..Self::named("everything") }
    }

    fn now(&self, owner: &str) -> ServerStatus {
        let name = || self.name.to_owned();
        let check = || Check { name: name(), failure: Some(name()) };
        let count = || Count { what: name(), count: 7 };
        let usage = |owner: String| OwnerUse {
            owner,
            budget: "stored_bytes".to_owned(),
            used: 900,
            share: 1000,
            percent: 90,
            used_by_all: 1100,
            total: 2000,
        };
        ServerStatus {
            checks: vec![check()],
            services: vec![ServiceLoad { name: name(), running: 1, waiting: 2, refused: 3, failed: 4 }],
            owners: Ok(vec![usage(if owner.is_empty() { name() } else { owner.to_owned() })]),
            queues: vec![Queue { name: name(), is_connected: Some(false), ..Queue::default() }],
            applications: vec![ApplicationLoad { name: name(), clients: 1, waiting: 2, delivered: 3, lost: 4 }],
            history: HistoryState { is_kept: Some(false), lost: vec![count()], damaged_files: 2 },
            functions: FunctionCounts { outcomes: vec![count()], mean_fuel: Some(3775), mean_time_us: None },
            ranking: self.ranking.clone(),
            audit: self.audit.clone(),
        }
    }
}

/// These applications fail, and the last of them are slow.
fn ranking(app_ids: [&str; 3]) -> FunctionRanking {
    let since = Timestamp::from_millis(1_790_000_000_000);
    let recent = FunctionSums { uplinks: 40, failed: 9, invalid: 1, mean_time_us: 1234, ..FunctionSums::default() };
    let functions = |app_id: &str| ApplicationFunctions {
        app_id: app_id.to_owned(),
        recent,
        total: FunctionSums { uplinks: 500, ..recent },
        last_failure: Some(FunctionFailure { time: since, kind: "thrown" }),
    };
    let slowest = app_ids[1..].iter().map(|app_id| functions(app_id)).collect();
    FunctionRanking { since, uplinks_min: 10, uplinks_left_out: 0, failing: app_ids.map(functions).into(), slowest }
}

/// The section about payload functions.
fn functions_of(html: &str) -> &str {
    let (_, functions) = html.split_once("functions-heading").unwrap();
    functions.split_once("networks-heading").unwrap().0
}

pub(super) async fn id_of(network: &Network, owner: &Owner) -> UserId {
    let account = AccountClient::new(&network.stack.settings().client.auth_server).unwrap();
    let token = Credential::Token(owner.session(&account).await);
    account.me(&token).await.unwrap().id
}

/// A network whose operator is Alice, with an audit log. Her id is known only after she has registered.
pub(crate) async fn operated(audit: &str) -> Network {
    operated_with(audit, |_| ()).await
}

/// The same with other settings.
pub(crate) async fn operated_with(audit: &str, change: impl FnOnce(&mut airlock::settings::Settings)) -> Network {
    let network = Network::start().await;
    let alice = network.owner("alice").await;
    let operators = vec![id_of(&network, &alice).await];
    network.stack.stop().await;
    let dir = network.dir;
    let mut settings = Network::settings(dir.path());
    settings.console.operators = operators;
    settings.telemetry.audit_file = Some(dir.path().join(AUDIT));
    fs::write(dir.path().join(AUDIT), audit).unwrap();
    change(&mut settings);
    Network { stack: Stack::start(settings, None, environment()).await.unwrap(), dir }
}

/// A console whose operator is Alice, with the browsers of Alice and Bobby, and one without a login.
pub(super) async fn start(status: Option<Fake>) -> (Network, [Visitor; 3]) {
    let listeners = Listeners::new().plain("127.0.0.1:0").await.unwrap();
    let network = alone::network(&listeners).await;
    let (alice, _bobby) = (network.owner("alice").await, network.owner("bobby").await);
    let settings = Settings { operators: vec![id_of(&network, &alice).await], ..Settings::default() };
    let discovery = network.discovery();
    let prepare = |console: &Console| {
        console.connect(discovery);
        if let Some(status) = status {
            console.watch(Arc::new(status));
        }
    };
    let url = start_with(&network, listeners, settings, prepare).await;
    let visitors = [Visitor::new(&url), Visitor::new(&url), Visitor::new(&url)];
    let account = &network.stack.settings().client.auth_server;
    for (visitor, name) in visitors.iter().zip(["alice", "bobby"]) {
        visitor.log_in(account, name).await;
        let consent = visitor.get("/console").await;
        visitor.consent(account, &consent).await;
    }
    (network, visitors)
}

// Conformance: console: the page of operators
#[tokio::test]
async fn operators_see_the_page_and_others_do_not_learn_of_it() {
    let (_network, [alice, bobby, nobody]) = start(Some(Fake::named("everything"))).await;
    let page = alice.get(PATH).await;
    assert!(page.status == 200 && page.html.contains("Audit log"), "{}: {}", page.status, page.html);
    assert!(page.html.contains(r#"<dt>Damaged files</dt><dd><span class="badge bad">2</span>"#), "{}", page.html);
    assert!(alice.get("/console").await.html.contains(PATH));

    assert!(!bobby.get("/console").await.html.contains(PATH));
    let (page, unknown) = (bobby.get(PATH).await, bobby.get("/console/nothing").await);
    assert_eq!((page.status, page.html), (404, unknown.html));
    assert_eq!(bobby.post(PATH, &[]).await.status, 404);

    let page = nobody.get(PATH).await;
    assert!(page.path.starts_with("/users/login"), "{}", page.path);
}

// Conformance: console: the page of operators
#[tokio::test]
async fn the_page_changes_nothing() {
    let (_network, [alice, ..]) = start(Some(Fake::named("everything"))).await;
    assert_eq!(alice.post(PATH, &[("owner", "user alice")]).await.status, 404);
    assert!(!alice.get(PATH).await.html.contains("<form method=\"post\" action=\"/console/operator"));
}

// Conformance: console: the page of operators
#[tokio::test]
async fn an_operator_sees_only_the_checks_while_the_account_service_cannot_confirm_it() {
    let (network, [alice, bobby, _]) = start(Some(Fake::named("everything"))).await;
    network.stack.stop().await;
    let page = alice.get(PATH).await;
    assert!(page.status == 200 && page.html.contains("health-heading"), "{}: {}", page.status, page.html);
    assert!(page.html.contains("Cannot reach the account service"), "{}", page.html);
    for section in ["requests", "owners", "queues", "functions", "networks", "audit"] {
        assert!(!page.html.contains(&format!("{section}-heading")), "{section}");
    }
    assert_eq!(bobby.get(PATH).await.status, 404);
}

// Conformance: console: the page of operators
#[tokio::test]
async fn names_and_events_are_never_markup() {
    let line = r#"{"timestamp":"2026-11-27T10:00:00Z","event":"<b>","actor":"<b>\u001b","object":"\u202e<b>"}"#;
    let lines = vec![line.to_owned(), HOSTILE.to_owned()];
    let audit = AuditTail::Lines { path: "/var/<b>/audit.log".to_owned(), lines, next: Some(HOSTILE.to_owned()) };
    let (_network, [alice, ..]) = start(Some(Fake { audit, ..Fake::named(HOSTILE) })).await;
    let page = alice.get(&format!("{PATH}?owner=%3Cb%3E")).await;
    assert_eq!(page.status, 200, "{}", page.html);
    assert!(!page.html.contains("<b>"), "{}", page.html);
    assert!(page.html.matches("&#60;b&#62;").count() > 12, "{}", page.html);
    let (_, audit) = page.html.split_once("audit-heading").unwrap();
    assert!(!audit.contains(['\u{1b}', '\u{202e}']) && audit.contains(r"\u202e&#60;b&#62;"), "{audit}");
    let all = alice.get(&format!("{PATH}/audit?search=%3Cb%3E%E2%80%AE")).await;
    assert!(all.status == 200 && !all.html.contains("<b>") && all.html.contains(r"\u202e&#60;b&#62;"), "{}", all.html);
    let owners = alice.get(PATH).await.html;
    let (owners, _) = owners.split_once("queues-heading").unwrap();
    let (_, owners) = owners.split_once("owners-heading").unwrap();
    assert!(!owners.contains(['\u{1b}', '\u{202e}']) && owners.contains(r"\u202e"), "{owners}");
}

// Conformance: console: the page of operators
#[tokio::test]
async fn functions_that_fail_or_are_slow_are_listed_and_only_own_applications_are_links() {
    let (_network, [alice, ..]) = start(Some(Fake::named("everything"))).await;
    let page = alice.get(PATH).await;
    let functions = functions_of(&page.html);
    assert!(functions.contains("at least 10 uplinks since <time datetime=\"2026-09-21T14:13:20Z\">"), "{functions}");
    let (failing, slowest) = functions.split_once("Slowest, by mean time").unwrap();
    for part in [">25.0%<", ">10 of 500<", "thrown, <time", ">bobby-app<", "messages?failed=1\">alice-app</a>"] {
        assert!(failing.contains(part), "{part}: {failing}");
    }
    assert!(slowest.contains(">1234 µs<") && slowest.contains("messages\">alice-app</a>"), "{slowest}");
    assert!(!slowest.contains("everything") && slowest.contains(">bobby-app<"), "{slowest}");
    assert!(!page.html.contains("applications/bobby-app") && !page.html.contains("applications/everything"));
    assert!(!functions.contains("not in these lists"), "{functions}");
}

// Conformance: console: the page of operators
#[tokio::test]
async fn lists_that_lack_applications_do_not_speak_of_all() {
    let ranking = FunctionRanking { uplinks_left_out: 4321, ..FunctionRanking::default() };
    let (_network, [alice, ..]) = start(Some(Fake { ranking, ..Fake::named("everything") })).await;
    let page = alice.get(PATH).await;
    let functions = functions_of(&page.html);
    let left_out = "4321 uplinks of other applications are not in these lists";
    for part in [left_out, "None of those that are counted has failed", "None of those that are counted has run"] {
        assert!(functions.contains(part), "{part}: {functions}");
    }
    assert!(!functions.contains("None of them"), "{functions}");
}

// Conformance: console: the page of operators
#[tokio::test]
async fn an_audit_log_that_cannot_be_read_is_named_and_the_rest_stays() {
    let audit = AuditTail::Unreadable("cannot read `/var/lib/audit.log`: permission denied".to_owned());
    let (_network, [alice, ..]) = start(Some(Fake { audit, ..Fake::named("everything") })).await;
    let page = alice.get(PATH).await;
    assert!(page.status == 200 && page.html.contains("cannot read `/var/lib/audit.log`"), "{}", page.html);
    for part in ["everything", "not connected", "90%", "3,775", "The disk refused the last records"] {
        assert!(page.html.contains(part), "{part}: {}", page.html);
    }
    let page = alice.get(&format!("{PATH}?owner=user+carol")).await;
    assert!(page.html.contains("<td>user carol</td>"), "{}", page.html);
}

// Conformance: console: the page of operators
#[tokio::test]
async fn a_console_alone_says_where_to_look() {
    let (_network, [alice, ..]) = start(None).await;
    let page = alice.get(PATH).await;
    assert!(page.status == 200 && page.html.contains("airlock account usage"), "{}: {}", page.status, page.html);
}

// Conformance: console: the page of operators
#[tokio::test(flavor = "multi_thread")]
async fn a_server_shows_itself_to_its_operators() {
    let line = r#"{"timestamp":"2026-11-27T10:00:00Z","event":"key added","actor":"user carol","object":"carol-app"}"#;
    let network = operated(&format!("older\n{line}\n")).await;
    let bobby = network.owner("bobby").await;
    bobby.add_device("dev-1").await;
    bobby.set_functions([DECODER, "", ""]).await.unwrap();
    for _ in 0..10 {
        bobby.simulate("dev-1", &[1], 1).await.unwrap();
    }
    let site = &network.stack.settings().client.auth_server;
    let visitor = Visitor::logged_in(site, "alice").await;
    visitor.get("/console").await;
    let link = format!("href=\"{PATH}\"");
    assert!(visitor.get("/users/profile").await.html.contains(&link), "pages of the account lead there, too");
    assert!(!Visitor::logged_in(site, "bobby").await.get("/users/profile").await.html.contains(&link));
    // What is stored is counted after the start.
    let page = visitor.until(PATH, "<td>user alice</td>\n<td>stored bytes</td>").await;
    let kept = "<span class=\"badge good\">kept</span>";
    for part in ["component_token", "<td>handler</td>", "MQTT clients", "href=\"/console/bridges\"", kept] {
        assert!(page.html.contains(part), "{part}: {}", page.html);
    }
    let functions = functions_of(&page.html);
    assert_eq!(functions.matches(">bobby-app<").count(), 2, "failing and slow: {functions}");
    assert!(functions.contains(">10 of 10<") && functions.contains("thrown, <time"), "{functions}");
    assert!(!page.html.contains("too short"), "only the kind of a failure is told: {}", page.html);
    let (newer, older) = (page.html.find("key added").unwrap(), page.html.find("<td>older</td>").unwrap());
    assert!(newer < older, "{}", page.html);
    assert!(visitor.get(&format!("{PATH}?owner=alice")).await.html.contains("<td>user alice</td>"));
    assert!(visitor.get(&format!("{PATH}?owner=nobody")).await.html.contains("is no owner"));

    fs::remove_file(network.dir.path().join(AUDIT)).unwrap();
    let page = visitor.get(PATH).await;
    assert!(page.status == 200 && page.html.contains("audit.log`: check that"), "{}", page.html);
    assert!(page.html.contains("component_token"), "{}", page.html);

    printed(&network.type_command(&["account", "users", "disable", "alice"], ""));
    assert!(visitor.get(PATH).await.path.starts_with("/users/login"));
    network.stack.stop().await;
}
