//! Schedules messages to threads: a worker pool with bounded, fair queues.

mod call_worker;
mod catch_panic;
mod dispatcher;
mod outcome_batch;
pub(crate) mod pool;
pub(crate) mod queue;
pub(crate) mod tenant;
