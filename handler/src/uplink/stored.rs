//! Uplinks as history has them: what was received, and the newest of their corrections.

use std::collections::{BTreeMap, HashSet};

use futures::TryStreamExt;
use history::{History, Query, Record, RecordId, Revisions};

use super::seed;
use crate::{Error, payload::Payload};

/// Restores the input of the functions for an uplink. Metadata is left out, as functions do not see it.
pub(crate) fn payload(record: &Record) -> Payload {
    Payload {
        bytes: (record.port > 0).then(|| record.payload.clone()),
        port: record.port,
        counter: record.counter,
        confirmed: record.confirmed,
        retry: record.is_retry,
        received: record.received,
        seed: record.seed.unwrap_or_else(|| seed(&record.app_id, &record.dev_id, record.counter)),
        metadata: types::Metadata::default(),
        extra: record.extra.clone(),
        warnings: Vec::new(),
    }
}

/// The payload with what is known of how it was received.
pub(crate) fn whole_payload(record: &Record) -> Payload {
    Payload { metadata: serde_json::from_str(&record.metadata).unwrap_or_default(), ..payload(record) }
}

/// The newest correction of each of these records that has one. They are what the query found.
pub(crate) async fn newest_revisions(
    history: &History,
    query: &Query,
    records: &[Record],
) -> Result<BTreeMap<RecordId, Record>, Error> {
    let ids = records.iter().map(|record| record.id);
    let (Some(first), Some(last)) = (ids.clone().min(), ids.clone().max()) else { return Ok(BTreeMap::new()) };
    let query = Query {
        dev_id: query.dev_id.clone(),
        revisions: Revisions::CorrectionsOf(first..=last),
        ..Query::of(query.app_id.clone())
    };
    let wanted: HashSet<_> = ids.collect();
    let mut newest = BTreeMap::<RecordId, Record>::new();
    let mut batches = Box::pin(history.batches(query));
    while let Some(batch) = batches.try_next().await? {
        for record in batch {
            let Some(id) = record.corrects.filter(|id| wanted.contains(id)) else { continue };
            if newest.get(&id).is_none_or(|other| other.revision < record.revision) {
                newest.insert(id, record);
            }
        }
    }
    Ok(newest)
}
