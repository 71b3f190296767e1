//! The cost of examples.

use std::fmt;

use serde::Serialize;

/// The cost of examples, except those that are meant to exceed a limit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Cost {
    /// Median time in the sandbox, in microseconds.
    pub microseconds_median: f64,
    /// Median fuel.
    pub fuel_median: u64,
    /// Fuel of the most expensive example.
    pub fuel_max: u64,
}

/// The costs of single examples: a median needs all of them.
#[derive(Default)]
pub(crate) struct Costs {
    microseconds: Vec<f64>,
    fuel: Vec<u64>,
}

impl Costs {
    pub(crate) fn add(&mut self, microseconds: f64, fuel: u64) {
        self.microseconds.push(microseconds);
        self.fuel.push(fuel);
    }

    pub(crate) fn cost(mut self) -> Option<Cost> {
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
