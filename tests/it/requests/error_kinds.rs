//! The kind of an error survives the way from a service to the program that called it.

use std::fmt;

use axum::Router;
use client::{Trust, discovery::DiscoveryClient};
use server::status::to_status;
use tokio::net::TcpListener;
use tonic::body::Body;
use types::{Kind, Kinded, ServiceName};

const KINDS: [Kind; 13] = [
    Kind::Invalid,
    Kind::Unauthenticated,
    Kind::Denied,
    Kind::NotFound,
    Kind::AlreadyExists,
    Kind::Conflict,
    Kind::Exhausted,
    Kind::Full,
    Kind::TooLarge,
    Kind::Unavailable,
    Kind::Timeout,
    Kind::Unsupported,
    Kind::Internal,
];

#[derive(Debug)]
struct Failure(Kind);

impl fmt::Display for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "failed")
    }
}

impl std::error::Error for Failure {}

impl Kinded for Failure {
    fn kind(&self) -> Kind {
        self.0
    }
}

/// Answers every call over gRPC with an error of this kind; returns the address.
async fn failing_service(kind: Kind) -> String {
    let router = Router::new().fallback(async move || to_status(&Failure(kind)).into_http::<Body>());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move { axum::serve(listener, router).await });
    address
}

#[tokio::test]
async fn clients_get_the_kind_that_the_service_sent_over_grpc() {
    for kind in KINDS {
        let service = DiscoveryClient::connect(&failing_service(kind).await, &Trust::Plaintext).unwrap();
        let error = service.get_all(ServiceName::Handler).await.unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
    }
}
