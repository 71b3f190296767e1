//! A small, safe wrapper around QuickJS: realms, values and exceptions.
//!
//! All `unsafe` calls into QuickJS are in this folder. They rest on three facts: the runtime and its contexts are made
//! once and never freed, the module has no threads, and a [`Value`] owns exactly one reference. Leaking values during a
//! message is harmless: the host restores the heap afterwards.

mod allocation;
mod constructors;
mod location;
mod module;
mod properties;
mod realm;
mod runtime;
mod script;
mod shapes;
mod steps;
mod text;
mod value;

pub(crate) use location::Location;
pub(crate) use realm::{Atom, Realm};
pub(crate) use runtime::{GARBAGE_BYTES, Runtime};
pub(crate) use script::{ScriptText, Unevaluated};
pub(crate) use steps::StepList;
pub(crate) use value::{Primitive, Thrown, Value};
