//! The bodies that destinations share: each is deleted with the last message that needs it.

use std::{
    collections::{BTreeMap, HashSet},
    sync::Arc,
};

use store::{Batch, Entry, GET_KEYS_MAX, Key, Store};
use types::AppId;

use super::stored::Queued;
use crate::{
    Error,
    destination::{self, Destination, Part},
    message::OutputMessage,
};

/// Bodies with records of their own.
pub(super) struct Bodies {
    pub(super) store: Arc<dyn Store>,
}

impl Bodies {
    /// A message with its body; none if it was removed meanwhile.
    pub(super) async fn message(
        &self,
        destination: &Destination,
        queued: &Queued,
    ) -> Result<Option<OutputMessage>, Error> {
        let Some(body) = queued.body(destination)? else { return Ok(Some(queued.message.with_body(None)?)) };
        let body = self.store.get_one(&body).await?;
        body.map(|body| queued.message.with_body(Some(&body))).transpose()
    }

    /// Removes messages of one application, each as it was read, and the bodies that nobody needs then. The batch fails
    /// if somebody else removes one of the messages, or the last other one with the same body.
    pub(super) async fn remove(&self, mut batch: Batch, app_id: &AppId, removed: &[&Queued]) -> Result<Batch, Error> {
        for Queued { key, version, .. } in removed {
            batch = batch.expect(key.clone(), *version).delete(key.clone());
        }
        let others = others(app_id, removed)?;
        let keys: Vec<Key> = others.values().flatten().cloned().collect();
        let mut found = Vec::with_capacity(keys.len());
        for keys in keys.chunks(GET_KEYS_MAX) {
            found.extend(self.store.get(keys).await?);
        }
        let mut found = found.into_iter();
        for (id, keys) in others {
            let there: Vec<Entry> = found.by_ref().take(keys.len()).flatten().collect();
            batch = match there.into_iter().next() {
                Some(Entry { key, version, .. }) => batch.expect(key, version),
                None => batch.delete(destination::body(app_id, id)?),
            };
        }
        Ok(batch)
    }
}

/// Returns the other places of messages with shared bodies, by message id. A message that is gone from one never
/// comes back.
fn others<'a>(app_id: &AppId, removed: &[&'a Queued]) -> Result<BTreeMap<&'a str, Vec<Key>>, Error> {
    let keys: HashSet<&Key> = removed.iter().map(|queued| &queued.key).collect();
    let mut others = BTreeMap::new();
    for queued in removed.iter().filter(|queued| queued.message.is_shared()) {
        let destinations = queued.message.shared_by().iter();
        let destinations = destinations.filter_map(|label| Destination::labelled(app_id, label));
        let mut elsewhere = Vec::new();
        for destination in destinations {
            for part in Part::ALL {
                let key = destination.message(part, queued.id())?;
                if !keys.contains(&key) {
                    elsewhere.push(key);
                }
            }
        }
        others.insert(queued.id(), elsewhere);
    }
    Ok(others)
}
