//! The applications that stand out by their payload functions, as the handler has counted them.

use std::time::Duration;

use console::{ApplicationFunctions, FunctionFailure, FunctionRanking, FunctionSums};
use handler::uplink::{ApplicationRuns, RunCounters, RunSums, WorstRuns};

/// Maximum number of applications in each list.
const ROWS_MAX: usize = 20;

pub(super) fn ranking(runs: &RunCounters) -> FunctionRanking {
    let WorstRuns { since, uplinks_min, uplinks_left_out, failing, slowest } = runs.worst(ROWS_MAX);
    let [failing, slowest] = [failing, slowest].map(|rows| rows.into_iter().map(functions).collect());
    FunctionRanking { since, uplinks_min, uplinks_left_out, failing, slowest }
}

fn functions(application: ApplicationRuns) -> ApplicationFunctions {
    let ApplicationRuns { app_id, recent, total, last_failure } = application;
    ApplicationFunctions {
        app_id: app_id.into(),
        recent: sums(&recent),
        total: sums(&total),
        last_failure: last_failure.map(|last| FunctionFailure { time: last.time, kind: last.failure.name() }),
    }
}

fn sums(sums: &RunSums) -> FunctionSums {
    FunctionSums {
        uplinks: sums.uplinks,
        failed: sums.failed,
        invalid: sums.invalid,
        mean_fuel: sums.mean_fuel(),
        fuel_max: sums.fuel_max,
        mean_time_us: microseconds(sums.mean_elapsed()),
        time_us_max: microseconds(sums.elapsed_max),
    }
}

fn microseconds(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}
