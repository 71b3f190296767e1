//! Counts of this process for candidates and their live versions. Others store them, and judge by them.

use std::collections::HashMap;

use parking_lot::Mutex;
use tokio::sync::Notify;
use types::{AppId, DevId};

use crate::registry::application::{ApplicationSummary, Counts};

/// Maximum number of applications with a candidate that are counted at the same time. Others are not counted.
const APPLICATIONS_MAX: usize = 10_000;

/// The counts of this process that are not stored yet.
#[derive(Debug, Default)]
pub struct Trials {
    pending: Mutex<HashMap<AppId, Counts>>,
    counted: Notify,
}

impl Trials {
    /// Counts an uplink of an application as its device has it, if that has a candidate.
    pub(super) fn count(&self, application: &ApplicationSummary, dev_id: &DevId, has_failed: bool, fuel: u64) {
        let Some(candidate) = &application.candidate else { return };
        let mut counts = Counts::new(candidate.version);
        match application.is_candidate {
            true => counts.count_candidate(dev_id, has_failed, fuel),
            false => counts.live.count(has_failed, fuel),
        }
        self.put(&application.app_id, &counts);
    }

    /// Adds counts. Those of an earlier candidate are dropped.
    pub(crate) fn put(&self, app_id: &AppId, counts: &Counts) {
        let mut pending = self.pending.lock();
        if pending.contains_key(app_id) || pending.len() < APPLICATIONS_MAX {
            let known = pending.entry(app_id.clone()).or_default();
            if known.version < counts.version {
                *known = Counts::new(counts.version);
            }
            if known.version == counts.version {
                known.add(counts);
            }
        }
        drop(pending);
        self.counted.notify_one();
    }

    /// Waits until something is counted, or returns at once if something was since the last call.
    pub(crate) async fn counted(&self) {
        self.counted.notified().await;
    }

    /// Adds what is not stored yet to the counts of an application's candidate.
    pub(crate) fn add_to(&self, app_id: &AppId, counts: &mut Counts) {
        if let Some(more) = self.pending.lock().get(app_id).filter(|more| more.version == counts.version) {
            counts.add(more);
        }
    }

    /// Takes what is counted of all applications.
    pub(crate) fn take_all(&self) -> HashMap<AppId, Counts> {
        std::mem::take(&mut self.pending.lock())
    }
}
