//! The names of `airlock-runtime` for code that runs in a page: what crosses the boundary of a sandbox is its own code,
//! and what is behind that boundary is the page's sandbox (`web/playground/sandbox`).

mod engine;
mod page;
#[path = "../../../../runtime/src"]
#[allow(dead_code, unreachable_pub, reason = "compiled into the server as well, which uses the rest")]
mod server {
    pub(crate) mod contract;
    pub(crate) mod limits;
    pub(crate) mod profile {
        pub(crate) mod recorder;
        pub(crate) mod steps;
    }
}

use server::{contract, limits};

pub use contract::call::{Call, CallOutcome, LogEntry, Value};
pub use contract::failure::Failure;
pub use contract::sanitize::{escape_json, sanitize, sanitize_char};
pub use contract::sources::{LimitsHash, Sources, SourcesHash};
pub use contract::wire::{Dialect, EntryPoint, FailureKind, Function, LogLevel, Slot};
pub use engine::{Engine, Functions, Sandbox};
pub use limits::Limits;
pub use page::ask as ask_page;
pub use server::profile::recorder::{Chain, Recording, StepCost};
pub use server::profile::steps::{ScriptFunction, Step, Steps};
