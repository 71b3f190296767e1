//! The applications that stand out: by the share of uplinks that fail, and by the time that uplinks take.

use std::{cmp::Ordering, collections::HashMap};

use server::ledger::Owner;
use types::{AppId, Timestamp};

use super::{
    failure::LastFailure,
    sums::{ApplicationSums, HalfHour, RunSums},
};

/// Number of uplinks in the window without which an application is not compared: shares and means of fewer say little.
const UPLINKS_MIN: u64 = 10;
/// Maximum number of applications of one known user in each list, so that nobody fills it alone.
const ROWS_OF_USER_MAX: usize = 3;

/// The applications that stand out lately.
#[derive(Debug)]
pub struct WorstRuns {
    /// The beginning of the time of recent uplinks: half an hour to an hour ago, or the start of the process.
    pub since: Timestamp,
    /// Number of recent uplinks that each of these applications has at least.
    pub uplinks_min: u64,
    /// Number of recent uplinks of applications that are not counted, because there are too many.
    pub uplinks_left_out: u64,
    /// Those with failures, the greatest share first, and of equal shares the greatest number.
    pub failing: Vec<ApplicationRuns>,
    /// Those whose uplinks take time in a sandbox, the greatest mean first.
    ///
    /// Not by fuel: time also shows what fuel does not count.
    pub slowest: Vec<ApplicationRuns>,
}

/// The uplinks of one application.
#[derive(Debug)]
pub struct ApplicationRuns {
    /// The application.
    pub app_id: AppId,
    /// Its recent uplinks.
    pub recent: RunSums,
    /// All since the process started, or since it was counted again, if others had taken its place.
    pub total: RunSums,
    /// Its last failure, recent or not.
    pub last_failure: Option<LastFailure>,
}

/// An application that is compared with others.
struct Row<'a> {
    app_id: &'a AppId,
    user: Option<&'a Owner>,
    sums: &'a ApplicationSums,
    recent: RunSums,
}

impl WorstRuns {
    pub(super) fn of<'a>(
        sums: impl Iterator<Item = (&'a AppId, Option<&'a Owner>, &'a ApplicationSums)>,
        half_hour: HalfHour,
        rows_max: usize,
        since: Timestamp,
    ) -> Self {
        let rows = sums.map(|(app_id, user, sums)| Row { app_id, user, sums, recent: sums.recent(half_hour) });
        let rows: Vec<_> = rows.filter(|row| row.recent.uplinks >= UPLINKS_MIN).collect();
        let failing = rows.iter().filter(|row| row.recent.failures() > 0).collect();
        let slowest = rows.iter().filter(|row| !row.recent.elapsed.is_zero()).collect();
        Self {
            since,
            uplinks_min: UPLINKS_MIN,
            uplinks_left_out: 0,
            failing: first(failing, rows_max, by_failures),
            slowest: first(slowest, rows_max, by_time),
        }
    }
}

impl Row<'_> {
    fn copied(&self) -> ApplicationRuns {
        let Self { app_id, sums, recent, .. } = *self;
        ApplicationRuns { app_id: app_id.clone(), recent, total: sums.total(), last_failure: sums.last_failure() }
    }
}

/// The first of these rows, without those of which their user has too many. Only they are sorted, because uplinks wait
/// meanwhile.
fn first(mut rows: Vec<&Row<'_>>, rows_max: usize, order: fn(&RunSums, &RunSums) -> Ordering) -> Vec<ApplicationRuns> {
    let compare =
        |one: &&Row<'_>, other: &&Row<'_>| order(&one.recent, &other.recent).then_with(|| one.app_id.cmp(other.app_id));
    let (mut shown, mut of_users) = (Vec::new(), HashMap::new());
    // Once more for each time that users had too many: then all others of theirs are gone.
    while shown.len() < rows_max && !rows.is_empty() {
        let next = rows.len().min(rows_max - shown.len());
        if next < rows.len() {
            rows.select_nth_unstable_by(next, compare);
        }
        rows[..next].sort_unstable_by(compare);
        for row in rows.drain(..next) {
            let Some(user) = row.user else {
                shown.push(row.copied());
                continue;
            };
            let of_user = of_users.entry(user).or_insert(0);
            if *of_user < ROWS_OF_USER_MAX {
                *of_user += 1;
                shown.push(row.copied());
            }
        }
        if shown.len() < rows_max {
            rows.retain(|row| row.user.is_none_or(|user| of_users.get(user) != Some(&ROWS_OF_USER_MAX)));
        }
    }
    shown
}

fn by_failures(one: &RunSums, other: &RunSums) -> Ordering {
    // Fractions with the same denominator, without dividing.
    let part = |sums: &RunSums, of: &RunSums| u128::from(sums.failures()) * u128::from(of.uplinks);
    part(other, one).cmp(&part(one, other)).then(other.failures().cmp(&one.failures()))
}

