//! Values of arguments, as people type them and shells complete them.

pub(crate) mod completion;
pub(crate) mod dialect;
pub(crate) mod json_object;
pub(crate) mod location;
pub(crate) mod script;
