//! Finds the codec of a message, runs it, and tells what became of it.

pub(crate) mod cayenne;
pub(crate) mod look_up;
pub(crate) mod observation;
pub(crate) mod outcome;
pub(crate) mod script;
