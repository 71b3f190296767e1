#![doc = include_str!("../README.md")]

pub mod broker;
mod check;
pub mod codec;
mod environment;
mod error;
pub mod hand_over;
pub mod message;
pub mod metrics;
pub mod publish;
pub mod receive;
pub mod record;
mod running;

pub use self::{
    check::ApplicationCheck,
    codec::observation::{Observation, ObservedApplication, ObservedResult},
    environment::{Environment, state_dir::StateDir},
    error::Error,
    hand_over::{
        dropped::{DropReason, DroppedEvent},
        network::{Network, NetworkState, Receiver, Route},
        traffic::{Lag, TrafficState},
    },
    running::{Connections, Running},
};
pub use link::{Remote, connection_state::ConnectionState, redis::StreamSettings};
