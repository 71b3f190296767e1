//! What examples cost: time on this machine, fuel on every machine.

use std::fmt;

use serde::Serialize;

use super::report::ExampleReport;

/// What some examples cost, those aside that try a limit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Cost {
    /// Time in the sandbox, median, in microseconds.
    pub microseconds_median: f64,
    /// Fuel, median.
    pub fuel_median: u64,
    /// Fuel of the most expensive one.
    pub fuel_max: u64,
}

impl Cost {
    /// What `examples` cost; none when nothing was run.
    pub(super) fn of<'a>(examples: impl IntoIterator<Item = &'a ExampleReport>) -> Option<Self> {
        let measured = examples.into_iter().filter(|example| example.is_measured());
        let (mut microseconds, mut fuel): (Vec<_>, Vec<_>) =
            measured.map(|example| (example.microseconds, example.fuel)).unzip();
        microseconds.sort_by(f64::total_cmp);
        fuel.sort_unstable();
        let middle = fuel.len() / 2;
        Some(Self {
            microseconds_median: *microseconds.get(middle)?,
            fuel_median: *fuel.get(middle)?,
            fuel_max: *fuel.last()?,
        })
    }
}

impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { microseconds_median, fuel_median, fuel_max } = self;
        write!(f, "median {microseconds_median:.0} µs, fuel {fuel_median}, at most {fuel_max}")
    }
}
