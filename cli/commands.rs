//! The commands, one module per noun.

pub(crate) mod account;
pub(crate) mod applications;
pub(crate) mod bridge;
pub(crate) mod demo;
pub(crate) mod devices;
pub(crate) mod downlink;
pub(crate) mod functions;
pub(crate) mod gateways;
pub(crate) mod subscribe;
pub(crate) mod user;

/// The value of a pair of flags that exclude each other; `None` if neither is given.
fn flag(on: bool, off: bool) -> Option<bool> {
    (on || off).then_some(on)
}

fn yes_no(value: bool) -> String {
    if value { "yes" } else { "no" }.to_owned()
}
