//! What applications publish for their devices, as the broker brings it: a connection of its own, so that neither
//! direction holds up the other.

use std::sync::Arc;

use bytes::Bytes;
use rumqttc::{AsyncClient, Event, EventLoop, Packet, QoS, SubscribeReasonCode};
use tokio::{
    sync::{mpsc, watch},
    time::sleep,
};
use tokio_util::task::AbortOnDropHandle;
use types::{AppId, DevId, Random};

use mqtt::Endpoint;

use super::{LIBRARY_QUEUE_MAX, options, retry_wait};
use crate::{Error, metrics};

/// Where applications publish downlinks.
const FILTER: &str = "+/devices/+/down";
/// How many may wait to be taken.
const ARRIVALS_MAX: usize = 1024;

/// Something for a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// The application that published it.
    pub app_id: AppId,
    /// The device that it is for.
    pub dev_id: DevId,
    /// JSON, or whatever it is.
    pub body: Bytes,
}

/// A connection that listens for downlinks, and comes back by itself.
///
/// Each arrives at most once: what is published while the connection is broken is lost, as in v2.
pub struct Inbox {
    listening: watch::Receiver<bool>,
    /// Ends with the inbox, and with it the arrivals.
    _task: AbortOnDropHandle<()>,
}

impl Inbox {
    /// Connects in the background and for good; what arrives waits in the channel.
    pub fn open(endpoint: &Endpoint, random: Arc<dyn Random>) -> Result<(Self, mpsc::Receiver<Arrival>), Error> {
        let (client, events) = AsyncClient::new(options(endpoint, "inbox", random.as_ref())?, LIBRARY_QUEUE_MAX);
        let (arrivals, arrived) = mpsc::channel(ARRIVALS_MAX);
        let (listening_now, listening) = watch::channel(false);
        let ear = Ear { client, events, arrivals, listening: listening_now, random };
        let task = AbortOnDropHandle::new(tokio::spawn(ear.keep()));
        Ok((Self { listening, _task: task }, arrived))
    }

    /// Returns once it hears what is published.
    pub async fn listening(&self) {
        // The sender lives as long as the task, and a task that ended has nobody to wait for.
        _ = self.listening.clone().wait_for(|listening| *listening).await;
    }
}

/// The connection itself.
struct Ear {
    client: AsyncClient,
    events: EventLoop,
    arrivals: mpsc::Sender<Arrival>,
    listening: watch::Sender<bool>,
    random: Arc<dyn Random>,
}

impl Ear {
    async fn keep(mut self) {
        let mut failures = 0;
        loop {
            match self.events.poll().await {
                Ok(Event::Incoming(Packet::ConnAck(_))) => {
                    failures = 0;
                    self.subscribe();
                }
                Ok(Event::Incoming(Packet::SubAck(answer))) => self.heard(&answer.return_codes),
                Ok(Event::Incoming(Packet::Publish(message))) => self.bring(&message.topic, message.payload),
                Ok(_) => {}
                Err(error) => {
                    self.listening.send_replace(false);
                    if failures == 0 {
                        tracing::warn!(%error, "no connection to the MQTT broker: downlinks are not heard");
                    }
                    sleep(retry_wait(failures, self.random.as_ref())).await;
                    failures += 1;
                }
            }
        }
    }

    fn subscribe(&self) {
        // There is room: nothing else is ever asked for.
        if let Err(error) = self.client.try_subscribe(FILTER, QoS::AtMostOnce) {
            tracing::error!(%error, "downlinks cannot be asked for");
        }
    }

    fn heard(&self, answers: &[SubscribeReasonCode]) {
        let granted = !answers.contains(&SubscribeReasonCode::Failure);
        if !granted {
            tracing::error!("the MQTT broker does not let this handler hear downlinks");
        }
        self.listening.send_replace(granted);
    }

    fn bring(&self, topic: &str, body: Bytes) {
        // The broker lets nobody publish on another topic.
        let Some((app_id, dev_id)) = device(topic) else { return };
        if self.arrivals.try_send(Arrival { app_id, dev_id, body }).is_err() {
            metrics::downlink_dropped(types::Kind::Unavailable);
            tracing::warn!(topic, "a downlink is dropped: more wait than may");
        }
    }
}

/// The device of `<app_id>/devices/<dev_id>/down`.
fn device(topic: &str) -> Option<(AppId, DevId)> {
    let (app_id, rest) = topic.split_once("/devices/")?;
    Some((app_id.parse().ok()?, rest.strip_suffix("/down")?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_topic_names_a_device_or_nothing() {
        let (app_id, dev_id) = device("my-app/devices/dev-1/down").unwrap();
        assert_eq!((app_id.as_str(), dev_id.as_str()), ("my-app", "dev-1"));
        for topic in ["my-app/devices/dev-1/up", "my-app/devices/Dev/down", "my-app/devices/a1/b1/down", "down", ""] {
            assert_eq!(device(topic), None, "{topic}");
        }
    }
}
