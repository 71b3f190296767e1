//! The text for people about a version that was abandoned.

use std::fmt;

use crate::version::{Abandonment, Results};

/// The reason, without a period.
impl fmt::Display for Abandonment {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Results { uplinks, failed, .. } = self.results.unwrap_or_default();
        let Results { uplinks: live_uplinks, failed: live_failed, .. } = self.live_results.unwrap_or_default();
        write!(
            out,
            "it failed on {failed} of {uplinks} uplinks, and version {} on {live_failed} of {live_uplinks}, \
             a difference of more than {} percentage points",
            self.live_version, self.margin_percent
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_has_the_failures_of_both_versions_and_the_margin() {
        let results = |uplinks, failed| Some(Results { uplinks, failed, mean_fuel: 7 });
        let (results, live_results) = (results(20, 8), results(30, 1));
        let abandonment = Abandonment { time: 1, margin_percent: 2.5, results, live_version: 3, live_results };
        assert_eq!(
            abandonment.to_string(),
            "it failed on 8 of 20 uplinks, and version 3 on 1 of 30, a difference of more than 2.5 percentage points"
        );
    }
}
