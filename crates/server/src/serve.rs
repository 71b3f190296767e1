//! Serves one router, REST and gRPC together, on plaintext and TLS listeners.
//!
//! hyper-util runs the connections. Neither axum-server nor tower-http bounds the time until the first byte, shares one
//! connection limit between listeners, or answers with gRPC errors, so the loops and the middleware are ours.

mod activity;
mod admission;
mod client_stream;
mod connection;
mod listeners;
mod metrics;
mod middleware;
mod open_connections;
mod response_body;
mod run_to_end;

use std::sync::Arc;

use axum::{Router, http::Method};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;
use types::{Claims, Random, Secret};

pub use self::{
    admission::{PartTurn, PartTurns, Refusal},
    listeners::{Acceptor, Listeners, ServerHandle, bind},
    run_to_end::run_to_end,
};
use crate::{
    http::error_response::ErrorFormat,
    ledger::{BudgetSettings, Ledger, Owners},
};

types::settings! {
    /// Limits of every listener.
    #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(default, deny_unknown_fields)]
    pub struct ServeSettings {
        /// Maximum number of open connections of one service. For a further one, the longest idle one of the address
        /// that has most is closed, after a second also a busy one; one of an address that has as many as any is closed
        /// itself.
        pub connections_max: usize = 4096,
        /// Maximum number of open connections of one service from one address, or one IPv6 network; more are closed at
        /// once. The more are open, the lower it is. Behind a reverse proxy, all clients have the proxy's address.
        pub connections_per_address_max: usize = 2048,
        /// Maximum number of requests that one service handles at once; more wait for their turn.
        pub running_max: usize = 1024,
        /// Maximum number of these requests of one caller. Callers without a known credential count as one per address.
        /// What the callers of one owner may have together is lower, the more others there are, so that everybody finds
        /// room.
        pub tenant_running_max: usize = 128,
        /// Maximum number of requests that wait for their turn; further ones get 503.
        pub waiting_max: usize = 8192,
        /// Maximum number of waiting requests of one caller; further ones get 429, as do those of an owner that has as
        /// many as there is room left.
        pub tenant_waiting_max: usize = 2048,
        /// Time that a request may wait for its turn; after that it gets 503.
        pub waiting_timeout_ms: u64 = 10_000,
        /// Maximum size of a REST body, in bytes; a larger one gets 413. gRPC messages have a limit of their own.
        ///
        /// By default 2 MiB: an application with four payload functions of 256 KiB must fit, and JSON writes each of
        /// their quotes and line ends with two bytes.
        pub body_bytes_max: usize = 2 * 1024 * 1024,
        /// Time that a client may take to send the head of a request, or keep an idle connection.
        pub head_timeout_ms: u64 = 30_000,
        /// Time that a client may read nothing of a response that is there; after that its connection is closed.
        pub unread_timeout_ms: u64 = 30_000,
        /// Time that one request may take; a gRPC stream only has to begin by then.
        pub request_timeout_ms: u64 = 60_000,
        /// Time that running requests may take to finish after the process was asked to stop.
        pub drain_timeout_ms: u64 = 20_000,
    }
}

/// The claims of a component's token; `None` if it is not valid, or nobody's but a component's. Needs no I/O.
pub type VerifyComponent = Arc<dyn Fn(&Secret) -> Option<Claims> + Send + Sync>;

/// Returns true if a request of this method and path is refused without a credential.
pub type NeedsCredential = fn(&Method, &str) -> bool;

/// Returns true if a REST request of this method and path reads its body part by part, so that it may have any length.
pub type IsStream = fn(&Method, &str) -> bool;

/// A service and its routes.
pub struct HttpService {
    /// Its name in metrics and logs.
    pub name: &'static str,
    /// Its REST routes, with the gRPC ones merged in.
    pub router: Router,
    /// The format of its error bodies.
    pub error_format: ErrorFormat,
    verify_component: Option<VerifyComponent>,
    needs_credential: Option<NeedsCredential>,
    is_stream: Option<IsStream>,
}

impl HttpService {
    /// A service to which no component identifies itself.
    pub fn new(name: &'static str, router: Router, error_format: ErrorFormat) -> Self {
        Self { name, router, error_format, verify_component: None, needs_credential: None, is_stream: None }
    }

    /// Gives components that identify themselves turns of their own.
    #[must_use]
    pub fn verifying_components(mut self, verify: VerifyComponent) -> Self {
        self.verify_component = Some(verify);
        self
    }

    /// Refuses requests that need a credential and have none before their bodies are read.
    #[must_use]
    pub fn needing_credentials(mut self, needs: NeedsCredential) -> Self {
        self.needs_credential = Some(needs);
        self
    }

    /// Does not limit the bodies of requests that read them part by part.
    #[must_use]
    pub fn with_streams(mut self, is_stream: IsStream) -> Self {
        self.is_stream = Some(is_stream);
        self
    }
}

/// Settings and resources that all services of a process share.
#[derive(Clone)]
pub struct Server {
    /// The limits.
    pub settings: ServeSettings,
    /// The source of request ids.
    pub random: Arc<dyn Random>,
    /// Cancelled to stop accepting connections.
    pub stop: CancellationToken,
    /// The budgets of bodies and responses.
    pub ledger: Ledger,
    /// Owners of applications; without it, each is an owner of its own.
    pub owners: Option<Arc<Owners>>,
}

impl Server {
    /// A server with budgets of its own, of the default size.
    pub fn new(settings: ServeSettings, random: Arc<dyn Random>, stop: CancellationToken) -> Self {
        Self { settings, random, stop, ledger: Ledger::new(&BudgetSettings::default()), owners: None }
    }

    /// Serves `service` on `listeners` until `stop`, then until its running requests have finished.
    pub fn start(&self, service: HttpService, listeners: Listeners) -> ServerHandle {
        metrics::describe();
        let router = middleware::wrap(service, self);
        listeners.serve(router, self)
    }
}
