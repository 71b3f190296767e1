//! Counts what each step of a script costs, in an engine of its own: live messages run in a guest that counts nothing.

pub(crate) mod instrument;
pub(crate) mod recorder;
pub(crate) mod steps;
