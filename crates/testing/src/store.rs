//! Stores that fail or are slow when a test says so, or tell it what was read.

mod failing;
mod recording;
mod slow;

pub use self::{failing::FailingStore, recording::RecordingStore, slow::SlowStore};
