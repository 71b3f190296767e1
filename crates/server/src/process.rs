//! The process: its settings, clock and signals, and its place among those that use the same store.

pub mod lease;
pub mod settings;
pub mod shutdown;
pub mod store_mark;
pub mod system;
