//! Adds up what several handlers count, and abandons candidates that fail too much.
//!
//! Each handler adds its counts to the same record now and then. Whichever sees that the candidate is worse ends it, in
//! one commit that expects this record and the application unchanged.

use store::{Batch, Commit};
use types::{AppId, DevId, Timestamp};

use super::{
    Candidate, Counts,
    candidates::{CandidateState, conflict, read_counts},
};
use crate::{
    Error,
    registry::application::{
        applications::{Applications, SET_ATTEMPTS_MAX},
        store_keys,
        version::Abandonment,
    },
};

/// Number of devices read at once, and at most, to find out if several have a candidate.
const DEVICES_READ: usize = 256;
const DEVICES_READ_MAX: usize = 100_000;

/// A candidate that was abandoned because it failed more than the live version.
#[derive(Clone, Debug)]
pub struct Abandoned {
    /// State of the candidate when it was abandoned.
    pub state: CandidateState,
    /// The device on which it failed most.
    pub dev_id: DevId,
}

impl Applications {
    /// Adds to the counts of a candidate, and abandons it if it fails too much by `now`: its version then says so.
    /// Counts of a candidate that has ended are dropped.
    pub async fn add_counts(&self, app_id: &AppId, more: &Counts, now: Timestamp) -> Result<Option<Abandoned>, Error> {
        let added = store::retry(SET_ATTEMPTS_MAX, || self.try_add_counts(app_id, more, now)).await?;
        added.ok_or_else(|| conflict(app_id))
    }

    async fn try_add_counts(
        &self,
        app_id: &AppId,
        more: &Counts,
        now: Timestamp,
    ) -> Result<Option<Option<Abandoned>>, Error> {
        let (entry, mut summary, stored) = match self.with_counts(app_id).await {
            Err(Error::NotFound { .. }) => return Ok(Some(None)),
            found => found?,
        };
        let Some(candidate) = summary.candidate.take_if(|candidate| candidate.version == more.version) else {
            return Ok(Some(None));
        };
        let mut counts = read_counts(stored.as_ref(), candidate.version)?;
        counts.add(more);
        let key = store_keys::candidate_counts(app_id)?;
        let batch = Batch::new().expect(entry.key, entry.version).expect_entry(&key, stored.as_ref());
        let abandoned = match counts.worst_device().cloned() {
            Some(dev_id) if self.is_to_be_abandoned(app_id, &candidate, &counts).await? => Some(dev_id),
            _ => None,
        };
        let batch = match abandoned {
            Some(_) => {
                let abandonment = Abandonment {
                    time: now,
                    margin: candidate.trial.margin,
                    results: counts.candidate,
                    live: summary.version,
                    live_results: counts.live,
                };
                let batch = self.put_summary(batch, &summary)?.delete(key);
                self.stored(app_id).await?.note_abandonment(batch, candidate.version, abandonment)?
            }
            None => batch.put(key, serde_json::to_vec(&counts)?),
        };
        let state = CandidateState { candidate, live: summary.version, counts };
        let abandoned = abandoned.map(|dev_id| Abandoned { state, dev_id });
        Ok((self.store.commit(batch).await? == Commit::Done).then_some(abandoned))
    }

    /// Returns true if a candidate fails too much, and not because of a single device among several that have it.
    async fn is_to_be_abandoned(&self, app_id: &AppId, candidate: &Candidate, counts: &Counts) -> Result<bool, Error> {
        let Candidate { trial, .. } = candidate;
        Ok(counts.is_worse(trial)
            && (counts.is_worse_without_one_device(trial) || !self.has_several(app_id, candidate).await?))
    }

    /// Returns true if more than one device has a candidate; assumed beyond `DEVICES_READ_MAX` devices.
    async fn has_several(&self, app_id: &AppId, candidate: &Candidate) -> Result<bool, Error> {
        let (prefix, mut last, mut read, mut found) = (store_keys::devices(app_id)?, None, 0, 0);
        while read < DEVICES_READ_MAX {
            let devices = self.store.list(&prefix, last.as_ref(), DEVICES_READ).await?;
            for device in &devices {
                found += usize::from(candidate.is_of(app_id, &store_keys::dev_id_of(&device.key)?));
            }
            read += devices.len();
            last = devices.into_iter().last().map(|device| device.key);
            if found > 1 || last.is_none() {
                return Ok(found > 1);
            }
        }
        Ok(true)
    }
}
