//! Services as processes: how they are started, operated and stopped, and what survives their failures.

mod backups;
mod crashes;
mod demo;
mod footprint;
mod interrupts;
mod login;
mod operator;
pub(crate) mod outages;
mod quick_start;
mod serve;
mod three_processes;
mod tls;
