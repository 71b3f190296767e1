//! A small, safe wrapper around QuickJS: realms, values and exceptions.
//!
//! All `unsafe` calls into QuickJS are in this folder. They rest on three facts: the runtime and its contexts are made
//! once and never freed, the module has no threads, and a [`Value`] owns exactly one reference. Leaking values during a
//! message is harmless: the host restores the heap afterwards.

mod allocation;
mod location;
mod module;
mod realm;
mod runtime;
mod script_text;
mod steps;
mod value;

pub(crate) use location::Location;
pub(crate) use realm::{Realm, Unevaluated};
pub(crate) use runtime::Runtime;
pub(crate) use script_text::ScriptText;
pub(crate) use steps::StepList;
pub(crate) use value::{Atom, Primitive, Thrown, Value};
