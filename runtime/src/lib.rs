#![doc = include_str!("../README.md")]

#[cfg(not(any(target_arch = "x86_64", feature = "compiler")))]
compile_error!("machine code of the guest is built in for x86-64 alone: add `--features compiler`");

mod contract;
mod engine;
mod error;
mod functions;
mod limits;
mod load;
mod memory;
mod profile;
mod sandbox;
mod schedule;
mod settings;

pub use contract::call::{Call, CallOutcome, LogEntry, Value};
pub use contract::failure::Failure;
#[doc(hidden)]
pub use contract::reply::is_reply;
pub use contract::sanitize::{escape_json, sanitize, sanitize_char};
pub use contract::sources::{LimitsHash, Sources, SourcesHash};
pub use contract::wire::{Dialect, EntryPoint, FailureKind, Function, LogLevel, Slot};
pub use engine::{Engine, GUEST};
pub use error::{Error, ModuleError};
pub use functions::Functions;
pub use limits::limit_overrides::LimitOverrides;
pub use limits::{Limits, LimitsByName};
#[doc(hidden)]
pub use load::module::check_module;
pub use memory::reset::Reset;
pub use profile::recorder::{Chain, Recording, StepCost};
pub use profile::steps::{ScriptFunction, Step, Steps};
pub use sandbox::Sandbox;
pub use schedule::pool::{LoadRequest, Pool};
pub use schedule::queue::Busy;
pub use schedule::tenant::{Priority, Tenant};
pub use settings::Settings;
