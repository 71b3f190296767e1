//! Has a bucket show what this directory has: files are put there, and those that are gone here are deleted there.

use std::{collections::BTreeSet, time::Duration};

use metrics::{counter, describe_counter};
use server::status::ErrorChain;

use super::{INTERVAL, Keeper, LOOKS, Signal, own_files::OwnFiles};
use crate::{
    Error,
    bucket::{Bucket, listing::Listing},
    record::moment,
};

/// The pauses after failures, which double.
const PAUSE_MIN: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(60);
/// Days that others keep the files of a handler longer than that itself: it may be gone for good.
const DAYS_MORE: u32 = 1;

const FAILURES: &str = "airlock_history_upload_failures_total";

impl Keeper {
    /// Works until it is closed.
    pub(crate) fn run_uploads(&self, bucket: &Bucket) {
        describe_counter!(FAILURES, "Attempts to bring files of history into the bucket that failed");
        counter!(FAILURES).increment(0);
        let mut failures = 0;
        loop {
            let result = self.upload(bucket);
            if let Err(error) = &result {
                counter!(FAILURES).increment(1);
                if failures == 0 {
                    tracing::error!(error = %ErrorChain(error), "files of history wait to be put into the bucket");
                }
            }
            failures = if result.is_err() { failures + 1 } else { 0 };
            let goes_on = match result {
                Ok(true) => self.wait_for_files(INTERVAL * LOOKS, true),
                _ => self.wait_for_files(pause(failures), false),
            };
            if !goes_on {
                return;
            }
        }
    }

    /// Has it upload soon.
    pub(super) fn wake_uploads(&self) {
        self.signal.lock().is_upload_wanted = true;
        self.changed.notify_all();
    }

    /// Waits, if so wanted only until there are files. False once it is closed.
    fn wait_for_files(&self, time: Duration, ends_early: bool) -> bool {
        let is_idle = |signal: &mut Signal| !(signal.is_closed || ends_early && signal.is_upload_wanted);
        let mut signal = self.signal.lock();
        self.changed.wait_while_for(&mut signal, is_idle, time);
        signal.is_upload_wanted = false;
        !signal.is_closed
    }

    /// Brings the bucket up to date with the files here. Returns false if that is to be done again soon: another process
    /// of the directory is about it, or files were merged meanwhile.
    pub(crate) fn upload(&self, bucket: &Bucket) -> Result<bool, Error> {
        let Some(lock) = bucket.lock()? else { return Ok(false) };
        let listing = bucket.list()?;
        self.share_removals(bucket, &listing)?;
        let mut own = self.own_files()?;
        let mut ledger = bucket.ledger(&lock)?;
        // Before anything is there, so that a process that is killed leaves nothing that is not deleted later.
        ledger.set(ledger.files.iter().chain(own.files.keys()).cloned().collect())?;
        own.put_missing(bucket, &listing.files_of(&bucket.handler))?;
        // Last, because what they had may be in files that were missing.
        let (gone, kept): (BTreeSet<_>, BTreeSet<_>) = ledger.files.iter().cloned().partition(|file| own.is_gone(file));
        bucket.delete_files(&gone)?;
        ledger.set(kept)?;
        self.delete_abandoned(bucket, &listing)?;
        bucket.forget_all_but(&listing)?;
        own.into_result()
    }

    /// The files of this directory. Nobody merges any meanwhile: without the new file, the old ones in the bucket would be
    /// deleted too early.
    fn own_files(&self) -> Result<OwnFiles, Error> {
        let _change = self.disk.change()?;
        OwnFiles::list(self.disk.root())
    }

    /// Reads the removals of others, deletes their records here, and writes the removals from here into the bucket.
    fn share_removals(&self, bucket: &Bucket, listing: &Listing) -> Result<(), Error> {
        let oldest = moment::days_before(self.now(), self.removal_days());
        let (here, mut is_new) = (self.disk.removals()?, false);
        for removal in &listing.removed {
            if removal.last.millis < oldest {
                bucket.delete_removed(removal)?;
            } else if !here.know(removal) {
                let change = self.disk.change()?;
                // A later one may have been made here meanwhile.
                if !self.disk.removals()?.know(removal) {
                    self.begin_removal(&change, removal, removal)?;
                    is_new = true;
                }
            }
        }
        if is_new && let Err(error) = self.finish_removals(&mut self.state.lock()) {
            // They are hidden, and the next look at all files tries it again.
            tracing::error!(error = %ErrorChain(&error), "what another handler has removed is not deleted here yet");
        }
        let untold = here.known.iter().filter(|removal| !listing.removed.contains(removal));
        untold.filter(|removal| removal.last.millis >= oldest).try_for_each(|removal| bucket.put_removed(removal))
    }

    /// Deletes files so old that their own handler would have deleted them, if it still ran.
    fn delete_abandoned(&self, bucket: &Bucket, listing: &Listing) -> Result<(), Error> {
        if !self.state.lock().steadiness.is_steady() {
            return Ok(());
        }
        let now = self.now();
        let is_old = |app_id: &str, last: u64| {
            let days = app_id.parse().map(|app_id| self.bounds.days_max(&app_id));
            days.is_ok_and(|days| last < moment::days_before(now, days.saturating_add(DAYS_MORE)))
        };
        let mut old = listing.objects.iter().filter(|object| {
            let name = object.app_id().zip(object.name());
            name.is_some_and(|(app_id, name)| is_old(app_id, name.last))
        });
        old.try_for_each(|object| bucket.delete_object(object))
    }
}

fn pause(failures: u32) -> Duration {
    (PAUSE_MIN * (1 << failures.saturating_sub(1).min(6))).min(PAUSE_MAX)
}
