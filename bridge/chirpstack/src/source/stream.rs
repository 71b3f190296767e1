//! The events of ChirpStack's Redis stream, device by device.

use std::{collections::BTreeSet, sync::Arc};

use bridge::{metrics, publish::output::Payload, receive::lanes::Lanes};
use futures::future::BoxFuture;
use link::redis::StreamEntry;
use parking_lot::Mutex;

use crate::event::{
    forms::{UP, entry, topic},
    incoming::Incoming,
    topic::Topic,
};

/// The stream of all devices, behind ChirpStack's `key_prefix`.
pub(crate) const KEY: &str = "device:stream:event";

/// Maximum number of names of dropped entries that are logged.
const NAMES_MAX: usize = 100;

/// Works on the entries of one device one after the other.
pub(crate) fn lanes(
    work: impl Fn(Incoming) -> BoxFuture<'static, ()> + Send + Sync + 'static,
) -> impl Fn(StreamEntry) + Send + Sync + 'static {
    let (lanes, named) = (Lanes::new(Arc::new(work)), DroppedNames::default());
    move |StreamEntry { name, value, ack }| match topic(&name, &value) {
        Ok(topic) => {
            let device = Topic::parse(&topic, "").map_or_else(String::new, |topic| topic.dev_eui.to_owned());
            lanes.add(&device, Incoming { topic, payload: Payload::Entry(entry(name, value)), ack });
        }
        Err(error) => {
            if named.is_first(&name) {
                tracing::warn!(name, bytes = value.len(), %error, "dropped an entry of the Redis stream");
            }
            if name == UP {
                metrics::uplink("malformed");
            } else {
                metrics::event("malformed");
            }
            tokio::spawn(ack.acknowledge());
        }
    }
}

/// The names of entries that were dropped: what something else writes again and again is logged once.
#[derive(Default)]
struct DroppedNames(Mutex<BTreeSet<String>>);

impl DroppedNames {
    /// Remembers `name`, and returns true if it is new. Once the set is full, further names count as old.
    fn is_first(&self, name: &str) -> bool {
        let mut names = self.0.lock();
        names.len() < NAMES_MAX && names.insert(name.to_owned())
    }
}
