//! Publishes what came from a network, where applications receive it.

pub mod output;
pub mod prefix;
pub mod republish;
