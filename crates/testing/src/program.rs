//! Third-party programs, which run as long as their test.

mod kafka;
mod killer;
mod mosquitto;
mod object_server;
mod packages;
mod port;
mod postgres;
mod rabbitmq;
mod redis;
mod schemathesis;
mod watchdog;

pub use self::{
    kafka::KafkaMock,
    killer::Killer,
    mosquitto::Mosquitto,
    object_server::{ObjectServer, RangeAnswer},
    packages::{Node, Python},
    postgres::Postgres,
    rabbitmq::{RABBITMQ_MESSAGE_BYTES_MAX, RabbitMq},
    redis::{RedisCluster, RedisProcess, RedisSentinels, encode as redis_command},
    schemathesis::Schemathesis,
    watchdog::Watchdog,
};
