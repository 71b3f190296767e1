//! Reads a Redis stream with a consumer group: each entry is acknowledged once it is dealt with, and the entries of a
//! dead consumer are taken over. Or watches it, or reads it to its end, without taking anything. And writes one.

mod advice;
mod connection;
mod connector;
mod node;
mod publisher;
mod reader;
mod reading;
mod reply;
mod settings;
mod stream;
mod subscriber;
mod subscription;
mod watcher;

pub use self::settings::StreamSettings;
pub use self::{
    advice::is_login_refused,
    connection::Connection,
    node::{Node, is_redis},
    publisher::{StreamPublisher, StreamTarget},
    reader::{StoredEntry, StreamReader},
    subscriber::{StreamEntry, StreamSubscriber},
    subscription::StreamSubscription,
    watcher::StreamWatcher,
};
