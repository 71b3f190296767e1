//! Hints: somebody says that something changed; whoever cares reads it again.

use std::{collections::HashMap, sync::Mutex};

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use tokio::sync::broadcast::{self, error::RecvError};

use crate::{Error, shared::base64};

/// The most bytes of the name of a channel.
pub const CHANNEL_BYTES_MAX: usize = 256;
/// How many hints wait for one watcher before the oldest are missed.
const HINTS_MAX: usize = 256;
/// How many channels are watched before the unused ones are forgotten.
const CHANNELS_KEPT: usize = 64;

/// What a watcher hears.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Hint {
    /// Somebody said this.
    Message(#[serde(with = "base64")] Bytes),
    /// Something may have been missed: read again what you know.
    Missed,
}

/// The hints of one channel as they come.
///
/// The first one is [`Hint::Missed`], as soon as the channel is being watched: what is read after it is followed by a
/// hint when it changes.
#[derive(Debug)]
pub struct Watch {
    hints: broadcast::Receiver<Hint>,
}

impl Watch {
    /// Waits for the next hint; none when the store is gone.
    pub async fn next(&mut self) -> Option<Hint> {
        match self.hints.recv().await {
            Ok(hint) => Some(hint),
            Err(RecvError::Lagged(_)) => Some(Hint::Missed),
            Err(RecvError::Closed) => None,
        }
    }
}

/// The channels that are watched in this process.
#[derive(Debug, Default)]
pub(crate) struct Hub {
    channels: Mutex<HashMap<String, broadcast::Sender<Hint>>>,
}

impl Hub {
    /// Watches a channel; the caller says [`Hint::Missed`] on it once it is heard.
    pub(crate) fn watch(&self, channel: &str) -> Watch {
        let mut channels = self.lock();
        if channels.len() >= CHANNELS_KEPT {
            channels.retain(|_, hints| hints.receiver_count() > 0);
        }
        let hints = channels.entry(channel.to_owned()).or_insert_with(|| broadcast::Sender::new(HINTS_MAX));
        Watch { hints: hints.subscribe() }
    }

    /// Tells the watchers of a channel; false when there is none any more.
    pub(crate) fn tell(&self, channel: &str, hint: Hint) -> bool {
        let mut channels = self.lock();
        let heard = channels.get(channel).is_some_and(|hints| hints.send(hint).is_ok());
        if !heard {
            channels.remove(channel);
        }
        heard
    }

    /// The channels that somebody watches.
    pub(crate) fn watched(&self) -> Vec<String> {
        let mut channels = self.lock();
        channels.retain(|_, hints| hints.receiver_count() > 0);
        channels.keys().cloned().collect()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, broadcast::Sender<Hint>>> {
        // Whoever panicked here left the map whole: every change to it is one call.
        self.channels.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// Refuses names that a channel may not have.
pub(crate) fn check_channel(channel: &str) -> Result<(), Error> {
    if (1..=CHANNEL_BYTES_MAX).contains(&channel.len()) && channel.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Ok(());
    }
    Err(Error::invalid("channel", channel, "1 to 256 visible ASCII characters are allowed"))
}
