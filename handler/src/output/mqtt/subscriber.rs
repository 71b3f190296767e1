//! Receives the downlinks that applications publish on `<app_id>/devices/<dev_id>/down`.

use bytes::Bytes;
use client::mqtt::Connection;
use mqtt::Endpoint;
use rumqttc::{AsyncClient, Event, Packet, QoS, SubscribeReasonCode};
use tokio::sync::{mpsc, watch};
use tokio_util::task::AbortOnDropHandle;
use types::{AppId, DevId, Random};

use super::connection;
use crate::metrics;

const FILTER: &str = "+/devices/+/down";

/// How many downlinks may be queued for the handler.
const DOWNLINK_QUEUE_MAX: usize = 1024;

/// A downlink as an application published it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublishedDownlink {
    /// The application that published it.
    pub app_id: AppId,
    /// The device that it is for.
    pub dev_id: DevId,
    /// Supposedly JSON.
    pub body: Bytes,
}

/// A subscription to downlinks that reconnects by itself.
///
/// Downlinks arrive with QoS 0, as in v2: those that are published while the connection is down are lost.
pub struct DownlinkSubscriber {
    subscribed: watch::Receiver<bool>,
    /// Ends with the subscriber, and closes the channel of downlinks.
    _task: AbortOnDropHandle<()>,
}

impl DownlinkSubscriber {
    /// Connects in the background; downlinks arrive on the channel.
    pub fn connect(endpoint: &Endpoint, random: &dyn Random) -> (Self, mpsc::Receiver<PublishedDownlink>) {
        let (client, connection) = connection(endpoint, "inbox", random);
        let (downlinks, receiver) = mpsc::channel(DOWNLINK_QUEUE_MAX);
        let (subscribed_sender, subscribed) = watch::channel(false);
        let subscription = Subscription { client, connection, downlinks, subscribed: subscribed_sender };
        let task = AbortOnDropHandle::new(tokio::spawn(subscription.run()));
        (Self { subscribed, _task: task }, receiver)
    }

    /// Whether the broker has granted the subscription, now and as it changes.
    pub fn subscribed(&self) -> watch::Receiver<bool> {
        self.subscribed.clone()
    }
}

struct Subscription {
    client: AsyncClient,
    connection: Connection,
    downlinks: mpsc::Sender<PublishedDownlink>,
    subscribed: watch::Sender<bool>,
}

impl Subscription {
    async fn run(mut self) {
        let mut is_failing = false;
        loop {
            match self.connection.poll().await {
                Ok(Event::Incoming(Packet::ConnAck(_))) => {
                    is_failing = false;
                    self.subscribe();
                }
                Ok(Event::Incoming(Packet::SubAck(response))) => self.acknowledged(&response.return_codes),
                Ok(Event::Incoming(Packet::Publish(message))) => self.receive(&message.topic, message.payload),
                Ok(_) => {}
                Err(error) => {
                    self.subscribed.send_replace(false);
                    if !is_failing {
                        tracing::warn!(%error, "no connection to the MQTT broker: cannot receive downlinks");
                    }
                    is_failing = true;
                }
            }
        }
    }

    fn subscribe(&self) {
        // The queue has room, because this connection makes no other requests.
        if let Err(error) = self.client.try_subscribe(FILTER, QoS::AtMostOnce) {
            tracing::error!(%error, "cannot subscribe to downlinks");
        }
    }

    fn acknowledged(&self, codes: &[SubscribeReasonCode]) {
        let is_granted = !codes.contains(&SubscribeReasonCode::Failure);
        if !is_granted {
            tracing::error!("the MQTT broker refused the subscription to downlinks");
        }
        self.subscribed.send_replace(is_granted);
    }

    fn receive(&self, topic: &str, body: Bytes) {
        // The broker lets nobody publish on any other topic.
        let Some((app_id, dev_id)) = parse_topic(topic) else { return };
        if self.downlinks.try_send(PublishedDownlink { app_id, dev_id, body }).is_err() {
            metrics::downlink_dropped(types::Kind::Unavailable);
            tracing::warn!(topic, "dropped a downlink: the queue is full");
        }
    }
}

/// Parses `<app_id>/devices/<dev_id>/down`.
fn parse_topic(topic: &str) -> Option<(AppId, DevId)> {
    let (app_id, rest) = topic.split_once("/devices/")?;
    Some((app_id.parse().ok()?, rest.strip_suffix("/down")?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_down_topics_and_nothing_else() {
        let (app_id, dev_id) = parse_topic("my-app/devices/dev-1/down").unwrap();
        assert_eq!((app_id.as_str(), dev_id.as_str()), ("my-app", "dev-1"));
        for topic in ["my-app/devices/dev-1/up", "my-app/devices/Dev/down", "my-app/devices/a1/b1/down", "down", ""] {
            assert_eq!(parse_topic(topic), None, "{topic}");
        }
    }
}
