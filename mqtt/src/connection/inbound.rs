//! Handles and answers the packets that a client sends after its CONNECT.

mod subscriptions;

use std::time::Duration;

use bytes::Bytes;
use futures::future::{BoxFuture, FutureExt, ready};
use mqtt5_protocol::{
    MqttError, PacketType, QoS, is_valid_topic_name, packet::publish::PublishPacket, types::ReasonCode,
};
use serde_json::json;
use tokio::time::{Instant, sleep_until};
use types::DevId;

use crate::{
    Publication,
    access::permissions::TOPIC_BYTES_MAX,
    connection::{
        connect::Connect,
        context::Context,
        downlinks::{DownlinkRefusal, Offer, PublishedDownlink},
        publications::Publications,
    },
    packet::{
        ControlPacket, forwarded,
        limits::{PROPERTIES_BYTES_MAX, TOPIC_ALIASES_MAX},
    },
    session::{
        Attachment,
        message::{DeliveryQos, Message},
    },
};

/// Handles the packets of one client.
pub(crate) struct Inbound<'a> {
    context: &'a Context,
    connect: &'a Connect,
    attachment: &'a Attachment,
    pace: PublishPace,
    publications: Publications<'a>,
    /// The client's aliases, which begin with 1.
    aliases: Vec<Alias>,
    /// Number of misdirected downlinks that the application has not been told of.
    untold: u64,
}

/// Meaning of a topic alias. Only a topic that the client may publish on takes memory.
#[derive(Clone)]
enum Alias {
    Unknown,
    Topic(String),
    Forbidden,
}

/// The broker's reaction to a packet.
pub(crate) enum Reaction {
    Nothing,
    Packet(ControlPacket),
    /// The client leaves; its will is published only if it says so.
    Leaves {
        with_will: bool,
    },
}

impl<'a> Inbound<'a> {
    pub(crate) fn new(context: &'a Context, connect: &'a Connect, attachment: &'a Attachment) -> Self {
        let pace = PublishPace::new(context.publishes_per_second_max);
        let publications = Publications::default();
        Self { context, connect, attachment, pace, publications, aliases: Vec::new(), untold: 0 }
    }

    /// Handles a packet; an error is the reason to disconnect the client. Answers to publications that it has to wait
    /// for are put behind `unwritten`.
    pub(crate) async fn handle(
        &mut self,
        packet: ControlPacket,
        unwritten: &mut Vec<u8>,
    ) -> Result<Reaction, ReasonCode> {
        let packet_type = packet.packet_type();
        if let Some(PacketType::PubRel | PacketType::Subscribe | PacketType::Unsubscribe | PacketType::Disconnect) =
            packet_type
        {
            self.publications.answer_all(unwritten).await?;
        }
        match packet_type {
            Some(PacketType::Publish) => self.publish(&packet, unwritten).await.map(|()| Reaction::Nothing),
            Some(PacketType::PubAck) => self.acknowledged(&packet),
            Some(PacketType::PubRel) => self.released(&packet),
            Some(PacketType::Subscribe) => {
                let reaction = self.subscribe(&packet)?;
                self.stored(reaction).await
            }
            Some(PacketType::Unsubscribe) => {
                let reaction = self.unsubscribe(&packet)?;
                self.stored(reaction).await
            }
            Some(PacketType::PingReq) => Ok(Reaction::Packet(ControlPacket::pong())),
            Some(PacketType::Disconnect) => self.disconnect(&packet),
            // The client never gets QoS 2, so it has no reason for a PUBREC or PUBCOMP.
            _ => Err(ReasonCode::ProtocolError),
        }
    }

    /// Returns true if publications still have to be answered.
    pub(crate) fn is_publishing(&self) -> bool {
        !self.publications.is_empty()
    }

    /// Waits for the next answers to publications, and puts them behind `unwritten`; an error is the reason to
    /// disconnect the client. Can be cancelled without losing anything.
    pub(crate) async fn answer(&mut self, unwritten: &mut Vec<u8>) -> Result<(), ReasonCode> {
        self.publications.answer(unwritten).await
    }

