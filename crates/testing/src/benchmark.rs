//! Measurements of benches: load, resource use, and figures with their goals.

pub mod figures;
pub mod load;
pub mod process;
