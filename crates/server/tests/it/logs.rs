//! A failed request is logged once, with its id and without secrets.

use std::{
    io::{self, Write},
    sync::{Arc, Mutex},
};

use axum::{Router, routing::get};
use server::error_response::ErrorResponse;
use tracing_subscriber::{filter::LevelFilter, fmt::MakeWriter};
use types::{Kind, Kinded};

use crate::harness::{TestServer, http_client};

/// Collects log lines.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Lines {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}

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
    let lines = Lines::default();
    let subscriber = tracing_subscriber::fmt().with_max_level(LevelFilter::TRACE).with_ansi(false);
    let _listening = tracing::subscriber::set_default(subscriber.with_writer(lines.clone()).finish());
    let fail = async || ErrorResponse::account(&Failure(io::Error::other("the disk is gone")));
    let server = TestServer::plain(Router::new().route("/things/{id}", get(fail))).await;
    // Other tests run beside this one. Where there is one listener, `tracing` asks the one of the thread that comes to
    // a place first whether anybody cares, and keeps the response for all; where there are two, it asks both.
    let _second = tracing::Dispatch::new(tracing::subscriber::NoSubscriber::new());
    tracing::callsite::rebuild_interest_cache();
    let request = http_client(None).get(server.url("/things/7?access_token=hush"));
    let response = request.header("authorization", "Bearer hush").header("key", "i.hush").send().await.unwrap();
    let id = response.headers()["x-request-id"].to_str().unwrap().to_owned();

    let text = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
    let ours: Vec<_> = text.lines().filter(|line| line.contains(&id)).collect();
    let failures: Vec<_> = ours.iter().filter(|line| line.contains("the disk is gone")).collect();
    assert_eq!(failures.len(), 1, "{text}");
    assert!(failures[0].contains("cannot read the record: the disk is gone"), "{text}");
    assert!(ours.iter().any(|line| line.contains("status=500") && line.contains("/things/{id}")), "{text}");
    assert!(!text.contains("hush"), "{text}");
}
