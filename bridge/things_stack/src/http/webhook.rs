//! Receives messages as a webhook of The Things Stack; `http.rs` has the requests.
//!
//! A request is confirmed after what became of its message was published. Whoever does not bring the application's key
//! is refused before the body is read.

pub(crate) mod ids;

use std::{sync::Arc, time::Duration};

use aws_lc_rs::constant_time::verify_slices_are_equal;
use bridge::{
    message::raw_object::RawObject,
    receive::lanes::{LaneWork, Lanes},
};
use bytes::Bytes;
use link::delivery::{Ack, Delivery};
use serde::Deserialize;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, oneshot},
    time::timeout,
};
use types::{Kind, Kinded};

use self::ids::WebhookIds;
use crate::{
    application::{
        Application,
        topic::{Topic, device_key, is_id},
    },
    settings::ThingsStackSettings,
};

/// The kinds of messages, by the member that a message has, with their topics.
const KINDS: [(&str, &str); 11] = [
    ("uplink_message", "up"),
    ("uplink_normalized", "up/normalized"),
    ("join_accept", "join"),
    ("downlink_ack", "down/ack"),
    ("downlink_nack", "down/nack"),
    ("downlink_sent", "down/sent"),
    ("downlink_failed", "down/failed"),
    ("downlink_queued", "down/queued"),
    ("downlink_queue_invalidated", "down/invalidated"),
    ("location_solved", "location/solved"),
    ("service_data", "service/data"),
];

/// Maximum time that a request waits until its message is published. The Things Stack does not wait much longer.
const PUBLISH_WAIT_MAX: Duration = Duration::from_secs(5);

/// Listener for the messages of a network's applications.
#[derive(Clone)]
pub struct WebhookListener {
    /// The address to listen at.
    pub listen: String,
    pub(crate) webhook: Arc<Webhook>,
}

/// Receives the messages of applications.
pub(crate) struct Webhook {
    applications: Vec<Arc<Application>>,
    ids: Arc<WebhookIds>,
    in_flight: Arc<Semaphore>,
    in_flight_max: usize,
    lanes: Lanes<Delivery>,
}

/// A request that brought a key, before its body is read.
pub(crate) struct Admitted<'a> {
    /// The applications that have this key.
    applications: Vec<&'a Arc<Application>>,
    permit: OwnedSemaphorePermit,
}

/// Reasons for refusing a request.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refusal {
    #[error(
        "the request has no key, or not that of an application: add the header `Authorization: Bearer KEY` to the \
         webhook, or set its downlink API key"
    )]
    Key,
    #[error("the key cannot be checked now: the bridge cannot read its file")]
    Unverified,
    #[error("the key is not that of the message's application")]
    Application,
    #[error(
        "the key is that of several tenants' applications with this id, or of several networks' applications: give \
         each a key of its own"
    )]
    Ambiguous,
    #[error("the body is too large")]
    TooLarge,
    #[error("the body is not a message in the JSON format: {0}")]
    Malformed(String),
    #[error("too many messages are in progress: try again later")]
    Busy,
    #[error("the message was not published: try again later")]
    Unpublished,
}

/// The parts of a message that are read.
#[derive(Deserialize)]
struct MessageSender {
    end_device_ids: DeviceIds,
}

#[derive(Deserialize)]
struct DeviceIds {
    device_id: String,
    application_ids: ApplicationIds,
}

#[derive(Deserialize)]
struct ApplicationIds {
    application_id: String,
}

impl WebhookListener {
    /// None if messages come over MQTT.
    pub(crate) fn new(
        settings: &ThingsStackSettings,
        applications: &[Arc<Application>],
        ids: Arc<WebhookIds>,
        work: LaneWork<Delivery>,
    ) -> Option<Self> {
        let listen = settings.webhook.listen.clone();
        let webhook = || Arc::new(Webhook::new(applications, ids, settings.in_flight_max, work));
        (!listen.is_empty()).then(|| Self { listen, webhook: webhook() })
    }

