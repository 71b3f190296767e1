#![doc = include_str!("../README.md")]

mod aging;
mod amqp;
mod appender;
mod destination;
mod destinations;
mod error;
mod index;
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
mod repeats;
mod sender;
mod setting_files;
mod settings;
mod sweeper;
mod webhook;
mod webhooks;

pub use self::{
    amqp::AmqpSettings,
    error::Error,
    kafka::{KafkaCompression, KafkaMechanism, KafkaSettings},
    message::{DeadLetter, MESSAGE_BYTES_MAX, Message},
    operator::{OperatorOutputs, OperatorSettings},
    outputs::{Environment, Outputs, Stored},
    redis::RedisSettings,
    repeats::{Given, Receivers, Spare},
    settings::Settings,
    webhook::{EveryGrant, Grants, LookUp, Standing, Webhook, WebhookChange, system_look_up},
    webhooks::{DeadLetters, WEBHOOKS_MAX, Webhooks},
};
