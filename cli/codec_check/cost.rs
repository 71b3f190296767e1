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

/// What examples cost, one by one: medians need all of them.
#[derive(Default)]
pub(super) struct Costs {
    microseconds: Vec<f64>,
    fuel: Vec<u64>,
}

impl Costs {
    /// Counts those of `examples` whose cost is typical.
    pub(super) fn add(&mut self, examples: &[ExampleReport]) {
        for example in examples.iter().filter(|example| example.is_measured()) {
            self.microseconds.push(example.microseconds);
            self.fuel.push(example.fuel);
        }
    }

    /// What they cost together; none when nothing was run.
    pub(super) fn cost(mut self) -> Option<Cost> {
        self.microseconds.sort_by(f64::total_cmp);
        self.fuel.sort_unstable();
        let middle = self.fuel.len() / 2;
        Some(Cost {
            microseconds_median: *self.microseconds.get(middle)?,
            fuel_median: *self.fuel.get(middle)?,
            fuel_max: *self.fuel.last()?,
        })
    }
}

impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { microseconds_median, fuel_median, fuel_max } = self;
        write!(f, "median {microseconds_median:.0} µs, fuel {fuel_median}, at most {fuel_max}")
    }
}
