//! What several benches share: reading codecs, measuring, and printing figures with their goals.
#![allow(dead_code, reason = "each bench uses only a part")]

pub(crate) mod codecs;
pub(crate) mod figures;
pub(crate) mod process;
