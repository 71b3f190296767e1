#![doc = include_str!("../README.md")]

mod appender;
mod destination;
mod destinations;
mod error;
mod message;
mod metrics;
mod outputs;
mod queue;
mod queue_workers;
mod sender;
mod settings;

pub use self::{
    appender::{Receivers, Recipients, SpareRoom},
    destinations::{OperatorOutputs, OperatorSettings},
    error::Error,
    message::{DeadLetter, EVENTS, MESSAGE_BYTES_MAX, OutputMessage},
    outputs::{
        Confirmed, DeadLetters, DeliveryReport, DeliveryState, Environment, FirstWaiting, Outputs, StorageReceipt,
        WEBHOOKS_MAX, WaitingMessage, Webhooks,
    },
    queue::search::MessageQuery,
    queue_workers::{Failing, RecentDelivery},
    sender::{
        amqp::AmqpSettings,
        kafka::{KafkaCompression, KafkaMechanism, KafkaSettings},
        redis::RedisSettings,
        webhook::{EveryGrant, Grants, LookUp, Standing, Webhook, WebhookChange, system_look_up},
    },
    settings::Settings,
};
