//! A small, safe face of QuickJS: realms, values, and what is thrown.
//!
//! All `unsafe` calls into QuickJS are in this folder. They rest on three facts: the runtime and its contexts are made
//! once and never freed, the module has no threads, and a [`Value`] owns exactly one reference. Values that a message
//! leaves behind need not be freed with care: the host lays the heap anew before the next one.

mod allocation;
mod place;
mod realm;
mod runtime;
mod value;

pub(crate) use place::Place;
pub(crate) use realm::{Evaluation, Realm};
pub(crate) use runtime::Runtime;
pub(crate) use value::{Atom, Primitive, Thrown, Value};
