#![doc = include_str!("../README.md")]

mod codec;
mod cost;
mod directory;
mod error;
mod message;
mod metrics;
mod name;
mod rest;
mod settings;

use std::sync::Arc;

use axum::Router;
use runtime::Pool;
use server::telemetry::Health;
use tokio_util::sync::CancellationToken;
use types::{Clock, Random};

use self::error::Error;
use self::{
    directory::CodecDirectory,
    rest::{Key, Service},
};
pub use self::{error::OpenError, rest::names_this_machine, settings::Settings};

/// The codecs of a directory, and the API that runs them.
pub struct Codecs {
    directory: Arc<CodecDirectory>,
    service: Arc<Service>,
}

impl Codecs {
    /// Reads the directory and the key that the settings name; `pool` runs the codecs.
    pub fn open(
        settings: &Settings,
        pool: Arc<Pool>,
        clock: Arc<dyn Clock>,
        random: Arc<dyn Random>,
    ) -> Result<Self, OpenError> {
        metrics::describe();
        let directory = Arc::new(CodecDirectory::open(settings, pool)?);
        let service = Service {
            directory: directory.clone(),
            key: settings.key_file.as_deref().map(Key::open).transpose()?,
            hosts: settings.hosts.clone(),
            clock,
            random,
            batch_max: settings.batch_max,
        };
        Ok(Self { directory, service: Arc::new(service) })
    }

    /// Returns the number of codecs.
    pub fn count(&self) -> usize {
        self.directory.list().len()
    }

    /// The API, and `/openapi.json`, which describes it. `is_local` if only this machine reaches it.
    pub fn router(&self, is_local: bool) -> Router {
        rest::router(self.service.clone(), is_local)
    }

    /// Makes `/readyz` fail while the directory cannot be read.
    pub fn report_to(&self, health: &Health) {
        let directory = self.directory.clone();
        health.add("codecs", move || std::future::ready(directory.check()));
    }

    /// Follows changes of the directory until `stop`.
    pub async fn follow(&self, stop: &CancellationToken) {
        _ = stop.run_until_cancelled(self.directory.follow()).await;
    }
}
