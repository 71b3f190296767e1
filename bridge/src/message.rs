//! Parts of messages that networks have in common.

pub mod members;
pub mod radio;
