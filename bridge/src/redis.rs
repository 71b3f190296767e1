//! Reads a Redis stream with a consumer group: each entry is acknowledged once it is dealt with, and what a dead
//! consumer left is taken over.

mod acknowledge;
mod advice;
mod connection;
mod history;
mod in_progress;
mod reply;
mod settings;
mod stream;
mod subscriber;
mod subscription;

pub use self::settings::StreamSettings;
pub(crate) use self::{
    connection::Node,
    subscriber::{StreamEntry, StreamSubscriber},
    subscription::StreamSubscription,
};
