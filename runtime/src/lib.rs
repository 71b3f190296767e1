#![doc = include_str!("../README.md")]

mod answers;
mod artefact;
mod bed;
mod beside;
#[allow(dead_code, reason = "compiled into the guest too")]
mod bounds;
mod call;
mod creator;
mod desk;
mod engine;
mod error;
mod excerpt;
mod failure;
mod fair;
mod features;
mod functions;
mod guest;
mod hot;
mod image;
mod inert;
mod input;
mod instance;
mod kept;
mod limits_change;
mod memory;
mod module;
mod pages;
mod pool;
mod queue;
mod reply;
mod reset;
mod sandbox;
mod seal;
mod settings;
mod sources;
mod watchdog;
#[cfg(test)]
mod wicked;
#[allow(dead_code, reason = "compiled into the guest too, and each side reads what the other writes")]
mod wire;

pub use call::{Call, LogEntry, Report, Trial, Value};
pub use engine::Engine;
pub use error::{Error, ModuleError};
pub use failure::Failure;
pub use functions::Functions;
pub use inert::{inert, inert_character};
pub use limits_change::LimitsChange;
#[doc(hidden)]
pub use module::is_module;
pub use pool::{Load, Pool};
pub use queue::{Asker, Busy, Urgency};
#[doc(hidden)]
pub use reply::is_reply;
pub use reset::Reset;
pub use sandbox::Sandbox;
pub use settings::{Limits, Settings};
pub use sources::{LimitsHash, Sources, SourcesHash};
pub use wire::{Dialect, Entry, Function, Kind, Level, Slot};
