//! Measures what messages cost: `airlock functions bench`.

pub(crate) mod baseline;
pub(crate) mod figures;
pub(crate) mod measure;
pub(crate) mod node;
mod plot;
pub(crate) mod report;
pub(crate) mod statistics;
