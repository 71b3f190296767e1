//! A failed request is logged once, with its id and without secrets.

use std::io;

use axum::{Router, routing::get};
use server::error_response::ErrorResponse;
use testing::Log;
use tracing::Level;
use types::{Kind, Kinded};

use crate::harness::{TestServer, http_client};

#[derive(Debug, thiserror::Error)]
#[error("cannot read the record")]
struct Failure(#[source] io::Error);

impl Kinded for Failure {
    fn kind(&self) -> Kind {
        Kind::Internal
    }
}

// The runtime has one thread, so that what the service logs while it answers goes where this test listens.
#[tokio::test(flavor = "current_thread")]
async fn logs_a_failure_once_with_its_request_and_without_the_credential() {
    let (log, _logging) = Log::start(Level::TRACE);
    let fail = async || ErrorResponse::account(&Failure(io::Error::other("the disk is gone")));
    let server = TestServer::plain(Router::new().route("/things/{id}", get(fail))).await;
    let request = http_client(None).get(server.url("/things/7?access_token=hush"));
    let response = request.header("authorization", "Bearer hush").header("key", "i.hush").send().await.unwrap();
    let id = response.headers()["x-request-id"].to_str().unwrap().to_owned();

    let text = log.text();
    let ours: Vec<_> = text.lines().filter(|line| line.contains(&id)).collect();
    let failures: Vec<_> = ours.iter().filter(|line| line.contains("the disk is gone")).collect();
    assert_eq!(failures.len(), 1, "{text}");
    assert!(failures[0].contains("cannot read the record: the disk is gone"), "{text}");
    assert!(ours.iter().any(|line| line.contains("status=500") && line.contains("/things/{id}")), "{text}");
    assert!(!text.contains("hush"), "{text}");
}
