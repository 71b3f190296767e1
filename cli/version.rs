//! The version of this program, and what it was built from.

use server::telemetry::Metrics;

use crate::output::{Output, Record};

const VERSION: &str = env!("CARGO_PKG_VERSION");
/// The commit, and its date; both unknown where the sources were built without their history.
const COMMIT: Option<&str> = option_env!("AIRLOCK_COMMIT");
const DATE: Option<&str> = option_env!("AIRLOCK_COMMIT_DATE");
/// The version with its commit and date, if they are known, as in `0.1.0 (b66d5d1a2c43 2026-11-24)`.
pub(crate) const LONG: &str = env!("AIRLOCK_VERSION");

/// Prints the version.
pub(crate) fn print(output: &Output) -> anyhow::Result<()> {
    if output.is_table() {
        return output.value("version", &format!("airlock {LONG}"));
    }
    output.record(Record::new([
        (("version", "Version"), VERSION.into()),
        (("commit", "Commit"), COMMIT.into()),
        (("date", "Date"), DATE.into()),
    ]))
}

/// Shows in the metrics what runs.
pub(crate) fn report(metrics: &Metrics) {
    metrics.report_build(VERSION, COMMIT.unwrap_or_default());
}

/// The version in the format of v2, which the handler announces.
pub(crate) fn announced() -> String {
    format!("{VERSION}-{} ({})", COMMIT.unwrap_or("unknown"), DATE.unwrap_or("unknown"))
}
