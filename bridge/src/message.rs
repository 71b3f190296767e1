//! Parts of messages that networks have in common.

pub mod radio;
pub mod raw_object;
