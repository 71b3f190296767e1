#![doc = include_str!("../README.md")]

mod amqp;
mod appender;
mod destination;
mod destinations;
mod error;
mod lane;
mod lanes;
mod lease;
mod link;
mod message;
mod metrics;
mod operator;
mod outputs;
mod queue;
mod redis;
mod sender;
mod setting_files;
mod settings;
mod webhook;
mod webhooks;

pub use self::{
    amqp::AmqpSettings,
    error::Error,
    message::{DeadLetter, Message},
    operator::OperatorOutputs,
    outputs::{Environment, Outputs, Stored},
    redis::RedisSettings,
    settings::Settings,
    webhook::Webhook,
    webhooks::{WEBHOOKS_MAX, Webhooks},
};
