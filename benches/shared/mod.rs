//! What several benches do alike: reading codecs, taking figures, printing them with their aims.
#![allow(dead_code, reason = "each bench uses some of it")]

pub(crate) mod codecs;
pub(crate) mod figures;
pub(crate) mod process;
