//! Messages of applications: how they come in, what functions make of them, and what is stored.

mod candidates;
mod chart;
pub(crate) mod decode_again;
mod downlinks;
mod dry_runs;
mod history;
mod hostile_functions;
mod send_again;
mod uplink_batches;
mod uplinks;
mod versions;
