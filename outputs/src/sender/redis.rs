//! Redis Streams: an entry for each message, in a stream for each application or in one for all.

mod advice;
mod connection;
mod sender;
mod settings;

pub(crate) use self::sender::RedisSender;
pub use self::settings::RedisSettings;
