//! The engine: its guest and caches, loaded functions, workers and profiles.

mod built;
mod cache;
mod cold;
mod module;
mod pool;
mod profile;
