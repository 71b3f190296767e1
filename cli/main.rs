//! The one binary: `airlock serve` and the commands people type.
fn main() {}
