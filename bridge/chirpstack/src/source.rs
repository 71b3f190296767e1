//! Events from ChirpStack, over MQTT or from its Redis stream.

pub(super) mod brokers;
mod stream;

use bridge::receive::receive;
use futures::future::BoxFuture;
use link::{
    connection_state::ConnectionWatch,
    mqtt::{Group, Membership, Subscriber, Subscription},
    redis::{Node, StreamSubscriber, StreamSubscription, StreamWatcher},
};

use self::{
    brokers::EventSource,
    stream::{KEY, lanes},
};
use super::{
    event::{
        incoming::{Incoming, received},
        topic::{EVENTS, SHADOWED, device},
    },
    settings::ChirpStackSettings,
};

/// Receives the events of all devices.
pub(super) enum Events {
    Mqtt(Subscriber),
    Redis(StreamSubscriber),
    Watched(StreamWatcher),
}

impl Events {
    /// Connects in the background. `consumer` is the name of this bridge in the stream's group, `group` the
    /// bridges that share the messages of a broker.
    pub(super) fn start(
        source: EventSource,
        settings: &ChirpStackSettings,
        (consumer, group): (&str, Group),
        work: impl Fn(Incoming) -> BoxFuture<'static, ()> + Send + Sync + 'static,
    ) -> Self {
        match source {
            EventSource::Mqtt(endpoint) => {
                let subscription = subscription(settings, EVENTS.to_owned(), group);
                Self::Mqtt(receive(endpoint, subscription, device(String::new()), received(work)))
            }
            EventSource::Redis(node) => {
                Self::Redis(StreamSubscriber::start(stream_subscription(*node, settings, consumer), lanes(work)))
            }
        }
    }

    /// Connects in the background to see what shadow mode needs. Others receive the same events.
    pub(super) fn watch(
        source: EventSource,
        settings: &ChirpStackSettings,
        work: impl Fn(Incoming) -> BoxFuture<'static, ()> + Send + Sync + 'static,
    ) -> Self {
        match source {
            EventSource::Mqtt(endpoint) => {
                let subscription = Subscription {
                    tries_mqtt5: true,
                    ..Subscription::to(SHADOWED.map(str::to_owned), settings.in_flight_max)
                };
                Self::Mqtt(receive(endpoint, subscription, device(String::new()), received(work)))
            }
            EventSource::Redis(node) => {
                Self::Watched(StreamWatcher::start(stream_subscription(*node, settings, ""), lanes(work)))
            }
        }
    }

    /// Returns since when events are being received, or why they are not.
    pub(super) fn connection(&self) -> ConnectionWatch {
        match self {
            Self::Mqtt(subscriber) => subscriber.connection(),
            Self::Redis(subscriber) => subscriber.connection(),
            Self::Watched(watcher) => watcher.connection(),
        }
    }

    /// Returns the number of events that are not acknowledged yet.
    pub(super) fn in_progress(&self) -> usize {
        match self {
            Self::Mqtt(subscriber) => subscriber.in_progress(),
            Self::Redis(subscriber) => subscriber.in_progress(),
            Self::Watched(watcher) => watcher.in_progress(),
        }
    }

    /// Waits until nothing comes any more that a broker has kept. A stream keeps nothing for a bridge alone.
    pub(super) async fn idle(&self) {
        if let Self::Mqtt(subscriber) = self {
            subscriber.idle().await;
        }
    }

    /// Receives no more, and waits until what is in progress is acknowledged or given up.
    pub(super) async fn drain(self) {
        match self {
            Self::Mqtt(subscriber) => subscriber.drain().await,
            Self::Redis(subscriber) => subscriber.drain().await,
            Self::Watched(watcher) => watcher.drain().await,
        }
    }
}

fn stream_subscription(node: Node, settings: &ChirpStackSettings, consumer: &str) -> StreamSubscription {
    StreamSubscription {
        node,
        settings: settings.redis.clone(),
        key: format!("{}{KEY}", settings.redis.key_prefix),
        consumer: consumer.to_owned(),
        in_flight_max: settings.in_flight_max,
    }
}

/// A group of this name, as the settings want it.
pub(super) fn group(name: &'static str, settings: &ChirpStackSettings) -> Group {
    let membership = if settings.shared_subscription { Membership::Shared } else { Membership::Alone };
    Group { name, membership }
}

/// A subscription that bridges share, and whose messages the broker keeps.
pub(super) fn subscription(settings: &ChirpStackSettings, filter: String, group: Group) -> Subscription {
    Subscription {
        group: Some(group),
        keeps_session: true,
        tries_mqtt5: true,
        ..Subscription::to([filter], settings.in_flight_max)
    }
}
