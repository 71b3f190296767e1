#![doc = include_str!("../README.md")]

mod lanes;
mod owners;
mod queue;

pub use lanes::Lanes;
pub use owners::{Member, MemberTurn, OwnerQueue};
pub use queue::{Costs, FairQueue, NextJob, Turn};
