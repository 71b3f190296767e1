//! Kafka: a record for each message, with its device as key. Only builds with the feature `kafka` have the client.

#[cfg(feature = "kafka")]
mod advice;
#[cfg(feature = "kafka")]
mod connection;
#[cfg(feature = "kafka")]
mod partitioner;
#[cfg(feature = "kafka")]
mod producers;
#[cfg(feature = "kafka")]
mod sender;
mod settings;

use std::sync::Arc;

use types::Random;

pub use self::settings::{KafkaCompression, KafkaMechanism, KafkaSettings};
use crate::{Error, Settings, sender::Sender};

/// Checks the settings, and connects in the background.
#[cfg(feature = "kafka")]
pub(crate) fn start(
    settings: &KafkaSettings,
    delivery: &Settings,
    random: Arc<dyn Random>,
) -> Result<Arc<dyn Sender>, Error> {
    Ok(Arc::new(sender::KafkaSender::start(settings, delivery, random)?))
}

/// Refuses the settings: without the client, messages would only wait.
#[cfg(not(feature = "kafka"))]
pub(crate) fn start(settings: &KafkaSettings, _: &Settings, _: Arc<dyn Random>) -> Result<Arc<dyn Sender>, Error> {
    let reason = "needs a build with Kafka: `cargo build --release --features kafka`";
    Err(Error::Setting { setting: "output.kafka".to_owned(), output: settings.name.clone(), reason: reason.to_owned() })
}
