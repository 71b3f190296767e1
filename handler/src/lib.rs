#![doc = include_str!("../README.md")]

pub mod access;
pub mod announcement;
pub mod api;
pub mod application;
mod batch;
mod chart;
mod cost;
mod decode_again;
pub mod device;
pub mod downlink;
mod error;
pub mod grants;
pub mod join;
mod lorawan;
mod metrics;
pub mod network;
pub mod network_broker;
mod one_at_a_time;
pub mod output;
pub mod payload;
pub mod sealer;
mod send_again;
mod settings;
pub mod status;
pub mod uplink;

pub use self::{
    api::{is_stream, needs_credential, router},
    cost::Cost,
    error::{Error, FunctionError},
    one_at_a_time::OneAtATime,
    settings::{Loading, Settings},
};