    /// Returns the number of messages that are not dealt with yet.
    pub(crate) fn in_progress(&self) -> usize {
        self.webhook.in_flight_max.saturating_sub(self.webhook.in_flight.available_permits())
    }
}

impl Webhook {
    fn new(
        applications: &[Arc<Application>],
        ids: Arc<WebhookIds>,
        in_flight_max: u16,
        work: LaneWork<Delivery>,
    ) -> Self {
        let in_flight_max = usize::from(in_flight_max.max(1));
        let in_flight = Arc::new(Semaphore::new(in_flight_max));
        Self { applications: applications.to_vec(), ids, in_flight, in_flight_max, lanes: Lanes::new(work) }
    }

    /// Admits a request by its key, if there is room.
    pub(crate) fn admit(&self, key: Option<&[u8]>) -> Result<Admitted<'_>, Refusal> {
        let key = key.ok_or(Refusal::Key)?;
        let (mut applications, mut is_verified) = (Vec::new(), true);
        // Every key is compared, so that the time tells nothing.
        for application in &self.applications {
            match application.webhook_key.verified() {
                Some(right) if verify_slices_are_equal(right.expose().as_bytes(), key).is_ok() => {
                    applications.push(application);
                }
                Some(_) => {}
                None => is_verified = false,
            }
        }
        if applications.is_empty() {
            return Err(if is_verified { Refusal::Key } else { Refusal::Unverified });
        }
        let permit = self.in_flight.clone().try_acquire_owned().map_err(|_| Refusal::Busy)?;
        Ok(Admitted { applications, permit })
    }

    /// Waits until a message is published. `push` is the address for downlinks that its request has.
    pub(crate) async fn receive(
        &self,
        Admitted { applications, permit }: Admitted<'_>,
        body: Bytes,
        push: Option<&str>,
    ) -> Result<(), Refusal> {
        let malformed = |error: serde_json::Error| Refusal::Malformed(error.to_string());
        let MessageSender { end_device_ids: ids } = serde_json::from_slice(&body).map_err(malformed)?;
        let members = RawObject::parse(&body).map_err(malformed)?;
        let kind = KINDS.iter().find(|(member, _)| members.has(member)).map(|(_, kind)| *kind);
        let kind = kind.ok_or_else(|| Refusal::Malformed("it has no known kind of message".to_owned()))?;
        if !is_id(&ids.device_id) {
            return Err(Refusal::Malformed("its `device_id` is not valid".to_owned()));
        }
        let id = ids.application_ids.application_id;
        let mut matching = applications.into_iter().filter(|one| one.id() == id);
        let application = matching.next().ok_or(Refusal::Application)?;
        if matching.next().is_some() {
            return Err(Refusal::Ambiguous);
        }
        if let Some(push) = push {
            self.ids.learn(application, push);
        }
        let topic = Topic { application: &application.uid, device: &ids.device_id, rest: kind };
        let (done, published) = oneshot::channel();
        // Nobody waits for it when the client has gone.
        let ack = Ack::new(async move { _ = done.send(()) }, permit);
        let (topic, device) = (topic.to_string(), device_key(topic.application, topic.device));
        self.lanes.add(&device, Delivery { topic, payload: body, is_duplicate: false, is_late: false, ack });
        // It is published when that is possible again, and a copy of it is dropped.
        let published = timeout(PUBLISH_WAIT_MAX, published).await.map_err(|_| Refusal::Unpublished)?;
        published.map_err(|_| Refusal::Unpublished)
    }
}

impl Kinded for Refusal {
    fn kind(&self) -> Kind {
        match self {
            Self::Key => Kind::Unauthenticated,
            Self::Application | Self::Ambiguous => Kind::Denied,
            Self::TooLarge => Kind::TooLarge,
            Self::Malformed(_) => Kind::Invalid,
            Self::Busy | Self::Unpublished | Self::Unverified => Kind::Unavailable,
        }
    }
}
