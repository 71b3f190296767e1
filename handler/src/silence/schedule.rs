//! When each application is to be looked at next, so that one in which nothing happens costs next to nothing.

use std::{collections::HashMap, time::Duration};

use store::Version;
use types::{AppId, DevId, Timestamp};

/// Time after which an application is looked at in any case: another handler may have set an alarm and be gone, or have
/// deleted the application.
pub(super) const CHECK_INTERVAL: Duration = Duration::from_secs(600);
/// Maximum number of applications that are remembered, some 200 bytes each. Others are looked at in each pass.
const APPLICATIONS_MAX: usize = 1 << 18;

/// When applications are to be looked at.
#[derive(Default)]
pub(super) struct Schedule {
    looks: HashMap<AppId, LastLook>,
}

/// An application as it was when it was last looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LastLook {
    /// The version of its name then. Whoever sets another time changes it.
    pub(super) version: Version,
    /// When to look again.
    next: Timestamp,
    /// Until which device the alarms are set by the time of the application, while others follow.
    pub(super) last_set: Option<DevId>,
    /// The round in which it had its last turn; zero if it had none.
    round: u64,
}

impl LastLook {
    /// To look again in the next pass.
    pub(super) fn soon(version: Version, now: Timestamp, last_set: Option<DevId>) -> Self {
        Self { version, next: now, last_set, round: 0 }
    }

    /// To look again when the next alarm is due; `due` is none if there is no alarm.
    pub(super) fn when_due(version: Version, now: Timestamp, due: Option<Timestamp>) -> Self {
        let check = now.plus(CHECK_INTERVAL);
        Self { version, next: due.map_or(check, |due| due.min(check)), last_set: None, round: 0 }
    }

    /// The same, after a turn in this round.
    pub(super) fn after_turn(self, round: u64) -> Self {
        Self { round, ..self }
    }

    pub(super) fn had_turn(&self, round: u64) -> bool {
        self.round == round
    }

    /// Returns true if nothing is to be done yet.
    pub(super) fn is_idle(&self, now: Timestamp) -> bool {
        self.next > now
    }
}

impl Schedule {
    /// Remembers a look, if there is room.
    pub(super) fn note(&mut self, app_id: AppId, look: LastLook) {
        if self.looks.len() < APPLICATIONS_MAX || self.looks.contains_key(&app_id) {
            self.looks.insert(app_id, look);
        }
    }

    /// Remembers the looks of an older schedule, too, at applications of which this one has none.
    pub(super) fn keep(&mut self, older: Self) {
        for (app_id, look) in older.looks {
            if !self.looks.contains_key(&app_id) {
                self.note(app_id, look);
            }
        }
    }

    /// Takes the last look at an application, if its name has not changed since.
    pub(super) fn take(&mut self, app_id: &AppId, version: Version) -> Option<LastLook> {
        self.looks.remove(app_id).filter(|look| look.version == version)
    }
}
