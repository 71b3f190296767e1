#![doc = include_str!("../README.md")]

mod amqp;
mod appender;
mod destination;
mod destinations;
mod error;
mod kafka;
mod lane;
mod lanes;
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
    appender::MESSAGE_BYTES_MAX,
    error::Error,
    kafka::{KafkaCompression, KafkaMechanism, KafkaSettings},
    message::{DeadLetter, Message},
    operator::{OperatorOutputs, OperatorSettings},
    outputs::{Environment, Outputs, Stored},
    redis::RedisSettings,
    settings::Settings,
    webhook::{EveryGrant, Grants, Standing, Webhook},
    webhooks::{WEBHOOKS_MAX, Webhooks},
};
