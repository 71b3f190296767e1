//! The client of the time after which devices count as silent.

use airlock_client::{Error, silence::SilenceClient};
use api::discovery::Announcement;
use axum::{Json, Router};
use serde_json::json;
use tokio::net::TcpListener;
use types::{Credential, Secret};

/// A client of a handler that answers every call with this time.
async fn client_of(seconds: u64) -> SilenceClient {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let net_address = listener.local_addr().unwrap().to_string();
    let router = Router::new().fallback(move || async move { Json(json!({ "silent_after_s": seconds })) });
    tokio::spawn(async move { axum::serve(listener, router).await });
    let announcement = Announcement { net_address, ..Announcement::default() };
    let credential = Credential::Token(Secret::new("t0k3n"));
    SilenceClient::connect(&announcement, "my-app".parse().unwrap(), credential).unwrap()
}

#[tokio::test]
async fn a_time_that_cannot_be_is_not_taken_for_never() {
    assert!(client_of(0).await.get().await.unwrap().is_none());
    assert_eq!(client_of(7200).await.get().await.unwrap().unwrap().as_secs(), 7200);
    let error = client_of(59).await.get().await.unwrap_err();
    assert!(matches!(error, Error::Unreadable { .. }), "{error:?}");
}