fn by_time(one: &RunSums, other: &RunSums) -> Ordering {
    other.mean_elapsed().cmp(&one.mean_elapsed()).then(other.mean_fuel().cmp(&one.mean_fuel()))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{
        status::cost::Cost,
        uplink::runs::{failure::RunFailure, sums::Converted},
    };

    /// An application with uplinks of which some fail, all of which take so many microseconds.
    fn application(name: &str, (uplinks, failed): (u64, u64), micros: u64) -> (AppId, ApplicationSums) {
        let mut sums = ApplicationSums::default();
        for number in 0..uplinks {
            let failure = (number < failed).then_some(RunFailure::Invalid);
            let cost = Cost { fuel: 5, elapsed: Duration::from_micros(micros) };
            sums.count(Converted { failure, cost }, Timestamp::default());
        }
        (name.parse().unwrap(), sums)
    }

    /// The names of both lists.
    fn worst(applications: &[(AppId, ApplicationSums)], rows_max: usize) -> [Vec<&str>; 2] {
        worst_of(applications, rows_max, |_| None)
    }

    /// The same, if some applications belong to these users.
    fn worst_of<'a>(
        applications: &'a [(AppId, ApplicationSums)],
        rows_max: usize,
        user_of: impl Fn(&str) -> Option<&'a Owner>,
    ) -> [Vec<&'a str>; 2] {
        let sums = applications.iter().map(|(app_id, sums)| (app_id, user_of(app_id.as_str()), sums));
        let worst = WorstRuns::of(sums, HalfHour::default(), rows_max, Timestamp::default());
        [worst.failing, worst.slowest].map(|rows| {
            let find = |row: ApplicationRuns| applications.iter().find(|(app_id, _)| *app_id == row.app_id);
            rows.into_iter().filter_map(find).map(|(app_id, _)| app_id.as_str()).collect()
        })
    }

    // Conformance: Failures, fuel and time of functions are counted by application
    #[test]
    fn the_greatest_share_of_failures_comes_first_and_then_the_greatest_number() {
        let applications = [
            application("half", (20, 10), 0),
            application("all-of-few", (10, 10), 0),
            application("all-of-many", (30, 30), 0),
            application("many-of-most", (1000, 400), 0),
            application("good", (1000, 0), 0),
            application("hardly-used", (9, 9), 0),
        ];
        let [failing, slowest] = worst(&applications, 20);
        assert_eq!(failing, ["all-of-many", "all-of-few", "half", "many-of-most"]);
        assert_eq!(slowest, [""; 0], "nothing ran");
        assert_eq!(worst(&applications, 2)[0], ["all-of-many", "all-of-few"]);
        assert_eq!(worst(&applications, 0)[0], [""; 0]);
    }

    // Conformance: Failures, fuel and time of functions are counted by application
    #[test]
    fn the_greatest_mean_time_comes_first() {
        let applications = [
            application("often", (1000, 0), 10),
            application("slow", (10, 0), 500),
            application("as-slow", (10, 0), 500),
            application("once", (1, 0), 9000),
        ];
        let [failing, slowest] = worst(&applications, 20);
        assert_eq!(slowest, ["as-slow", "slow", "often"]);
        assert_eq!(failing, [""; 0]);
        assert_eq!(worst(&applications, 1)[1], ["as-slow"]);
    }

    // Conformance: Failures, fuel and time of functions are counted by application
    #[test]
    fn each_list_has_three_applications_of_one_user_at_most() {
        let names: Vec<_> = ["greedy", "other", "unknown"]
            .into_iter()
            .flat_map(|user| (0..30).map(move |number| format!("{user}-{number:02}")))
            .collect();
        let micros = |name: &str| if name.starts_with("unknown") { 1 } else { 2 };
        let applications: Vec<_> =
            names.iter().map(|name| application(name, (20, micros(name)), micros(name))).collect();
        let users = ["greedy", "other"].map(|user| Owner::User(user.into()));
        let user_of = |name: &str| match name.split_once('-') {
            Some(("greedy", _)) => Some(&users[0]),
            Some(("other", _)) => Some(&users[1]),
            _ => None,
        };
        let of_users = ["greedy-00", "greedy-01", "greedy-02", "other-00", "other-01", "other-02"];
        for list in worst_of(&applications, 20, user_of) {
            assert_eq!(list.len(), 20);
            assert_eq!((&list[..6], list[6], list[19]), (&of_users[..], "unknown-00", "unknown-13"));
        }
        for list in worst_of(&applications, 4, user_of) {
            assert_eq!(list, of_users[..4]);
        }
    }
}
