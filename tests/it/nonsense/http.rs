//! Requests over HTTP.

use proptest::{collection::vec, option, prelude::*, sample::select};
use reqwest::header::HeaderValue;
use serde_json::Value;

use super::{Stage, try_many, words};

const METHODS: &[&str] = &["GET", "PUT", "POST", "DELETE", "PATCH", "OPTIONS"];

/// Paths with places for words.
const PATHS: &[&str] = &[
    "/applications",
    "/applications/*",
    "/applications/*/devices",
    "/applications/*/devices/*",
    "/applications/*/devices/*/simulate",
    "/applications/*/dry-uplink",
    "/applications/*/dry-downlink",
    "/announcements/*",
    "/announcements/*/*",
    "/announcements/*/*/metadata",
    "/announcements/handler/by-app-id/*",
    "/announcements/handler/by-app-eui/*",
    "/announcements/router/by-gateway-id/*",
    "/*/*/*",
];

const QUERY: &[&str] = &["limit", "offset", "app_id", "app_eui", "dev_addr_prefix", "gateway_id", "x"];

#[derive(Clone, Debug)]
struct Request {
    to_handler: bool,
    method: &'static str,
    path: String,
    /// The owner's own token unless there is another.
    authorization: Option<HeaderValue>,
    body: Vec<u8>,
}

fn request() -> impl Strategy<Value = Request> {
    let query = option::of(vec((select(QUERY), words::bytes()), 0..3));
    let path = (select(PATHS), vec(place(), 3), query).prop_map(|(path, words, query)| fill(path, &words, query));
    let authorization = option::weighted(
        0.2,
        words::bytes()
            .prop_filter_map("no header", |bytes| HeaderValue::from_bytes(&[b"Bearer ", &bytes[..]].concat()).ok()),
    );
    (prop::bool::weighted(0.6), select(METHODS), path, authorization, words::body()).prop_map(
        |(to_handler, method, path, authorization, body)| Request { to_handler, method, path, authorization, body },
    )
}

/// What stands in a place of a path: often something that is there.
fn place() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        4 => Just(b"nonsense-app".to_vec()),
        2 => Just(b"dev-1".to_vec()),
        1 => Just(b"handler".to_vec()),
        3 => words::bytes(),
    ]
}

fn fill(path: &str, words: &[Vec<u8>], query: Option<Vec<(&str, Vec<u8>)>>) -> String {
    let mut words = words.iter();
    let parts = path.split('*').map(str::to_owned);
    let path = parts.reduce(|path, part| path + &encode(words.next().unwrap()) + &part).unwrap();
    let query = query.into_iter().flatten().map(|(name, value)| format!("{name}={}", encode(&value)));
    path + "?" + &query.collect::<Vec<_>>().join("&")
}

fn encode(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("%{byte:02X}")).collect()
}

impl Stage {
    async fn ask(&self, request: &Request) -> reqwest::Response {
        let base = if request.to_handler { self.network.handler_http() } else { self.discovery_http.clone() };
        let own = || HeaderValue::from_str(&format!("Bearer {}", self.token())).unwrap();
        let authorization = request.authorization.clone().unwrap_or_else(own);
        let method = request.method.parse().unwrap();
        let answer =
            reqwest::Client::new().request(method, base + &request.path).header("authorization", authorization);
        answer.timeout(crate::harness::PATIENCE).body(request.body.clone()).send().await.unwrap()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_is_asked_over_http_is_done_or_refused_with_a_code() {
    let stage = Stage::set().await;
    try_many(request(), &stage, async |request, before| {
        let answer = stage.ask(&request).await;
        let (status, text) = (answer.status(), answer.text().await.unwrap());
        let what = format!("{request:?}, answered by {status} {text},");
        assert!(status.is_success() || status.is_client_error(), "{what}");
        if status.is_client_error() {
            let error: Value = serde_json::from_str(&text).unwrap_or_else(|_| panic!("{what} is no JSON"));
            let is_whole = error["code"].is_u64() && error["error"].as_str().is_some_and(|error| !error.is_empty());
            assert!(is_whole, "{what}");
        }
        let was_done = status.is_success();
        (stage.kept_after(before, was_done && request.method != "GET", &what).await, was_done)
    })
    .await;
    stage.network.stack.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn discovery_reads_no_more_than_it_must() {
    let stage = Stage::set().await;
    let text = |bytes: usize| format!(r#"{{"description": "{}"}}"#, "x".repeat(bytes)).into_bytes();
    for (body, status, what) in [
        (text(3 << 20), 413, "three megabytes"),
        (text(2000), 400, "more than a line"),
        (format!("{{\"unknown\": {}", "[".repeat(100_000)).into_bytes(), 400, "lists in each other"),
        (b"{\"description\": \"\xff\xfe\"}".to_vec(), 400, "no UTF-8"),
    ] {
        let path = "/announcements/handler/nonsense".to_owned();
        let request = Request { to_handler: false, method: "PUT", path, authorization: None, body };
        let answer = stage.ask(&request).await;
        assert_eq!(answer.status(), status, "{what}");
        assert!(answer.json::<Value>().await.unwrap()["error"].is_string(), "{what}");
    }
    stage.network.stack.stop().await;
}
