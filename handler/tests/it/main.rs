//! The handler through its public interface: over real sockets, on free ports, without sleeps.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs, unreachable_pub)]

extern crate airlock_handler as handler;

mod downlinks;
mod eui_claims;
mod harness;
mod moves;
mod network_reports;
mod output;
mod records;
mod runs;
mod sealing;
mod silence;
mod versions;
