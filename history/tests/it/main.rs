//! History from outside: what is appended is found again, whatever happens in between.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, missing_docs, unreachable_pub)]

extern crate airlock_history as history;

mod bucket;
mod changed_bytes;
mod charts;
mod damage;
mod export;
mod faults;
mod former;
mod harness;
mod kills;
mod queries;
mod ranges;
mod removal;
mod retention;
mod sealed;
mod stored;
mod tail;
