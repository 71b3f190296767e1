//! Uplinks by application and what their functions made of them: what fails and what is slow, for operators. Counted
//! in this process, and not stored.

mod failure;
mod sums;
mod table;
mod worst;

use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use server::ledger::{Owner, Owners};
use types::{AppId, Clock, Timestamp};

pub use self::{
    failure::{LastFailure, RunFailure},
    sums::RunSums,
    worst::{ApplicationRuns, WorstRuns},
};
use self::{
    sums::{Converted, HalfHour},
    table::Table,
};
use crate::status::cost::Cost;

/// The uplinks that this process has converted, by application.
pub struct RunCounters {
    table: Mutex<Table>,
    owners: Option<Arc<Owners>>,
    clock: Arc<dyn Clock>,
    started: Timestamp,
}

impl RunCounters {
    /// Counts from now on.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        let started = clock.now();
        Self { table: Mutex::new(Table::new()), owners: None, clock, started }
    }

    /// Keeps one user's applications from taking the places of all others. Without, nobody's user is known.
    pub fn with_owners(self, owners: Arc<Owners>) -> Self {
        Self { owners: Some(owners), ..self }
    }

    /// The applications that stand out, at most `rows_max` by their failures, and as many by their time.
    pub fn worst(&self, rows_max: usize) -> WorstRuns {
        let table = self.table();
        let now = self.clock.now();
        let half_hour = HalfHour::of(now);
        // The start lies in the future after the clock was set back.
        let since = half_hour.window_start().max(self.started.min(now));
        let worst = WorstRuns::of(table.sums(), half_hour, rows_max, since);
        WorstRuns { uplinks_left_out: table.uplinks_left_out(half_hour), ..worst }
    }

    /// Counts an uplink that was converted, or could not be.
    pub(super) fn count(&self, app_id: &AppId, failure: Option<RunFailure>, cost: Cost) {
        let uplink = Converted { failure, cost };
        let mut table = self.table();
        // Asked only now, so that times never go back from one uplink to the next.
        let is_counted = table.count(app_id, uplink, self.clock.now());
        drop(table);
        if !is_counted {
            // This takes a lock of its own, and so not that of the table.
            let user = self.user_of(app_id);
            let mut table = self.table();
            table.count_for(user, app_id, uplink, self.clock.now());
        }
    }

    /// The user to whom an application belongs, if that is known.
    fn user_of(&self, app_id: &AppId) -> Option<Owner> {
        let owner = self.owners.as_ref()?.last(app_id);
        matches!(owner, Owner::User(_)).then_some(owner)
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use async_trait::async_trait;
    use runtime::FailureKind;
    use server::ledger::OwnerSource;
    use testing::ManualClock;
    use types::UserId;

    use super::{table::APPLICATIONS_MAX, *};

    const COST: Cost = Cost { fuel: 100, elapsed: Duration::from_micros(10) };

    /// Applications whose ids begin alike belong to one user.
    struct ByFirstLetter;

    #[async_trait]
    impl OwnerSource for ByFirstLetter {
        async fn owner_of(&self, app_id: &AppId) -> Option<UserId> {
            Some(UserId::from_bytes([app_id.as_str().as_bytes()[0]; 12]))
        }
    }

    fn id(app_id: &str) -> AppId {
        app_id.parse().unwrap()
    }

    fn count(runs: &RunCounters, app_id: &AppId, uplinks: u64) {
        (0..uplinks).for_each(|_| runs.count(app_id, None, COST));
    }

    fn shown(runs: &RunCounters) -> Vec<(String, u64)> {
        let slowest = runs.worst(APPLICATIONS_MAX).slowest.into_iter();
        slowest.map(|application| (application.app_id.to_string(), application.recent.uplinks)).collect()
    }

    /// The applications that are counted.
    fn counted(runs: &RunCounters) -> Vec<(String, u64)> {
        let table = runs.table();
        table.sums().map(|(app_id, _, sums)| (app_id.to_string(), sums.total().uplinks)).collect()
    }

    // Conformance: Failures, fuel and time of functions are counted by application
    #[test]
    fn an_application_is_counted_for_up_to_an_hour() {
        let clock = ManualClock::at(Timestamp::from_millis(7 * 1_800_000));
        let runs = RunCounters::new(clock.clone());
        count(&runs, &id("app"), 10);
        clock.advance(Duration::from_secs(1799));
        assert_eq!(shown(&runs), [("app".to_owned(), 10)]);
        clock.advance(Duration::from_secs(1));
        count(&runs, &id("app"), 2);
        assert_eq!(shown(&runs), [("app".to_owned(), 12)]);
        assert_eq!(runs.worst(1).since, Timestamp::from_millis(7 * 1_800_000));
        clock.advance(Duration::from_secs(1800));
        assert!(shown(&runs).is_empty(), "two are too few");
        count(&runs, &id("app"), 9);
        assert_eq!(shown(&runs), [("app".to_owned(), 11)]);
        let worst = runs.worst(1);
        assert_eq!((worst.slowest[0].total.uplinks, worst.since), (21, Timestamp::from_millis(8 * 1_800_000)));
        clock.advance(Duration::from_secs(7200));
        assert!(shown(&runs).is_empty());
    }

    #[test]
    fn the_window_never_begins_in_the_future() {
        let clock = ManualClock::at(Timestamp::from_millis(7 * 1_800_000));
        let runs = RunCounters::new(clock.clone());
        clock.set_back(Duration::from_secs(4000));
        count(&runs, &id("app"), 10);
        assert_eq!((shown(&runs), runs.worst(1).since), (vec![("app".to_owned(), 10)], clock.now()));
        clock.advance(Duration::from_secs(7200));
        assert_eq!(runs.worst(1).since, Timestamp::from_millis(7 * 1_800_000));
    }

    // Conformance: Failures, fuel and time of functions are counted by application
    #[test]
    fn the_last_failure_has_its_time_and_kind() {
        let clock = ManualClock::new();
        let runs = RunCounters::new(clock.clone());
        count(&runs, &id("app"), 8);
        runs.count(&id("app"), Some(RunFailure::Invalid), COST);
        clock.advance(Duration::from_secs(1));
        runs.count(&id("app"), Some(RunFailure::Function(FailureKind::Thrown)), COST);
        let failed = clock.now();
        clock.advance(Duration::from_secs(1));
        count(&runs, &id("app"), 1);
        let worst = runs.worst(20);
        let [app] = &*worst.failing else { panic!("one application fails") };
        let expected = LastFailure { time: failed, failure: RunFailure::Function(FailureKind::Thrown) };
        assert_eq!(app.last_failure, Some(expected));
        assert_eq!((app.total.uplinks, app.total.failed, app.total.invalid), (11, 1, 1));
    }

    // Conformance: Failures, fuel and time of functions are counted by application
    #[tokio::test]
    async fn a_user_with_many_applications_only_crowds_out_their_own() {
        let clock = ManualClock::new();
        let owners = Arc::new(Owners::new(Arc::new(ByFirstLetter), clock.clone()));
        let runs = RunCounters::new(clock.clone()).with_owners(owners.clone());
        let add = async |app_id: String| {
            owners.of(&id(&app_id)).await;
            count(&runs, &id(&app_id), 10);
        };
        for number in 0..3 {
            add(format!("neighbour-{number}")).await;
        }
        for number in 0..APPLICATIONS_MAX + 10 {
            add(format!("greedy-{number}")).await;
        }
        add("late".to_owned()).await;
        let counted = counted(&runs);
        assert_eq!(counted.len(), APPLICATIONS_MAX);
        let has = |app_id: &str| counted.iter().any(|counted| *counted == (app_id.to_owned(), 10));
        assert!((0..3).all(|number| has(&format!("neighbour-{number}"))), "a neighbour is gone");
        assert!(has("late") && !has("greedy-0") && has("greedy-1"), "the least recently used makes room");
        assert!(has("greedy-4092") && !has("greedy-4093"), "there was no place for the last 13");
        assert_eq!(runs.worst(1).uplinks_left_out, 14 * 10);
    }

    // Conformance: Failures, fuel and time of functions are counted by application
    #[tokio::test]
    async fn an_application_whose_user_becomes_known_keeps_its_counts_and_its_place() {
        let clock = ManualClock::at(Timestamp::from_millis(7 * 1_800_000));
        let owners = Arc::new(Owners::new(Arc::new(ByFirstLetter), clock.clone()));
        let runs = RunCounters::new(clock.clone()).with_owners(owners.clone());
        count(&runs, &id("first"), 10);
        owners.of(&id("first")).await;
        clock.advance(Duration::from_secs(1800));
        count(&runs, &id("first"), 1);
        // Nobody is known to have these, so they share what is left.
        (0..APPLICATIONS_MAX).for_each(|number| count(&runs, &id(&format!("new-{number}")), 10));
        owners.of(&id("second")).await;
        count(&runs, &id("second"), 10);
        let counted = counted(&runs);
        assert!(counted.contains(&("first".to_owned(), 11)), "it is gone");
        assert!(counted.contains(&("second".to_owned(), 10)), "there is no room");
        assert!(!counted.iter().any(|(app_id, _)| app_id == "new-0"), "another one is not");
    }
}
