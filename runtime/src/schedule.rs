//! Which message runs when, on which thread: a worker pool with bounded, fair queues.

mod answer_batch;
mod dispatcher;
pub(crate) mod pool;
pub(crate) mod queue;
