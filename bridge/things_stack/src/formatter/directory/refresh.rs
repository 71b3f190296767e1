//! Follows changes: fetches known objects again.
//!
//! The API cannot say what has changed, so everything is asked for, devices in turns.

use std::{sync::Arc, time::Duration};

use bridge::codec::{imports::LOAD_WAIT, single_flight::is_final};
use futures::{StreamExt, stream};
use server::status::ErrorChain;
use tokio::time::Instant;
use types::{Kind, Kinded};

use super::{
    Directory, model_id,
    records::{Choice, Formatters},
};
use crate::formatter::Formatter;

/// Maximum number of concurrent calls of the API.
const CALLS_MAX: usize = 8;
/// Interval at which a model is fetched again: the device repository changes with releases only.
const MODEL_INTERVAL: Duration = Duration::from_secs(3600);

impl Directory {
    /// Checks that the API can be used for every application, and fetches their default formatters.
    pub(crate) async fn check(&self) -> client::Result<()> {
        for application in self.applications.values() {
            self.fetch_defaults(application).await?;
        }
        Ok(())
    }

    /// Refreshes known objects at an interval, and keeps them on disk.
    pub(crate) async fn run(self: Arc<Self>) {
        self.imports.follow("formatters", || self.refresh()).await;
    }

    /// Writes known objects to disk, if they have changed.
    pub(crate) async fn save(&self) {
        self.imports.save().await;
    }

    /// Refreshes everything that can be; returns the first error.
    async fn refresh(&self) -> client::Result<()> {
        let applications = self.applications.values().map(|application| async move {
            let found = self.fetch_defaults(application).await?;
            load(found.formatters.as_deref()).await;
            Ok(())
        });
        let applications = first_error(applications.collect()).await;
        let devices =
            first_error(self.oldest_devices().into_iter().map(|key| self.refresh_device(key)).collect()).await;
        let models = first_error(self.oldest_models().into_iter().map(|id| self.refresh_model(id)).collect()).await;
        self.loader.clean();
        applications.and(devices).and(models)
    }

    /// The devices that were fetched longest ago.
    fn oldest_devices(&self) -> Vec<Box<str>> {
        let known = self.imports.lock();
        let mut devices: Vec<_> = known.devices.iter().map(|(key, device)| (device.fetched, key)).collect();
        devices.sort_unstable();
        devices.into_iter().take(self.refresh_devices_max).map(|(_, key)| key.clone()).collect()
    }

    async fn refresh_device(&self, key: Box<str>) -> client::Result<()> {
        let Some(old) = self.imports.lock().devices.peek(&key).cloned() else { return Ok(()) };
        let Some(application) = self.applications.get(&*old.record.application) else {
            // Its application is no longer among the settings.
            let mut known = self.imports.lock();
            self.imports.changed(known.devices.pop(&key).is_some());
            return Ok(());
        };
        match self.fetch_device(application, &old.record.id).await {
            Ok(new) if new.record != old.record => {
                load(new.formatters.as_deref()).await;
                tracing::info!(device = key, "the formatters of a device have changed");
            }
            Ok(_) => {}
            Err(error) if error.kind() == Kind::NotFound => {
                tracing::warn!(device = key, "a device was deleted");
                let mut known = self.imports.lock();
                self.imports.changed(known.devices.pop(&key).is_some());
            }
            Err(error) if is_final(&error) => {
                tracing::warn!(device = key, error = %ErrorChain(&error), "cannot refresh a device");
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// The models that are due.
    fn oldest_models(&self) -> Vec<Box<str>> {
        let (known, now) = (self.imports.lock(), Instant::now());
        let is_due = |fetched: Option<Instant>| fetched.is_none_or(|fetched| now - fetched >= MODEL_INTERVAL);
        known.models.iter().filter(|(_, model)| is_due(model.fetched)).map(|(id, _)| id.clone()).collect()
    }

    async fn refresh_model(&self, id: Box<str>) -> client::Result<()> {
        let Some(old) = self.imports.lock().models.peek(&id).cloned() else { return Ok(()) };
        let Some(application) = self.applications.get(&old.record.application) else { return Ok(()) };
        let new = self.fetch_model(application, &old.record.version).await?;
        if new.record != old.record {
            new.up.load(Instant::now() + LOAD_WAIT).await;
            tracing::info!(model = model_id(&new.record.version), "the formatters of a model have changed");
        }
        Ok(())
    }
}

/// Loads formatters before a message needs them.
async fn load(formatters: Option<&Formatters>) {
    let deadline = Instant::now() + LOAD_WAIT;
    let load = async |choice: &Choice| match choice {
        Choice::Own(formatter) => Formatter::load(formatter, deadline).await,
        Choice::Repository => {}
    };
    if let Some(formatters) = formatters {
        load(&formatters.up).await;
        load(&formatters.down).await;
    }
}

async fn first_error<F: Future<Output = client::Result<()>>>(calls: Vec<F>) -> client::Result<()> {
    let results = stream::iter(calls).buffer_unordered(CALLS_MAX);
    results.fold(Ok(()), |first, result| async { first.and(result) }).await
}
