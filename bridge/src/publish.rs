//! Publishes what came from a network, where applications receive it.

pub(crate) mod output;
pub(crate) mod prefix;
pub(crate) mod republish;
