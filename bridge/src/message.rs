//! Parts of messages that networks have in common.

pub(crate) mod members;
pub(crate) mod radio;
