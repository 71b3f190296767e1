//! Limits within which functions have run, by the first bytes of their hash, which records of history have.
//!
//! Operators change limits. These stay, so that an uplink can run again within those that it had.

use std::collections::{BTreeMap, BTreeSet};

use runtime::LimitsByName;
use serde::{Deserialize, Serialize};
use store::{Batch, Entry, Key, LIST_MAX, Version};
use types::Timestamp;

use crate::{
    Error,
    registry::application::{applications::Applications, store_keys},
};

/// Maximum number of limits that are kept, unless the handler that started last has more. Only an operator makes new
/// ones.
const KEPT_MAX: usize = 500;
/// Maximum number of limits that one commit stores or drops.
const COMMIT_LIMITS: usize = 500;

/// Limits in the store.
#[derive(Serialize, Deserialize)]
struct LimitsRecord {
    /// The last start of a handler that has them.
    used: Timestamp,
    limits: LimitsByName,
}

/// The last use of limits, their key, and the version of their record.
type KeptLimits = (Timestamp, Key, Version);

impl Applications {
    /// Stores limits within which functions of this handler run from now on, by the first bytes of their hashes. If
    /// there are too many, those of other handlers and of the past are dropped, first those with which none has started
    /// for the longest time.
    pub async fn store_limits(&self, in_use: BTreeMap<[u8; 8], LimitsByName>, now: Timestamp) -> Result<(), Error> {
        let mut records = Vec::with_capacity(in_use.len());
        for (hash, limits) in in_use {
            records.push((store_keys::limits(hash)?, serde_json::to_vec(&LimitsRecord { used: now, limits })?));
        }
        for records in records.chunks(COMMIT_LIMITS) {
            let put = |batch: Batch, (key, record): &(Key, Vec<u8>)| batch.put(key.clone(), record.clone());
            // It expects nothing, so it cannot conflict.
            let _ = self.store.commit(records.iter().fold(Batch::new(), put)).await?;
        }
        self.drop_limits(&records.into_iter().map(|(key, _)| key).collect()).await
    }

    async fn drop_limits(&self, in_use: &BTreeSet<Key>) -> Result<(), Error> {
        let kept = self.kept_limits().await?.into_iter();
        let mut kept: Vec<KeptLimits> = kept.map(|entry| (last_used(&entry), entry.key, entry.version)).collect();
        let surplus = kept.len().saturating_sub(KEPT_MAX);
        kept.retain(|(_, key, _)| !in_use.contains(key));
        kept.sort();
        kept.truncate(surplus);
        for dropped in kept.chunks(COMMIT_LIMITS) {
            let delete =
                |batch: Batch, (_, key, version): &KeptLimits| batch.expect(key.clone(), *version).delete(key.clone());
            // If another handler stores one of them again meanwhile, the next start drops the others.
            let _ = self.store.commit(dropped.iter().fold(Batch::new(), delete)).await?;
        }
        Ok(())
    }

    /// All limits that are known, by the first bytes of their hashes.
    pub async fn all_limits(&self) -> Result<BTreeMap<[u8; 8], LimitsByName>, Error> {
        let kept = self.kept_limits().await?;
        let limits = |entry: &Entry| Some((store_keys::limits_hash_of(&entry.key)?, read(entry)?.limits));
        Ok(kept.iter().filter_map(limits).collect())
    }

    async fn kept_limits(&self) -> Result<Vec<Entry>, Error> {
        let (prefix, mut kept) = (store_keys::all_limits()?, Vec::<Entry>::new());
        loop {
            let last = kept.last().map(|entry| &entry.key);
            let page = self.store.list(&prefix, last, LIST_MAX).await?;
            let is_last = page.len() < LIST_MAX;
            kept.extend(page);
            if is_last {
                return Ok(kept);
            }
        }
    }

    /// The limits whose hash begins with these bytes; none if they are not known, were dropped, or cannot be read, as if
    /// a later version of Airlock stored them.
    pub async fn past_limits(&self, hash: [u8; 8]) -> Result<Option<LimitsByName>, Error> {
        let entry = self.store.get_one(&store_keys::limits(hash)?).await?;
        Ok(entry.and_then(|entry| read(&entry)).map(|record| record.limits))
    }
}

/// The time of the last use; long ago if it cannot be read.
fn last_used(entry: &Entry) -> Timestamp {
    read(entry).map(|record| record.used).unwrap_or_default()
}

fn read(entry: &Entry) -> Option<LimitsRecord> {
    serde_json::from_slice(&entry.value).ok()
}
