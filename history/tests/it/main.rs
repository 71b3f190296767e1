//! History from outside: what is appended is found again, whatever happens in between.

extern crate airlock_history as history;

mod harness;
mod queries;
mod tail;
