//! Messages of an application as they arrive: filtered here, and handed on in batches.

mod entry;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use client::data::{ConnectionEvent, DataClient, Listener, MessageStream, Topics};
use serde::Serialize;
use tokio::time::{Instant, timeout_at};
use types::{Clock, DevId, Kind, Kinded};

use self::entry::Entry;
use super::history::Filter;
use crate::{Console, Error, Result, form::drafts::Fields, services::Access};

/// Time for which messages are gathered before they are sent on together.
const BATCH_WAIT: Duration = Duration::from_millis(100);
/// Maximum number of messages in a batch; of more that arrive meanwhile, only the number is sent.
const BATCH_MAX: usize = 100;
/// Maximum time without a batch. An empty one is sent after it.
const SILENCE_MAX: Duration = Duration::from_secs(15);

/// Filter of messages in a live view.
#[derive(Clone, Debug, Default)]
pub(crate) struct LiveFilter {
    pub(crate) device: Option<DevId>,
    /// Only failures and errors.
    pub(crate) failed: bool,
    /// The kind of message, such as `up` or `down/sent`; all if it is empty.
    pub(crate) kind: String,
    pub(crate) port: Option<u32>,
    /// True for events of devices that were created, changed or deleted, too.
    pub(crate) has_changes: bool,
    /// Text that the fields or the error must contain, as JSON has it.
    pub(crate) text: String,
}

/// An open subscription. While nobody takes messages from it, they wait at the broker, which drops and counts what is too
/// much.
pub(crate) struct Feed {
    stream: MessageStream,
    /// It keeps the connection.
    _client: DataClient,
    /// True if the connection was lost and made again since the last batch.
    reconnected: Arc<AtomicBool>,
    _listener: Listener,
    filter: LiveFilter,
    clock: Arc<dyn Clock>,
}

/// Messages that arrived within a short time.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Batch {
    /// In the order of their arrival.
    messages: Vec<Entry>,
    /// Number of messages that were left out because too many arrived.
    skipped: u64,
    /// True if the connection to the broker was lost for a time. Nobody knows how many messages came meanwhile.
    interrupted: bool,
}

impl LiveFilter {
    pub(crate) fn new(fields: &Fields) -> Result<Self> {
        let value = |name: &str| fields.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value.trim());
        let device = Some(value("device")).filter(|device| !device.is_empty()).map(str::parse).transpose();
        let device =
            device.map_err(|_| Error::Invalid { what: "device", must: "must be the id of a device".to_owned() })?;
        let port = Some(value("port")).filter(|port| !port.is_empty()).map(str::parse).transpose();
        let port = port.map_err(|_| Error::Invalid { what: "port", must: "must be a number".to_owned() })?;
        let (kind, text) = (value("kind").to_owned(), value("text").to_owned());
        let has_changes = Filter::new(fields.clone()).has_changes();
        Ok(Self { device, failed: !value("failed").is_empty(), kind, port, has_changes, text })
    }

    fn wants(&self, entry: &Entry) -> bool {
        (!self.failed || entry.failed)
            && (self.kind.is_empty() || entry.kind == self.kind)
            && (self.has_changes || !entry.is_change())
            && (self.port.is_none() || entry.port == self.port)
            && (self.text.is_empty() || entry.text.contains(&self.text))
    }

    fn topics(&self) -> Result<Topics> {
        let device = self.device.as_ref().map_or("+", DevId::as_str);
        Ok(Topics::new("uplink", device, &[])?.and(Topics::new("event", device, &[])?).with_dropped())
    }
}

impl Console {
    /// Subscribes to messages with the user's token.
    pub(crate) async fn feed(&self, access: &Access, filter: LiveFilter) -> Result<Feed> {
        let announcement = self.announcement(access).await?.ok_or(Error::NotServed)?;
        let client = DataClient::connect(&announcement.mqtt_address, &access.app_id, &access.credential).await?;
        let reconnected = Arc::<AtomicBool>::default();
        let told = reconnected.clone();
        let listener = client.on_connection(move |event| {
            if matches!(event, ConnectionEvent::Connect) {
                told.store(true, Ordering::Relaxed);
            }
        });
        let stream = client.stream(filter.topics()?).await?;
        Ok(Feed { stream, _client: client, reconnected, _listener: listener, filter, clock: self.clock.clone() })
    }
}

impl Feed {
    /// The next batch; empty after a silence, none once the broker does not accept the login any more.
    pub(crate) async fn next(&mut self) -> Option<Batch> {
        let mut batch = Batch::default();
        let mut until = Instant::now() + SILENCE_MAX;
        let mut is_waiting = true;
        while let Ok(received) = timeout_at(until, self.stream.next()).await {
            match received {
                Some(Ok(received)) => {
                    let entry = Entry::new(&received.dev_id, &received.message, self.clock.now());
                    if !self.filter.wants(&entry) {
                        continue;
                    }
                    batch.take(entry.shortened());
                }
                Some(Err(client::Error::Missed { count, .. })) => batch.skipped += count,
                Some(Err(error)) if error.kind() != Kind::Exhausted => return None,
                Some(Err(_)) => {}
                None => return None,
            }
            if is_waiting {
                is_waiting = false;
                until = Instant::now() + BATCH_WAIT;
            }
        }
        batch.interrupted = self.reconnected.swap(false, Ordering::Relaxed);
        Some(batch)
    }
}

impl Batch {
    pub(crate) fn is_empty(&self) -> bool {
        self.messages.is_empty() && self.skipped == 0 && !self.interrupted
    }

    fn take(&mut self, entry: Entry) {
        if self.messages.len() < BATCH_MAX {
            self.messages.push(entry);
        } else {
            self.skipped += 1;
        }
    }
}
