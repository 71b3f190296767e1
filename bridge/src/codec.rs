//! Finds the codec of a message, runs it, and returns its result.

pub mod cayenne;
pub mod imports;
pub mod observation;
pub mod outcome;
pub mod script;
pub mod single_flight;
