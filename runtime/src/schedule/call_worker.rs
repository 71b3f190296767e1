//! A worker that runs messages.

use tokio::sync::oneshot;

use crate::contract::call::{Call, CallOutcome};
use crate::functions::Functions;
use crate::sandbox::Sandbox;
use crate::schedule::catch_panic::catch_panic;
use crate::schedule::dispatcher::Work;
use crate::schedule::outcome_batch::OutcomeBatch;
use crate::schedule::queue::JOB_FUEL;

/// Messages to run.
pub(super) struct CallJob {
    pub(super) functions: Functions,
    pub(super) calls: Calls,
}

/// One message, or several of the same functions.
pub(super) enum Calls {
    One(Call, oneshot::Sender<CallOutcome>),
    /// One after the other on one worker, as many as may run there as a short job.
    Several(Vec<Call>, oneshot::Sender<Vec<CallOutcome>>),
}

/// The state of a worker that runs messages.
pub(super) struct CallWorker {
    sandbox: Sandbox,
    outcomes: OutcomeBatch,
    /// Several calls end when they have used more fuel than this.
    short_fuel_max: u64,
}

impl Work<CallJob> for CallWorker {
    fn run(&mut self, job: CallJob, expected_fuel: u64) -> Option<u64> {
        match job.calls {
            Calls::One(call, done) => self.run_one(&job.functions, &call, done, expected_fuel),
            Calls::Several(calls, done) => self.run_several(&job.functions, &calls, done),
        }
    }

    fn before_sleep(&mut self) {
        self.outcomes.flush();
    }
}

impl CallWorker {
    pub(super) fn new(sandbox: Sandbox, short_fuel_max: u64) -> Self {
        Self { sandbox, outcomes: OutcomeBatch::default(), short_fuel_max }
    }

    fn run_one(
        &mut self,
        functions: &Functions,
        call: &Call,
        done: oneshot::Sender<CallOutcome>,
        expected_fuel: u64,
    ) -> Option<u64> {
        if done.is_closed() {
            // Cancelled messages count as no time, so outcomes must not wait for them.
            self.outcomes.flush();
            return None;
        }
        self.outcomes.before_message(expected_fuel);
        let (outcome, fuel) = self.call(functions, call);
        self.outcomes.push(done, outcome);
        Some(fuel)
    }

    fn run_several(
        &mut self,
        functions: &Functions,
        calls: &[Call],
        done: oneshot::Sender<Vec<CallOutcome>>,
    ) -> Option<u64> {
        self.outcomes.flush();
        let (mut outcomes, mut fuel) = (Vec::with_capacity(calls.len()), 0_u64);
        for call in calls {
            if done.is_closed() || fuel > self.short_fuel_max {
                break;
            }
            let (outcome, used) = self.call(functions, call);
            // The queue charges the job for restoring memory once.
            let restoring = if outcomes.is_empty() { 0 } else { JOB_FUEL };
            fuel = fuel.saturating_add(used).saturating_add(restoring);
            outcomes.push(outcome);
        }
        let has_run = !outcomes.is_empty();
        // The caller may have given up meanwhile.
        let _ = done.send(outcomes);
        has_run.then_some(fuel)
    }

    /// Runs one message; returns its outcome and the fuel that its tenant is charged.
    fn call(&mut self, functions: &Functions, call: &Call) -> (CallOutcome, u64) {
        let outcome = catch_panic(|| self.sandbox.call(functions, call));
        let outcome = outcome.unwrap_or_else(|failure| CallOutcome::new(Err(failure)));
        let fuel = outcome.fuel.saturating_add(self.sandbox.take_stopped_fuel());
        (outcome, fuel)
    }
}
