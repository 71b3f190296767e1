//! Finds the codec of a message, runs it, and tells what became of it.

pub mod cayenne;
pub mod imports;
pub mod look_up;
pub mod observation;
pub mod outcome;
pub mod script;
