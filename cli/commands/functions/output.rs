//! Texts for people: reports in colour, and input that could not be read.

pub(super) mod colour;
pub(super) mod problems;
