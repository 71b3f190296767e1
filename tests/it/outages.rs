//! What handler and discovery need goes away and comes back: meanwhile they say so, afterwards all is as it was.

mod discovery;
mod store;

use std::time::Duration;

use serde_json::Value;
use types::Credential;

use crate::harness::PATIENCE;

/// Somebody who asks services over HTTP.
struct Caller {
    http: reqwest::Client,
    authorization: String,
}

impl Caller {
    fn new(credential: &Credential) -> Self {
        let http = reqwest::Client::builder().timeout(PATIENCE).build().unwrap();
        Self { http, authorization: credential.to_header() }
    }

    /// The status and the gRPC code, or the body where all is well.
    async fn ask(&self, method: &str, url: &str, body: String) -> (u16, Value) {
        self.ask_within(None, method, url, body).await
    }

    /// The same by somebody who waits only so long, in the words of gRPC.
    async fn ask_within(&self, limit: Option<&str>, method: &str, url: &str, body: String) -> (u16, Value) {
        let request = self.http.request(method.parse().unwrap(), url).header("authorization", &self.authorization);
        let request = limit.into_iter().fold(request, |request, limit| request.header("grpc-timeout", limit));
        let answer = request.body(body).send().await.unwrap();
        let (status, body): (_, Value) = (answer.status(), answer.json().await.unwrap());
        (status.as_u16(), if status.is_success() { body } else { body["code"].clone() })
    }
}

/// Tries until something is as it should be.
async fn soon<T: PartialEq + std::fmt::Debug>(expected: T, mut find: impl AsyncFnMut() -> T) {
    let mut tick = tokio::time::interval(Duration::from_millis(20));
    let mut last = None;
    let found = tokio::time::timeout(PATIENCE, async {
        while *last.insert(find().await) != expected {
            tick.tick().await;
        }
    });
    if found.await.is_err() {
        assert_eq!(last, Some(expected));
    }
}
