//! A service under test, and the client that calls it.

use std::{net::SocketAddr, sync::Arc};

use axum::Router;
use server::{
    error_response::ErrorFormat,
    ledger::Ledger,
    serve::{HttpService, Listeners, ServeSettings, Server, ServerHandle},
    tls::{HTTP_PROTOCOLS, Tls},
};
use testing::CountingRandom;
use tokio_util::sync::CancellationToken;
use types::{Claims, Secret};

/// A server that stops when it is dropped or told to.
pub(crate) struct TestServer {
    pub(crate) serving: ServerHandle,
    pub(crate) stop: CancellationToken,
}

impl TestServer {
    /// Serves plaintext with the default limits.
    pub(crate) async fn plain(router: Router) -> Self {
        Self::with(router, ServeSettings::default(), Listeners::new().plain("127.0.0.1:0").await.unwrap())
    }

    /// Serves plaintext with other limits.
    pub(crate) async fn bounded(router: Router, settings: ServeSettings) -> Self {
        Self::with(router, settings, Listeners::new().plain("127.0.0.1:0").await.unwrap())
    }

    /// Serves on a plaintext and a TLS listener.
    pub(crate) async fn both(router: Router, tls: &Tls) -> Self {
        let listeners = Listeners::new().plain("127.0.0.1:0").await.unwrap();
        let listeners = listeners.tls("127.0.0.1:0", tls.server_config(&HTTP_PROTOCOLS)).await.unwrap();
        Self::with(router, ServeSettings::default(), listeners)
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.serving.addresses()[0]
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address())
    }

    /// Serves plaintext with other limits, and takes a text for the token of the component with these claims.
    pub(crate) async fn with_component(
        router: Router,
        settings: ServeSettings,
        token: &'static str,
        claims: Claims,
    ) -> Self {
        let verify = move |sent: &Secret| (sent.expose() == token).then(|| claims.clone());
        let service = service(router).verifying_components(Arc::new(verify));
        Self::serving(service, settings, Listeners::new().plain("127.0.0.1:0").await.unwrap())
    }

    /// Serves plaintext with other limits and budgets; every request needs a credential.
    pub(crate) async fn budgeted(router: Router, settings: ServeSettings, ledger: Ledger) -> Self {
        let stop = CancellationToken::new();
        let server = Server { ledger, ..Server::new(settings, Arc::new(CountingRandom::default()), stop.clone()) };
        let listeners = Listeners::new().plain("127.0.0.1:0").await.unwrap();
        let service = service(router).needing_credentials(|_, path| path != "/change");
        Self { serving: server.start(service, listeners), stop }
    }

    fn with(router: Router, settings: ServeSettings, listeners: Listeners) -> Self {
        Self::serving(service(router), settings, listeners)
    }

    fn serving(service: HttpService, settings: ServeSettings, listeners: Listeners) -> Self {
        let stop = CancellationToken::new();
        let server = Server::new(settings, Arc::new(CountingRandom::default()), stop.clone());
        Self { serving: server.start(service, listeners), stop }
    }
}

fn service(router: Router) -> HttpService {
    HttpService::new("test", router, ErrorFormat::GrpcGateway)
}

/// A client that trusts this certificate alone, or none.
pub(crate) fn http_client(certificate_pem: Option<&str>) -> reqwest::Client {
    server::system::install_crypto();
    let trusted = certificate_pem.map(|pem| reqwest::Certificate::from_pem(pem.as_bytes()).unwrap());
    reqwest::Client::builder().tls_certs_only(trusted).build().unwrap()
}
