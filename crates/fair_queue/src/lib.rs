#![doc = include_str!("../README.md")]

mod owners;
mod queue;

pub use owners::{Member, MemberTurn, OwnerQueue};
pub use queue::{Costs, FairQueue, NextJob, Turn};
