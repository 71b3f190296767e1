//! History from outside: what is appended is found again, whatever happens in between.

extern crate airlock_history as history;

mod damage;
mod export;
mod faults;
mod harness;
mod kills;
mod queries;
mod removal;
mod retention;
mod sealed;
mod tail;