    fn version(&self) -> u8 {
        self.connect.version
    }

    /// Returns the reaction when the session's subscriptions are stored, if it outlives the process. It takes `&mut self`
    /// because publications can be sent to another thread, but not be shared with it.
    async fn stored(&mut self, reaction: Reaction) -> Result<Reaction, ReasonCode> {
        let stored = self.context.router.stored(&self.connect.permissions.app_id, self.attachment);
        stored.await.map(|()| reaction).map_err(|_| ReasonCode::ImplementationSpecificError)
    }

    /// Begins to hand over a publication, once it may. Messages are never retained; only MQTT 5 has a reason code to
    /// say so.
    async fn publish(&mut self, packet: &ControlPacket, unwritten: &mut Vec<u8>) -> Result<(), ReasonCode> {
        self.wait_for_pace(unwritten).await?;
        let mut publish = packet.publish(self.version()).map_err(malformed)?;
        if publish.retain && self.version() >= 5 {
            return Err(ReasonCode::RetainNotSupported);
        }
        let packet_id = publish.packet_id.unwrap_or_default();
        if (publish.qos == QoS::AtMostOnce) != (packet_id == 0) {
            return Err(ReasonCode::ProtocolError);
        }
        if publish.properties.encoded_len() > PROPERTIES_BYTES_MAX {
            return Err(ReasonCode::PacketTooLarge);
        }
        let topic = self.topic(&publish)?;
        let is_forbidden = topic.is_none();
        publish.topic_name = topic.unwrap_or_default();
        let dev_id = self.connect.permissions.downlink_device(&publish.topic_name);
        let bytes = publish.topic_name.len() + publish.payload.len() + publish.properties.encoded_len();
        self.wait_for_room((publish.qos, bytes), dev_id.as_ref(), unwritten).await?;
        let reason = match publish.qos {
            _ if is_forbidden => ready(Ok(ReasonCode::NotAuthorized)).boxed(),
            QoS::ExactlyOnce if self.attachment.is_unreleased(packet_id) => ready(Ok(ReasonCode::Success)).boxed(),
            QoS::ExactlyOnce if !self.attachment.may_begin() => return Err(ReasonCode::ReceiveMaximumExceeded),
            _ => self.accept(&publish, dev_id.clone())?,
        };
        let (qos, version, attachment) = (publish.qos, self.version(), self.attachment);
        let answer = async move { Ok(answer_to(qos, packet_id, reason.await?, version, attachment)) };
        self.publications.begin(dev_id, bytes, answer.boxed());
        Ok(())
    }

    /// Waits while the client publishes too fast.
    async fn wait_for_pace(&mut self, unwritten: &mut Vec<u8>) -> Result<(), ReasonCode> {
        loop {
            tokio::select! {
                biased;
                () = self.pace.wait() => return Ok(()),
                answered = self.publications.answer(unwritten), if !self.publications.is_empty() => answered?,
            }
        }
    }

    /// Waits for the publications before this one that it must not come together with.
    async fn wait_for_room(
        &mut self,
        (qos, bytes): (QoS, usize),
        dev_id: Option<&DevId>,
        unwritten: &mut Vec<u8>,
    ) -> Result<(), ReasonCode> {
        if qos == QoS::ExactlyOnce {
            // Whether it has come before is known when the others are answered.
            return self.publications.answer_all(unwritten).await;
        }
        while !self.publications.may_begin(dev_id, bytes) {
            self.publications.answer(unwritten).await?;
        }
        Ok(())
    }

