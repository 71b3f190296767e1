//! Serves one router, REST and gRPC together, on plain and TLS listeners.

mod connection;
mod deadline;
mod guard;
mod listen;

use std::{sync::Arc, time::Duration};

use axum::Router;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;
use types::Random;

use crate::reply::Shape;

pub use self::listen::{Listeners, Serving, is_of_peer};

/// Bounds of every listener.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// The most connections that are open at once on one service; more wait to be accepted.
    pub connections_max: usize,
    /// The largest REST body that is read, in bytes; a larger one gets 413. gRPC messages have a limit of their own.
    ///
    /// By default 2 MiB: an application with four payload functions of 256 KiB each must fit, and in JSON every quote
    /// and line end of them takes two bytes.
    pub body_bytes_max: usize,
    /// How long a client may take to send the head of a request, or leave a connection unused.
    pub head_timeout_ms: u64,
    /// How long answering one request may take; a stream over gRPC only has to begin by then.
    pub request_timeout_ms: u64,
    /// How long requests may take to finish once the process has been asked to stop.
    pub drain_timeout_ms: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            connections_max: 4096,
            body_bytes_max: 2 * 1024 * 1024,
            head_timeout_ms: 30_000,
            request_timeout_ms: 60_000,
            drain_timeout_ms: 20_000,
        }
    }
}

/// A service as its listeners see it.
pub struct Site {
    /// What it is called in metrics and logs.
    pub name: &'static str,
    /// Its REST routes, with the gRPC ones merged in.
    pub router: Router,
    /// The body that its errors have.
    pub shape: Shape,
}

/// What every service is served with.
#[derive(Clone)]
pub struct Server {
    /// The bounds.
    pub settings: Settings,
    /// Where the ids of requests come from.
    pub random: Arc<dyn Random>,
    /// Cancelled when nothing new is to be taken.
    pub stop: CancellationToken,
}

impl Server {
    /// Serves `site` on `listeners` until the stop, and then until what runs has finished.
    pub fn start(&self, site: Site, listeners: Listeners) -> Serving {
        let drain = Duration::from_millis(self.settings.drain_timeout_ms);
        let limits = connection::Limits::of(&self.settings);
        let router = guard::wrap(site, self);
        listeners.serve(router, limits, self.stop.clone(), drain)
    }
}
