//! Malformed HTTP requests.

use proptest::{collection::vec, option, prelude::*, sample::select};
use reqwest::header::HeaderValue;
use serde_json::Value;

use super::{Services, generators, try_many};

const METHODS: &[&str] = &["GET", "GET", "GET", "PUT", "PUT", "POST", "POST", "DELETE", "PATCH", "OPTIONS"];

/// Paths with placeholders, and values that exist.
const PATHS: &[&str] = &[
    "/applications",
    "/applications/{malformed-app}",
    "/applications/{malformed-app}/devices",
    "/applications/{malformed-app}/devices/{dev-1}",
    "/applications/{malformed-app}/devices/{dev-1}/simulate",
    "/applications/{malformed-app}/dry-uplink",
    "/applications/{malformed-app}/dry-downlink",
    "/announcements/{handler}",
    "/announcements/{handler}/{handler}",
    "/announcements/{handler}/{handler}/metadata",
    "/announcements/handler/by-app-id/{malformed-app}",
    "/announcements/handler/by-app-eui/{0102030405060708}",
    "/announcements/router/by-gateway-id/{gateway}",
    "/{nowhere}",
];

const QUERY: &[&str] = &["limit", "offset", "app_id", "app_eui", "dev_addr_prefix", "gateway_id", "x"];

#[derive(Clone, Debug)]
struct Request {
    to_handler: bool,
    method: &'static str,
    path: String,
    /// The owner's token unless another one is given.
    authorization: Option<HeaderValue>,
    body: Vec<u8>,
}

fn request() -> impl Strategy<Value = Request> {
    let words = vec(option::weighted(0.2, generators::bytes()), 2);
    let query = option::weighted(0.3, vec((select(QUERY), generators::bytes()), 0..3));
    let path = (select(PATHS), words, query);
    let no_header = |bytes: Vec<u8>| HeaderValue::from_bytes(&[b"Bearer ", &bytes[..]].concat()).ok();
    let authorization = option::weighted(0.1, generators::bytes().prop_filter_map("no header", no_header));
    (prop::bool::weighted(0.05), select(METHODS), path, authorization, generators::body()).prop_map(
        |(is_astray, method, (path, words, query), authorization, body)| Request {
            to_handler: path.starts_with("/applications") != is_astray,
            method,
            path: fill(path, words, query),
            authorization,
            body,
        },
    )
}

/// Replaces some placeholders of the path with malformed values.
fn fill(path: &str, words: Vec<Option<Vec<u8>>>, query: Option<Vec<(&str, Vec<u8>)>>) -> String {
    let mut words = words.into_iter();
    let mut filled = String::new();
    for (number, part) in path.split(['{', '}']).enumerate() {
        // Every second part is a placeholder.
        let malformed = (number % 2 == 1).then(|| words.next().flatten()).flatten();
        filled += &malformed.map_or_else(|| part.to_owned(), |bytes| encode(&bytes));
    }
    let query = query.into_iter().flatten().map(|(name, value)| format!("{name}={}", encode(&value)));
    filled + "?" + &query.collect::<Vec<_>>().join("&")
}

fn encode(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("%{byte:02X}")).collect()
}

impl Services {
    async fn ask(&self, request: &Request) -> reqwest::Response {
        let base = if request.to_handler { self.network.handler_http() } else { self.discovery_http.clone() };
        let own = || HeaderValue::from_str(&format!("Bearer {}", self.token())).unwrap();
        let authorization = request.authorization.clone().unwrap_or_else(own);
        let method = request.method.parse().unwrap();
        let response =
            reqwest::Client::new().request(method, base + &request.path).header("authorization", authorization);
        response.timeout(crate::harness::MESSAGE_TIMEOUT).body(request.body.clone()).send().await.unwrap()
    }
}

// Conformance: Every HTTP request and gRPC message either succeeds
#[tokio::test(flavor = "multi_thread")]
async fn malformed_http_requests_succeed_or_fail_as_client_errors() {
    let services = Services::start().await;
    try_many(request(), &services, async |request, before| {
        let response = services.ask(&request).await;
        let (status, text) = (response.status(), response.text().await.unwrap());
        let what = format!("{request:?}, answered by {status} {text},");
        assert!(status.is_success() || status.is_client_error(), "{what}");
        if status.is_client_error() {
            let error: Value = serde_json::from_str(&text).unwrap_or_else(|_| panic!("{what} is no JSON"));
            let is_whole = error["code"].is_u64() && error["error"].as_str().is_some_and(|error| !error.is_empty());
            assert!(is_whole, "{what}");
        }
        let was_done = status.is_success();
        (services.data_after(before, was_done && request.method != "GET", &what).await, was_done)
    })
    .await;
    services.network.stack.stop().await;
}

// Conformance: Bodies that are too large, too deeply nested, or not text
#[tokio::test(flavor = "multi_thread")]
async fn discovery_refuses_bodies_that_are_too_large_or_invalid() {
    let services = Services::start().await;
    let text = |bytes: usize| format!(r#"{{"description": "{}"}}"#, "x".repeat(bytes)).into_bytes();
    for (body, status, what) in [
        (text(3 << 20), 413, "three megabytes"),
        (text(2000), 400, "more than a line"),
        (format!("{{\"unknown\": {}", "[".repeat(100_000)).into_bytes(), 400, "lists in each other"),
        (b"{\"description\": \"\xff\xfe\"}".to_vec(), 400, "no UTF-8"),
    ] {
        let path = "/announcements/handler/malformed".to_owned();
        let request = Request { to_handler: false, method: "PUT", path, authorization: None, body };
        let response = services.ask(&request).await;
        assert_eq!(response.status(), status, "{what}");
        assert!(response.json::<Value>().await.unwrap()["error"].is_string(), "{what}");
    }
    services.network.stack.stop().await;
}