    /// The topic of a publication, which MQTT 5 may abbreviate; none if it is that of an alias for a topic on which the
    /// client may not publish.
    fn topic(&mut self, publish: &PublishPacket) -> Result<Option<String>, ReasonCode> {
        let topic = &publish.topic_name;
        if !topic.is_empty() && !is_valid_topic_name(topic) {
            return Err(ReasonCode::TopicNameInvalid);
        }
        let Some(alias) = publish.topic_alias() else {
            return if topic.is_empty() { Err(ReasonCode::ProtocolError) } else { Ok(Some(topic.clone())) };
        };
        if !(1..=TOPIC_ALIASES_MAX).contains(&alias) {
            return Err(ReasonCode::TopicAliasInvalid);
        }
        self.aliases.resize(TOPIC_ALIASES_MAX.into(), Alias::Unknown);
        let known = &mut self.aliases[usize::from(alias) - 1];
        if !topic.is_empty() {
            let is_allowed = self.connect.permissions.may_publish(topic);
            *known = if is_allowed { Alias::Topic(topic.clone()) } else { Alias::Forbidden };
            return Ok(Some(topic.clone()));
        }
        match known {
            Alias::Unknown => Err(ReasonCode::ProtocolError),
            Alias::Topic(topic) => Ok(Some(topic.clone())),
            Alias::Forbidden => Ok(None),
        }
    }

    /// Hands a downlink to the handler and to the application's subscribers. MQTT 3.1.1 cannot refuse a publication, so
    /// success means there that it was dealt with: a forbidden downlink is dropped, an invalid one causes an event, and
    /// one that could not be stored ends the connection, upon which the client sends it again.
    fn accept(
        &mut self,
        publish: &PublishPacket,
        dev_id: Option<DevId>,
    ) -> Result<BoxFuture<'a, Result<ReasonCode, ReasonCode>>, ReasonCode> {
        let Some(dev_id) = dev_id else {
            self.report_misdirected(&publish.topic_name);
            return Ok(ready(Ok(ReasonCode::NotAuthorized)).boxed());
        };
        let message = Message {
            topic: publish.topic_name.clone(),
            // A copy, because what was read is kept in larger pieces.
            payload: Bytes::copy_from_slice(&publish.payload),
            qos: if publish.qos == QoS::AtMostOnce { DeliveryQos::AtMostOnce } else { DeliveryQos::AtLeastOnce },
            properties: forwarded(&publish.properties).map_err(malformed)?,
            publisher: Some(self.attachment.session.number),
            _memory: None,
        };
        let (context, connect) = (self.context, self.connect);
        let is_told = publish.qos == QoS::AtMostOnce || self.version() >= 5;
        let accepted = publish_downlink(context, connect, dev_id, message).map(move |accepted| match accepted {
            Ok(()) => Ok(ReasonCode::Success),
            Err(refusal) if is_told => Ok(reason_of(refusal)),
            // The client would send it again and again.
            Err(refusal) if !refusal.may_succeed_later() => Ok(ReasonCode::Success),
            Err(refusal) => Err(reason_of(refusal)),
        });
        Ok(accepted.boxed())
    }

    /// Tells the application of a downlink that reaches no device, of which only MQTT 5 can tell the client. A client
    /// that publishes something else than downlinks is told of now and then.
    fn report_misdirected(&mut self, topic: &str) {
        let Connect { permissions, .. } = self.connect;
        if !permissions.may_mean_downlink(topic) {
            return;
        }
        let (app_id, router) = (&permissions.app_id, &self.context.router);
        if self.context.misdirected.take(app_id).is_err() {
            self.untold += 1;
            return;
        }
        let excerpt = &topic[..topic.floor_char_boundary(TOPIC_BYTES_MAX)];
        let error = format!("nothing is published on {excerpt}: downlinks go to {app_id}/devices/<device id>/down");
        let mut body = json!({ "client_id": self.connect.client_id(), "error": error, "time": router.now() });
        let untold = std::mem::take(&mut self.untold);
        if untold > 0 {
            body["suppressed"] = untold.into();
        }
        let topic = format!("{app_id}/events/down/errors");
        // The publication is acknowledged without it, as all that are forbidden.
        router.publish(app_id, [Publication { topic, payload: body.to_string().into() }]).forget();
    }

    fn acknowledged(&self, packet: &ControlPacket) -> Result<Reaction, ReasonCode> {
        let packet_id = packet.acknowledged_id().map_err(malformed)?;
        self.attachment.acknowledge(packet_id);
        Ok(Reaction::Nothing)
    }

    fn released(&self, packet: &ControlPacket) -> Result<Reaction, ReasonCode> {
        let packet_id = packet.acknowledged_id().map_err(malformed)?;
        let reason = match self.attachment.release(packet_id) {
            true => ReasonCode::Success,
            false => ReasonCode::PacketIdentifierNotFound,
        };
        Ok(Reaction::Packet(ControlPacket::acknowledge(PacketType::PubComp, packet_id, reason, self.version())))
    }

    pub(crate) fn disconnect(&self, packet: &ControlPacket) -> Result<Reaction, ReasonCode> {
        if self.version() < 5 {
            return Ok(Reaction::Leaves { with_will: false });
        }
        let disconnect = packet.disconnect().map_err(malformed)?;
        if let Some(seconds) = disconnect.properties.get_session_expiry_interval()
            && let Some(mut state) = self.attachment.state()
        {
            if state.expiry.is_zero() && seconds > 0 {
                return Err(ReasonCode::ProtocolError);
            }
            state.expiry = Duration::from_secs(seconds.into()).min(self.context.session_expiry_max);
        }
        Ok(Reaction::Leaves { with_will: disconnect.reason_code == ReasonCode::DisconnectWithWillMessage })
    }
}

