//! Metrics of budgets. No label names an owner.

use std::collections::BTreeMap;

use metrics::{counter, describe_counter};

use super::Resource;
use crate::telemetry::{Exposition, MetricKind};

const REFUSED: &str = "airlock_budget_refused_total";

/// The use of a budget at one moment.
pub(super) struct Sample {
    pub(super) resource: Resource,
    pub(super) total: u64,
    pub(super) used: u64,
    /// The part of its share that the largest owner uses.
    pub(super) nearest: f64,
}

/// Registers the help text of the counter.
pub(super) fn describe() {
    describe_counter!(REFUSED, "What was refused because its owner has used up a budget, by resource");
}

/// Counts a refusal.
pub(super) fn refused(resource: Resource) {
    counter!(REFUSED, "resource" => resource.name()).increment(1);
}

/// The gauges of these budgets, in the text format of Prometheus; those of one resource together.
pub(super) fn render(samples: impl Iterator<Item = Sample>) -> String {
    let mut merged = BTreeMap::new();
    for sample in samples {
        let all = merged.entry(sample.resource).or_insert(Sample { total: 0, used: 0, nearest: 0.0, ..sample });
        all.total = all.total.saturating_add(sample.total);
        all.used = all.used.saturating_add(sample.used);
        all.nearest = all.nearest.max(sample.nearest);
    }
    let mut text = Exposition::default();
    let mut gauge = |name, help, value: &dyn Fn(&Sample) -> f64| {
        let samples = merged.values().map(|sample| ([("resource", sample.resource.name())], value(sample)));
        text.add((MetricKind::Gauge, name), help, samples);
    };
    gauge("airlock_budget_total", "What all owners may use together, by resource", &|sample| sample.total as f64);
    gauge("airlock_budget_used", "What all owners use together, by resource", &|sample| sample.used as f64);
    gauge(
        "airlock_budget_nearest",
        "The part of its share that the owner uses who is nearest to it, by resource",
        &|sample| sample.nearest,
    );
    text.into_text()
}
