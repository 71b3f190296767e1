//! What people are told: reports in colour, and what could not be read.

pub(super) mod colour;
pub(super) mod problems;
