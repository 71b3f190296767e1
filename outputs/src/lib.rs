#![doc = include_str!("../README.md")]

mod appender;
mod destination;
mod destinations;
mod error;
mod lane;
mod lanes;
mod lease;
mod message;
mod metrics;
mod outputs;
mod queue;
mod sender;
mod settings;
mod webhook;
mod webhooks;

pub use self::{
    error::Error,
    message::{DeadLetter, Message},
    outputs::{Environment, Outputs, Stored},
    settings::Settings,
    webhook::Webhook,
    webhooks::{WEBHOOKS_MAX, Webhooks},
};
