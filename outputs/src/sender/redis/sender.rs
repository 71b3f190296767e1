//! Adds an entry to a stream, and waits until the server has confirmed it.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use redis::{Cmd, cmd};
use server::ledger::Owner;
use types::{AppId, Random};

use super::{
    advice::advice,
    connection::{RedisConnection, RedisServer},
    settings::RedisSettings,
};
use crate::{
    Error, Settings,
    message::{Outgoing, topic},
    sender::{
        SendError, SendReceipt, Sender,
        link::{Link, OutputName},
    },
};

const APPLICATION: &str = "{app_id}";

/// Sends to the streams of one server.
pub(crate) struct RedisSender {
    link: Link<RedisConnection>,
    /// Name of the output in the log and the metrics.
    name: OutputName,
    stream: String,
    length_max: u64,
    /// True if the last entry was refused.
    is_refused: AtomicBool,
}

impl RedisSender {
    /// Checks the settings, and connects in the background.
    pub(crate) fn start(settings: &RedisSettings, delivery: &Settings, random: Arc<dyn Random>) -> Result<Self, Error> {
        if settings.stream.is_empty() || settings.length_max == 0 {
            let name = if settings.stream.is_empty() { "stream" } else { "length_max" };
            return Err(Error::setting("redis", &settings.name, name, "must not be empty"));
        }
        let server = RedisServer::new(settings, Duration::from_millis(delivery.timeout_ms.max(1)))?;
        let name = OutputName { kind: "redis", name: settings.name.clone() };
        let link = Link::start(server, name.clone(), random);
        let (stream, length_max) = (settings.stream.clone(), settings.length_max);
        Ok(Self { link, name, stream, length_max, is_refused: AtomicBool::new(false) })
    }

    fn addition(&self, Outgoing { id, app_id, message, .. }: &Outgoing) -> Cmd {
        let mut addition = cmd("XADD");
        addition.arg(key(&self.stream, app_id)).arg("MAXLEN").arg("~").arg(self.length_max).arg("*");
        addition.arg("topic").arg(topic(app_id, message)).arg("body").arg(message.body.get());
        addition.arg("time").arg(message.time.to_string()).arg("app_id").arg(app_id.as_str());
        if let Some(dev_id) = &message.dev_id {
            addition.arg("dev_id").arg(dev_id.as_str());
        }
        addition.arg("id").arg(id);
        addition
    }
}

#[async_trait]
impl Sender for RedisSender {
    async fn ready(&self, _owner: &Owner) {
        self.link.usable(|_| true).await;
    }

    async fn send(&self, message: &Outgoing) -> Result<SendReceipt, SendError> {
        let Some(connection) = self.link.current() else {
            return Err(SendError::Unreachable("Redis is not connected".to_owned()));
        };
        // Redis takes any entry, so a refusal says nothing about the message.
        let Err(error) = connection.run(&self.addition(message)).await else {
            self.is_refused.store(false, Ordering::Relaxed);
            return Ok(SendReceipt::default());
        };
        let (output, app_id) = (&self.name, &message.app_id);
        match advice(&error) {
            Some(advice) if !self.is_refused.swap(true, Ordering::Relaxed) => {
                tracing::error!(%output, %app_id, %error, "cannot add to a stream, so messages wait: {advice}");
            }
            _ => tracing::debug!(%output, %app_id, %error, "cannot add to a stream"),
        }
        Err(SendError::Unreachable(error.to_string()))
    }
}

/// The stream of an application. In a cluster, the application is in braces if the setting has two of each.
fn key(stream: &str, app_id: &AppId) -> String {
    stream.replace(APPLICATION, app_id.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_named_after_its_application() {
        for (stream, expected) in [
            ("airlock:{app_id}", "airlock:my-app"),
            ("airlock:{{app_id}}", "airlock:{my-app}"),
            ("everything", "everything"),
        ] {
            assert_eq!(key(stream, &"my-app".parse().unwrap()), expected);
        }
    }
}