/// The answer to a publication that was accepted or refused, of which the session takes note.
fn answer_to(
    qos: QoS,
    packet_id: u16,
    reason: ReasonCode,
    version: u8,
    attachment: &Attachment,
) -> Option<ControlPacket> {
    let answer = match qos {
        QoS::AtMostOnce => return None,
        QoS::AtLeastOnce => PacketType::PubAck,
        QoS::ExactlyOnce => PacketType::PubRec,
    };
    if answer == PacketType::PubRec && (reason == ReasonCode::Success || version < 5) {
        attachment.begin(packet_id);
    }
    Some(ControlPacket::acknowledge(answer, packet_id, reason, version))
}

/// Hands a downlink to the handler, and to the application's subscribers if it is accepted: what the handler publishes
/// about it comes after it.
pub(crate) async fn publish_downlink(
    context: &Context,
    connect: &Connect,
    dev_id: DevId,
    message: Message,
) -> Result<(), DownlinkRefusal> {
    let app_id = &connect.permissions.app_id;
    let body = message.payload.clone();
    let downlink = PublishedDownlink { app_id: app_id.clone(), dev_id, body, is_late: false, offer: Offer::Once };
    // The downlink is kept then: if the copy for subscribers were not, its sender would only send it twice.
    let accepted = Box::new(|| context.router.route(app_id, [message]).forget());
    context.downlinks.accept(downlink, accepted).await
}

fn reason_of(refusal: DownlinkRefusal) -> ReasonCode {
    match refusal {
        DownlinkRefusal::Unavailable | DownlinkRefusal::Failed => ReasonCode::ImplementationSpecificError,
        DownlinkRefusal::UnknownDevice => ReasonCode::TopicNameInvalid,
        DownlinkRefusal::Invalid => ReasonCode::PayloadFormatInvalid,
    }
}

fn malformed(_: MqttError) -> ReasonCode {
    ReasonCode::MalformedPacket
}

/// Slows down a client that publishes too fast: it is not read from, so its socket fills and nothing is lost.
struct PublishPace {
    per_second_max: u32,
    second: Instant,
    published: u32,
}

impl PublishPace {
    fn new(per_second_max: u32) -> Self {
        Self { per_second_max, second: Instant::now(), published: 0 }
    }

    async fn wait(&mut self) {
        let next = self.second + Duration::from_secs(1);
        if self.published >= self.per_second_max {
            sleep_until(next).await;
        }
        if Instant::now() >= next {
            (self.second, self.published) = (Instant::now(), 0);
        }
        self.published += 1;
    }
}
