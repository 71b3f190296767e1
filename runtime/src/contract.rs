//! Data that crosses the sandbox boundary: messages, replies, failures, and the bytes that carry them.

pub(crate) mod call;
mod excerpt;
pub(crate) mod failure;
#[allow(dead_code, reason = "compiled into the guest too")]
pub(crate) mod guest_limits;
pub(crate) mod input;
pub(crate) mod refused_import;
pub(crate) mod reply;
pub(crate) mod sanitize;
pub(crate) mod sources;
#[allow(dead_code, reason = "compiled into the guest too, and each side reads what the other writes")]
pub(crate) mod wire;
