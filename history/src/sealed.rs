//! Parquet files: one directory for each application and day, and in it files that never change.

pub(crate) mod checksums;
pub(crate) mod chunk;
pub(crate) mod column;
pub(crate) mod file;
pub(crate) mod gateways;
pub(crate) mod name;
pub(crate) mod parts;
pub(crate) mod replaced;
pub(crate) mod rows;
mod schema;
pub(crate) mod search;
pub(crate) mod selection;
pub(crate) mod write;
