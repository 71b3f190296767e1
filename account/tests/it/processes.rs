//! The service as a process: beside others, in crashes and races, and for its operator.

pub(crate) mod audit;
mod crash;
mod in_process;
mod instances;
mod operator;
mod races;
