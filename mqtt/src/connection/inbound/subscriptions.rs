//! Subscribes a client to filters, and unsubscribes it.

use mqtt5_protocol::{
    PacketType, PropertyId, PropertyValue, QoS, packet::subscribe::TopicFilter, types::ReasonCode,
    validation::is_valid_subscription_filter,
};

use super::{Inbound, Reaction, malformed};
use crate::{
    access::permissions::TOPIC_BYTES_MAX,
    packet::ControlPacket,
    session::{Subscription, message::DeliveryQos},
};

/// Maximum number of filters in one packet; a client may hold fewer subscriptions anyway.
const FILTERS_MAX: usize = 64;

impl Inbound<'_> {
    pub(super) fn subscribe(&self, packet: &ControlPacket) -> Result<Reaction, ReasonCode> {
        let subscribe = packet.subscribe(self.version()).map_err(malformed)?;
        check(subscribe.packet_id, subscribe.filters.len())?;
        let id = match subscribe.properties.get_all(PropertyId::SubscriptionIdentifier) {
            None => None,
            Some([PropertyValue::VariableByteInteger(id @ 1..)]) => Some(*id),
            Some(_) => return Err(ReasonCode::ProtocolError),
        };
        let codes: Result<Vec<u8>, _> = subscribe.filters.iter().map(|filter| self.subscribe_to(filter, id)).collect();
        Ok(Reaction::Packet(ControlPacket::acknowledge_filters(
            PacketType::SubAck,
            subscribe.packet_id,
            &codes?,
            self.version(),
        )))
    }

    /// Subscribes to one filter; returns the code for the SUBACK.
    fn subscribe_to(&self, filter: &TopicFilter, id: Option<u32>) -> Result<u8, ReasonCode> {
        // A filter can be as long as a packet: its length is looked at before its letters.
        if filter.filter.len() > TOPIC_BYTES_MAX {
            return Ok(self.refusal(ReasonCode::QuotaExceeded));
        }
        if !is_valid_subscription_filter(&filter.filter) {
            return if filter.filter.is_empty() {
                Err(ReasonCode::MalformedPacket)
            } else {
                Ok(self.refusal(ReasonCode::TopicFilterInvalid))
            };
        }
        let narrowed = self.connect.permissions.narrow(&filter.filter);
        if narrowed.len() > TOPIC_BYTES_MAX {
            return Ok(self.refusal(ReasonCode::QuotaExceeded));
        }
        if !self.connect.permissions.may_subscribe(&narrowed) {
            return Ok(self.refusal(ReasonCode::NotAuthorized));
        }
        let is_shared = narrowed.starts_with("$share/");
        if is_shared && filter.options.no_local {
            return Err(ReasonCode::ProtocolError);
        }
        // QoS 2 is granted as 1.
        let qos =
            if filter.options.qos == QoS::AtMostOnce { DeliveryQos::AtMostOnce } else { DeliveryQos::AtLeastOnce };
        let subscription = Subscription { qos, no_local: filter.options.no_local, id };
        let application = self.context.router.application(&self.connect.permissions.app_id);
        let is_done = application.is_none_or(|it| it.subscribe(self.attachment, &narrowed, subscription));
        Ok(if is_done { qos as u8 } else { self.refusal(ReasonCode::QuotaExceeded) })
    }

    /// The code of a refused subscription.
    fn refusal(&self, reason: ReasonCode) -> u8 {
        if self.version() < 5 { 0x80 } else { reason.into() }
    }

    pub(super) fn unsubscribe(&self, packet: &ControlPacket) -> Result<Reaction, ReasonCode> {
        let unsubscribe = packet.unsubscribe(self.version()).map_err(malformed)?;
        check(unsubscribe.packet_id, unsubscribe.filters.len())?;
        let application = self.context.router.application(&self.connect.permissions.app_id);
        let remove = |filter: &String| {
            let filter = self.connect.permissions.narrow(filter);
            let is_removed = application.as_ref().is_some_and(|it| it.unsubscribe(self.attachment, &filter));
            u8::from(if is_removed { ReasonCode::Success } else { ReasonCode::NoSubscriptionExisted })
        };
        let codes: Vec<u8> = unsubscribe.filters.iter().map(remove).collect();
        Ok(Reaction::Packet(ControlPacket::acknowledge_filters(
            PacketType::UnsubAck,
            unsubscribe.packet_id,
            &codes,
            self.version(),
        )))
    }
}

fn check(packet_id: u16, filters: usize) -> Result<(), ReasonCode> {
    match (packet_id, filters) {
        (0, _) => Err(ReasonCode::ProtocolError),
        (_, 0) => Err(ReasonCode::MalformedPacket),
        (_, ..=FILTERS_MAX) => Ok(()),
        _ => Err(ReasonCode::QuotaExceeded),
    }
}
