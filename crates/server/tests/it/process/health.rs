//! Metrics, health and readiness.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use serde_json::{Value, json};
use server::telemetry::{Health, Metrics, router};
use tokio_util::sync::CancellationToken;

use crate::harness::{TestServer, http_client};

async fn get(server: &TestServer, path: &str) -> (u16, String) {
    let response = http_client(None).get(server.url(path)).send().await.unwrap();
    (response.status().as_u16(), response.text().await.unwrap())
}

async fn ready(server: &TestServer) -> (u16, Value) {
    let (status, text) = get(server, "/readyz").await;
    (status, serde_json::from_str(&text).unwrap())
}

// One test, because a process has only one metrics recorder.
#[tokio::test]
async fn reports_metrics_health_and_readiness() {
    let stop = CancellationToken::new();
    let (metrics, health) = (Metrics::install(stop.clone()).unwrap(), Health::default());
    assert!(Metrics::install(stop.clone()).is_err());
    let well = Arc::new(AtomicBool::new(true));
    let store = Arc::clone(&well);
    health.add("store", move || {
        let well = store.load(Ordering::SeqCst);
        async move { if well { Ok(()) } else { Err("the disk is full".to_owned()) } }
    });
    let server = TestServer::plain(router(metrics, health.clone())).await;

    assert_eq!(ready(&server).await, (200, json!({ "status": "ready", "checks": { "store": "ok" } })));
    well.store(false, Ordering::SeqCst);
    let failing = json!({ "status": "failing", "checks": { "store": "the disk is full" } });
    assert_eq!(ready(&server).await, (503, failing));
    well.store(true, Ordering::SeqCst);
    health.drain();
    assert_eq!(ready(&server).await, (503, json!({ "status": "draining", "checks": { "store": "ok" } })));
    for path in ["/livez", "/healthz"] {
        assert_eq!(get(&server, path).await, (200, "ok\n".to_owned()));
    }
    health.fail("the store failed".to_owned());
    health.fail("and so does everything else".to_owned());
    for path in ["/livez", "/healthz"] {
        assert_eq!(get(&server, path).await, (503, "the store failed\n".to_owned()));
    }
    let (status, text) = get(&server, "/metrics").await;
    assert_eq!(status, 200);
    assert!(text.contains(r#"airlock_requests_total{service="test",status="503"}"#), "{text}");
    assert!(text.contains(r#"airlock_request_seconds_bucket{service="test",route="/livez",le="#), "{text}");
    stop.cancel();
}

#[tokio::test(start_paused = true)]
async fn a_check_without_a_response_fails() {
    let health = Health::default();
    health.add("broker", std::future::pending);
    let report = serde_json::to_value(health.report().await).unwrap();
    assert_eq!(report, json!({ "status": "failing", "checks": { "broker": "no response within 2 s" } }));
}
