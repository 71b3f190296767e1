//! The outputs that the operator has configured, for all applications or for some.

use std::{collections::HashSet, sync::Arc};

use types::{AppId, Random};

use crate::{
    Error, Settings,
    destination::Destination,
    message::{DROPPED, EVENTS},
    sender::{
        Sender,
        amqp::{AmqpSender, AmqpSettings},
        kafka::{self, KafkaSettings},
        redis::{RedisSender, RedisSettings},
    },
};

const NAME_BYTES_MAX: usize = 36;

/// The settings of each kind.
#[derive(Clone, Copy, Default)]
pub struct OperatorSettings<'a> {
    /// AMQP brokers.
    pub amqp: &'a [AmqpSettings],
    /// Redis servers.
    pub redis: &'a [RedisSettings],
    /// Kafka clusters.
    pub kafka: &'a [KafkaSettings],
}

/// The outputs that the operator has configured.
#[derive(Default)]
pub struct OperatorOutputs(Vec<OperatorOutput>);

/// One of them.
pub(crate) struct OperatorOutput {
    kind: &'static str,
    name: String,
    /// Applications that use it; all if it is empty.
    applications: HashSet<AppId>,
    /// Events that it gets; all if it is empty.
    events: HashSet<String>,
    sender: Arc<dyn Sender>,
}

impl OperatorOutputs {
    /// Checks the settings, and connects in the background.
    pub fn start(
        OperatorSettings { amqp, redis, kafka }: OperatorSettings<'_>,
        delivery: &Settings,
        random: &Arc<dyn Random>,
    ) -> Result<Self, Error> {
        let mut outputs = Self::default();
        for settings in amqp {
            let AmqpSettings { name, applications, events, .. } = settings;
            outputs.check("amqp", name, events)?;
            let sender = AmqpSender::start(settings, delivery, random.clone())?;
            outputs.add("amqp", name, (applications, events), Arc::new(sender));
        }
        for settings in redis {
            let RedisSettings { name, applications, events, .. } = settings;
            outputs.check("redis", name, events)?;
            let sender = RedisSender::start(settings, delivery, random.clone())?;
            outputs.add("redis", name, (applications, events), Arc::new(sender));
        }
        for settings in kafka {
            let KafkaSettings { name, applications, events, .. } = settings;
            outputs.check("kafka", name, events)?;
            let sender = kafka::start(settings, delivery, random.clone())?;
            outputs.add("kafka", name, (applications, events), sender);
        }
        Ok(outputs)
    }

    fn check(&self, kind: &'static str, name: &str, events: &[String]) -> Result<(), Error> {
        let refused = |setting: &str, reason: &str| Err(Error::setting(kind, name, setting, reason));
        let is_valid = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_".contains(&byte);
        if name.is_empty() || name.len() > NAME_BYTES_MAX || !name.bytes().all(is_valid) {
            return refused("name", "must have 1 to 36 lowercase letters, digits, dashes or underscores");
        }
        if self.0.iter().any(|other| (other.kind, other.name.as_str()) == (kind, name)) {
            return refused("name", "is used twice: name the outputs differently");
        }
        match events.iter().find(|event| !EVENTS.contains(&event.as_str())) {
            Some(event) => refused("events", &format!("has `{event}`: there are {}", EVENTS.join(", "))),
            None => Ok(()),
        }
    }

    fn add(
        &mut self,
        kind: &'static str,
        name: &str,
        (applications, events): (&[AppId], &[String]),
        sender: Arc<dyn Sender>,
    ) {
        let applications = applications.iter().cloned().collect();
        let events = events.iter().cloned().collect();
        self.0.push(OperatorOutput { kind, name: name.to_owned(), applications, events, sender });
    }

    /// Returns true if an application sends anything through them.
    pub(crate) fn have(&self, app_id: &AppId) -> bool {
        self.0.iter().any(|output| output.is_of(app_id))
    }

    /// Those of an application.
    pub(crate) fn of(&self, app_id: &AppId) -> impl Iterator<Item = &OperatorOutput> {
        self.0.iter().filter(|output| output.is_of(app_id))
    }

    /// Returns the sender of a destination; none if no such output is configured here.
    pub(crate) fn sender(&self, destination: &Destination) -> Option<Arc<dyn Sender>> {
        let Destination { kind, name, .. } = destination;
        let output = self.0.iter().find(|output| output.kind == kind && output.name == *name);
        output.map(|output| output.sender.clone())
    }
}

impl OperatorOutput {
    /// Returns the destination of an application's messages.
    pub(crate) fn destination(&self, app_id: &AppId) -> Destination {
        Destination::new(app_id, self.kind, &self.name)
    }

    fn is_of(&self, app_id: &AppId) -> bool {
        self.applications.is_empty() || self.applications.contains(app_id)
    }

    pub(crate) fn wants(&self, event: &str) -> bool {
        self.events.is_empty() || event == DROPPED || self.events.contains(event)
    }
}
