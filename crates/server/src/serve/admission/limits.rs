//! Limits on requests of a service that start, run and wait: of all, of an owner, and of a tenant.

use std::{thread, time::Duration};

use fair_queue::NextJob;

use super::super::ServeSettings;

/// Requests that may start at once, per processor.
const STARTING_PER_PROCESSOR: usize = 2;
/// Requests of one owner that may run, per processor, while others call, too. Each of them may be ready to go on at any
/// time, and whatever others do then comes after it.
const SHARED_RUNNING_PER_PROCESSOR: usize = 8;
/// Expected cost of those together, in fuel: fewer run if each takes a processor for long, but two may.
const SHARED_COST_PER_PROCESSOR: u64 = 8_000_000;
const SHARED_RUNNING_MIN: usize = 2;

#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) starting_max: usize,
    pub(super) running_max: usize,
    pub(super) tenant_running_max: usize,
    /// Those of one owner while several call.
    pub(super) shared_running_max: usize,
    pub(super) shared_cost_max: u64,
    pub(super) waiting_max: usize,
    pub(super) tenant_waiting_max: usize,
    pub(super) waiting_timeout: Duration,
}

impl Limits {
    pub(super) fn of(settings: &ServeSettings) -> Self {
        let processors = thread::available_parallelism().map_or(1, usize::from);
        Self {
            starting_max: processors * STARTING_PER_PROCESSOR,
            running_max: settings.running_max.max(1),
            tenant_running_max: settings.tenant_running_max.max(1),
            shared_running_max: processors * SHARED_RUNNING_PER_PROCESSOR,
            shared_cost_max: SHARED_COST_PER_PROCESSOR.saturating_mul(processors as u64),
            waiting_max: settings.waiting_max.max(1),
            tenant_waiting_max: settings.tenant_waiting_max.max(1),
            waiting_timeout: Duration::from_millis(settings.waiting_timeout_ms),
        }
    }

    pub(super) fn tenant_running_max(&self, weight: u64) -> usize {
        self.tenant_running_max.saturating_mul(usize::try_from(weight).unwrap_or(usize::MAX))
    }

    /// Returns the number of an owner's requests that may run at once. Their expected cost does not depend on which of
    /// its tenants is next: otherwise those with cheap requests would have all turns.
    pub(super) fn owner_running_max(&self, owner: NextJob, is_only_one: bool) -> usize {
        if is_only_one {
            return usize::MAX;
        }
        let count = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
        let affordable = self.shared_cost_max.checked_div(owner.expected_cost).map_or(usize::MAX, count);
        let [most, least] =
            [self.shared_running_max, SHARED_RUNNING_MIN].map(|of| of.saturating_mul(count(owner.weight)));
        most.min(affordable.max(least))
    }

    pub(super) fn tenant_waiting_max(&self, weight: u64) -> usize {
        self.tenant_waiting_max.saturating_mul(usize::try_from(weight).unwrap_or(usize::MAX))
    }
}
