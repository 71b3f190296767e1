//! Outages of Redis, discovery, the account service and the whole server, of the disk and of the clock: requests fail
//! cleanly, everything recovers, and what was acknowledged before is there afterwards.
//!
//! `CHAOS_ROUNDS` says how often the tests that kill or freeze something do so.

mod account;
mod clock;
mod component_token;
mod discovery;
mod disk;
mod joins;
mod server;
mod signing_key;
mod store;

use std::time::Duration;

use serde_json::Value;
use types::Credential;

use crate::harness::MESSAGE_TIMEOUT;

struct Caller {
    http: reqwest::Client,
    authorization: String,
}

impl Caller {
    fn new(credential: &Credential) -> Self {
        let http = reqwest::Client::builder().timeout(MESSAGE_TIMEOUT).build().unwrap();
        Self { http, authorization: credential.to_header() }
    }

    /// The status and gRPC code, or the body of a successful response.
    async fn ask(&self, method: &str, url: &str, body: String) -> (u16, Value) {
        self.ask_within(None, method, url, body).await
    }

    /// Sends a request with a gRPC deadline.
    async fn ask_within(&self, limit: Option<&str>, method: &str, url: &str, body: String) -> (u16, Value) {
        let request = self.http.request(method.parse().unwrap(), url).header("authorization", &self.authorization);
        let request = limit.into_iter().fold(request, |request, limit| request.header("grpc-timeout", limit));
        let response = request.body(body).send().await.unwrap();
        let (status, body): (_, Value) = (response.status(), response.json().await.unwrap());
        (status.as_u16(), if status.is_success() { body } else { body["code"].clone() })
    }
}

/// Returns the number of rounds of a test: few, unless `CHAOS_ROUNDS` asks for more.
fn rounds() -> usize {
    std::env::var_os("CHAOS_ROUNDS")
        .map_or(2, |rounds| rounds.to_str().unwrap_or_default().parse().expect("CHAOS_ROUNDS is a number"))
}

/// Retries until the result is as expected.
pub(crate) async fn soon<T: PartialEq + std::fmt::Debug>(expected: T, mut find: impl AsyncFnMut() -> T) {
    let mut tick = tokio::time::interval(Duration::from_millis(20));
    let mut last = None;
    let found = tokio::time::timeout(MESSAGE_TIMEOUT, async {
        while *last.insert(find().await) != expected {
            tick.tick().await;
        }
    });
    if found.await.is_err() {
        assert_eq!(last, Some(expected));
    }
}
