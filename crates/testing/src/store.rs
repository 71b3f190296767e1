//! Stores that fail when a test says so, or tell it what was read.

mod failing;
mod recording;

pub use self::{failing::FailingStore, recording::RecordingStore};
