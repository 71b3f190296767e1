//! The repository itself: its documents, layers, packages and tools.

mod conformance;
mod examples;
mod layers;
mod links;
mod metrics;
mod packages;
mod retry;
mod templates;
mod vendor;
