//! AMQP 0.9.1: messages for an exchange of RabbitMQ, or of another broker, in the form of The Things Network v2.

mod advice;
mod confirms;
mod connection;
mod listener;
mod routing;
mod sender;
mod settings;
mod url;

pub(crate) use self::sender::AmqpSender;
pub use self::settings::AmqpSettings;
