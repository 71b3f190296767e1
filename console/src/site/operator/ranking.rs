//! The applications that stand out by their payload functions, as rows of two tables.

use std::collections::BTreeSet;

use crate::{
    site::page::{Time, grouped},
    status::{ApplicationFunctions, FunctionRanking, FunctionSums},
};

/// Both tables.
pub(super) struct Ranking {
    pub(super) since: Time,
    pub(super) uplinks_min: u64,
    pub(super) uplinks_left_out: u64,
    pub(super) failing: Vec<Row>,
    pub(super) slowest: Vec<Row>,
}

/// An application.
pub(super) struct Row {
    pub(super) app_id: String,
    /// True if the viewer has rights to it.
    pub(super) is_own: bool,
    pub(super) recent: FunctionSums,
    pub(super) total: FunctionSums,
    pub(super) last: Option<Last>,
}

/// The last failure.
pub(super) struct Last {
    pub(super) time: Time,
    pub(super) kind: &'static str,
}

impl Ranking {
    pub(super) fn of(ranking: FunctionRanking, own: &BTreeSet<String>) -> Self {
        let FunctionRanking { since, uplinks_min, uplinks_left_out, failing, slowest } = ranking;
        let [failing, slowest] =
            [failing, slowest].map(|rows| rows.into_iter().map(|application| Row::of(application, own)).collect());
        Self { since: Time(since.as_nanos()), uplinks_min, uplinks_left_out, failing, slowest }
    }
}

impl Row {
    fn of(application: ApplicationFunctions, own: &BTreeSet<String>) -> Self {
        let ApplicationFunctions { app_id, recent, total, last_failure } = application;
        let last = last_failure.map(|failure| Last { time: Time(failure.time.as_nanos()), kind: failure.kind });
        Self { is_own: own.contains(&app_id), app_id, recent, total, last }
    }

    /// The percentage of recent uplinks that failed or were refused.
    pub(super) fn percent(&self) -> String {
        let FunctionSums { uplinks, failed, invalid, .. } = self.recent;
        format!("{:.1}", 100.0 * failed.saturating_add(invalid) as f64 / uplinks.max(1) as f64)
    }

    pub(super) fn mean_fuel(&self) -> String {
        grouped(self.recent.mean_fuel)
    }

    pub(super) fn most_fuel(&self) -> String {
        grouped(self.recent.fuel_max)
    }

    /// Number of all uplinks that failed or were refused.
    pub(super) fn all_failures(&self) -> u64 {
        self.total.failed.saturating_add(self.total.invalid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(uplinks: u64, failed: u64, invalid: u64) -> Row {
        let recent = FunctionSums { uplinks, failed, invalid, ..FunctionSums::default() };
        let application = ApplicationFunctions { app_id: "app".to_owned(), recent, ..ApplicationFunctions::default() };
        Row::of(application, &BTreeSet::from(["app".to_owned()]))
    }

    #[test]
    fn a_share_has_one_decimal() {
        let shares = [row(3, 1, 1), row(1000, 1, 0), row(10, 10, 0), row(0, 0, 0)].map(|row| row.percent());
        assert_eq!(shares, ["66.7", "0.1", "100.0", "0.0"]);
    }

    #[test]
    fn only_applications_of_the_viewer_are_links() {
        assert!(row(1, 0, 0).is_own);
        assert!(!Row::of(ApplicationFunctions::default(), &BTreeSet::new()).is_own);
    }
}
