#![doc = include_str!("../README.md")]

pub mod access;
pub mod api;
pub mod downlink;
mod error;
pub mod network;
pub mod output;
pub mod payload;
mod registry;
mod settings;
pub mod silence;
pub mod status;
pub mod uplink;

pub use self::{
    api::{is_stream, needs_credential, router},
    error::{Error, FunctionError},
    registry::{announcement, application, device, sealer},
    settings::{Loading, Settings},
    status::cost::Cost,
    uplink::recorded::one_at_a_time::OneAtATime,
};
