//! MQTT control packets: taken from what has arrived, decoded where the broker needs their contents, and written.

pub(crate) mod limits;
pub(crate) mod relay;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use mqtt5_protocol::{
    FixedHeader, MqttError, PacketType, Properties, PropertyId, PropertyValue,
    packet::{
        MqttPacket, connack::ConnAckPacket, connect::ConnectPacket, disconnect::DisconnectPacket,
        publish::PublishPacket, subscribe::SubscribePacket, unsubscribe::UnsubscribePacket,
    },
    types::ReasonCode,
};

use crate::session::{Sending, message::DeliveryQos};

/// The beginning of a CONNECT of MQTT 3.1, and of one of MQTT 3.1.1.
const MQTT_31: &[u8] = b"\x00\x06MQIsdp\x03";
const MQTT_311: &[u8] = b"\x00\x04MQTT\x04";

/// Properties of a message that subscribers with MQTT 5 get.
const FORWARDED: [PropertyId; 5] = [
    PropertyId::PayloadFormatIndicator,
    PropertyId::ContentType,
    PropertyId::ResponseTopic,
    PropertyId::CorrelationData,
    PropertyId::UserProperty,
];

/// A control packet: the first byte, and everything after the Remaining Length.
#[derive(Clone, Debug)]
pub(crate) struct ControlPacket {
    header: u8,
    body: Bytes,
}

/// Reasons why bytes are not a packet.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PacketError {
    #[error("the packet is too large")]
    TooLarge,
    #[error("the packet is malformed")]
    Malformed(#[from] MqttError),
}

impl PacketError {
    /// The reason code of MQTT 5.
    pub(crate) fn reason(&self) -> ReasonCode {
        match self {
            Self::TooLarge => ReasonCode::PacketTooLarge,
            Self::Malformed(_) => ReasonCode::MalformedPacket,
        }
    }
}

impl ControlPacket {
    /// Takes a packet with a body of at most `bytes_max` from the front of `arrived`; none if it is incomplete.
    pub(crate) fn take_from(arrived: &mut BytesMut, bytes_max: usize) -> Result<Option<Self>, PacketError> {
        let Some((length, header_bytes)) = read_length(arrived)? else { return Ok(None) };
        if length > bytes_max {
            return Err(PacketError::TooLarge);
        }
        if arrived.len() < header_bytes + length {
            return Ok(None);
        }
        let header = arrived[0];
        check_flags(header)?;
        arrived.advance(header_bytes);
        Ok(Some(Self { header, body: arrived.split_to(length).freeze() }))
    }

    /// Appends the packet as it is sent.
    pub(crate) fn append_to(&self, bytes: &mut Vec<u8>) {
        append_header(bytes, self.header, self.body.len());
        bytes.extend_from_slice(&self.body);
    }

    /// The packet's type, unless MQTT defines no such type.
    pub(crate) fn packet_type(&self) -> Option<PacketType> {
        PacketType::from_u8(self.header >> 4)
    }

    /// Decodes a CONNECT. MQTT 3.1 has another name for the protocol and is otherwise like 3.1.1.
    pub(crate) fn connect(&self) -> Result<ConnectPacket, MqttError> {
        let header = self.fixed_header(PacketType::Connect);
        let Some(rest) = self.body.strip_prefix(MQTT_31) else {
            let packet = ConnectPacket::decode_body(&mut self.body.clone(), &header)?;
            // Level 3 belongs to the other name.
            let version = if packet.protocol_version == 3 { 0 } else { packet.protocol_version };
            return Ok(ConnectPacket { protocol_version: version, ..packet });
        };
        let packet = ConnectPacket::decode_body(&mut MQTT_311.chain(rest), &header)?;
        Ok(ConnectPacket { protocol_version: 3, ..packet })
    }

    pub(crate) fn publish(&self, version: u8) -> Result<PublishPacket, MqttError> {
        let header = self.fixed_header(PacketType::Publish);
        PublishPacket::decode_body_with_version(&mut self.body.clone(), &header, version.max(4))
    }

    pub(crate) fn subscribe(&self, version: u8) -> Result<SubscribePacket, MqttError> {
        let header = self.fixed_header(PacketType::Subscribe);
        let packet = SubscribePacket::decode_body_with_version(&mut self.body.clone(), &header, version.max(4))?;
        if version < 5 {
            check_requested_qos(self.body.slice(2..))?;
        }
        Ok(packet)
    }

    pub(crate) fn unsubscribe(&self, version: u8) -> Result<UnsubscribePacket, MqttError> {
        let header = self.fixed_header(PacketType::Unsubscribe);
        UnsubscribePacket::decode_body_with_version(&mut self.body.clone(), &header, version.max(4))
    }

    pub(crate) fn disconnect(&self) -> Result<DisconnectPacket, MqttError> {
        DisconnectPacket::decode_body(&mut self.body.clone(), &self.fixed_header(PacketType::Disconnect))
    }

    /// The packet identifier at the start of an acknowledgement. Its reason changes nothing.
    pub(crate) fn acknowledged_id(&self) -> Result<u16, MqttError> {
        let [high, low, ..] = &*self.body else {
            return Err(MqttError::MalformedPacket("an acknowledgement needs a packet identifier".to_owned()));
        };
        Ok(u16::from_be_bytes([*high, *low]))
    }

    pub(crate) fn encode(packet: &impl MqttPacket) -> Result<Self, MqttError> {
        let mut body = Vec::new();
        packet.encode_body(&mut body)?;
        Ok(Self { header: (u8::from(packet.packet_type()) << 4) | packet.flags(), body: body.into() })
    }

    /// PUBACK, PUBREC, PUBREL or PUBCOMP. Only MQTT 5 has room for the reason.
    pub(crate) fn acknowledge(packet_type: PacketType, packet_id: u16, reason: ReasonCode, version: u8) -> Self {
        let mut body = packet_id.to_be_bytes().to_vec();
        if version >= 5 && reason != ReasonCode::Success {
            body.push(reason.into());
        }
        let flags = if packet_type == PacketType::PubRel { 2 } else { 0 };
        Self { header: (u8::from(packet_type) << 4) | flags, body: body.into() }
    }

    /// SUBACK or UNSUBACK with one code for each filter; for an UNSUBACK, MQTT 3.1.1 has none.
    pub(crate) fn acknowledge_filters(packet_type: PacketType, packet_id: u16, codes: &[u8], version: u8) -> Self {
        let mut body = packet_id.to_be_bytes().to_vec();
        if version >= 5 {
            body.push(0);
        }
        if version >= 5 || packet_type == PacketType::SubAck {
            body.extend_from_slice(codes);
        }
        Self { header: u8::from(packet_type) << 4, body: body.into() }
    }

    /// PINGRESP.
    pub(crate) fn pong() -> Self {
        Self { header: u8::from(PacketType::PingResp) << 4, body: Bytes::new() }
    }

    /// A CONNACK in the client's protocol version; before MQTT 5 without properties.
    pub(crate) fn connack(
        version: u8,
        is_present: bool,
        reason: ReasonCode,
        properties: Properties,
    ) -> Result<Self, MqttError> {
        if version < 5 {
            // MQTT 3.1 does not know the flag.
            return Self::encode(&ConnAckPacket::new_v311(is_present && version == 4, reason));
        }
        Self::encode(&ConnAckPacket { properties, ..ConnAckPacket::new(is_present, reason) })
    }

    /// The server's DISCONNECT of MQTT 5.
    pub(crate) fn server_disconnect(reason: ReasonCode) -> Result<Self, MqttError> {
        Self::encode(&DisconnectPacket::new(reason))
    }

    fn fixed_header(&self, packet_type: PacketType) -> FixedHeader {
        FixedHeader::new(packet_type, self.header & 0x0f, u32::try_from(self.body.len()).unwrap_or(u32::MAX))
    }
}

/// Appends a PUBLISH. By hand, because every message passes here for every subscriber: there is no copy but this one.
pub(crate) fn append_publish(bytes: &mut Vec<u8>, sending: &Sending, version: u8) -> Result<(), MqttError> {
    let message = &sending.delivery.message;
    let properties = publish_properties(sending, version)?;
    let id_bytes = if sending.packet_id.is_some() { 2 } else { 0 };
    let length = 2 + message.topic.len() + id_bytes + properties.len() + message.payload.len();
    let qos = u8::from(sending.delivery.qos == DeliveryQos::AtLeastOnce) << 1;
    append_header(bytes, 0x30 | (u8::from(sending.is_duplicate) << 3) | qos, length);
    // Topics are at most a few hundred bytes long.
    bytes.put_u16(message.topic.len() as u16);
    bytes.put_slice(message.topic.as_bytes());
    sending.packet_id.into_iter().for_each(|packet_id| bytes.put_u16(packet_id));
    bytes.put_slice(&properties);
    bytes.put_slice(&message.payload);
    Ok(())
}

/// The encoded properties of a PUBLISH with their length; empty before MQTT 5.
fn publish_properties(sending: &Sending, version: u8) -> Result<Vec<u8>, MqttError> {
    let ids = &sending.delivery.subscription_ids;
    match &sending.delivery.message.properties {
        _ if version < 5 => Ok(Vec::new()),
        None if ids.is_empty() => Ok(vec![0]),
        properties => {
            let mut properties = properties.as_deref().cloned().unwrap_or_default();
            for id in ids {
                properties.add(PropertyId::SubscriptionIdentifier, PropertyValue::VariableByteInteger(*id))?;
            }
            let mut encoded = Vec::new();
            properties.encode(&mut encoded)?;
            Ok(encoded)
        }
    }
}

/// The properties that are passed on to subscribers, if there are any.
pub(crate) fn forwarded(properties: &Properties) -> Result<Option<Box<Properties>>, MqttError> {
    let mut kept = Properties::new();
    for (id, value) in properties.iter().filter(|(id, _)| FORWARDED.contains(id)) {
        kept.add(id, value.clone())?;
    }
    Ok((!kept.is_empty()).then(|| Box::new(kept)))
}

fn append_header(bytes: &mut Vec<u8>, header: u8, mut length: usize) {
    bytes.push(header);
    loop {
        // Seven bits at a time; the top bit means that another byte follows.
        let low = (length & 0x7f) as u8;
        length >>= 7;
        if length == 0 {
            return bytes.push(low);
        }
        bytes.push(low | 0x80);
    }
}

/// Only those of a PUBLISH say something.
fn check_flags(header: u8) -> Result<(), MqttError> {
    let expected = match PacketType::from_u8(header >> 4) {
        Some(PacketType::Publish) => return Ok(()),
        Some(PacketType::PubRel | PacketType::Subscribe | PacketType::Unsubscribe) => 2,
        _ => 0,
    };
    if header & 0x0f == expected {
        return Ok(());
    }
    Err(MqttError::MalformedPacket("the flags are not those of the packet's type".to_owned()))
}

/// Refuses QoS 3 in the filters of a SUBSCRIBE of MQTT 3, which decoding takes for another.
fn check_requested_qos(mut filters: Bytes) -> Result<(), MqttError> {
    let malformed = |_| MqttError::MalformedPacket("a subscription is cut short".to_owned());
    while filters.has_remaining() {
        let length = filters.try_get_u16().map_err(malformed)?;
        filters.advance(filters.len().min(length.into()));
        if filters.try_get_u8().map_err(malformed)? > 2 {
            return Err(MqttError::MalformedPacket("a subscription asks for an unknown QoS".to_owned()));
        }
    }
    Ok(())
}

/// The Remaining Length, one to four bytes of seven bits each, and where it ends; none if it is incomplete.
fn read_length(arrived: &[u8]) -> Result<Option<(usize, usize)>, MqttError> {
    let mut length = 0;
    for (at, shift) in [(1, 0), (2, 7), (3, 14), (4, 21)] {
        let Some(byte) = arrived.get(at) else { return Ok(None) };
        length |= usize::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Ok(Some((length, at + 1)));
        }
    }
    Err(MqttError::MalformedPacket("the length has more than four bytes".to_owned()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn take(bytes: &[u8]) -> Result<Option<ControlPacket>, PacketError> {
        ControlPacket::take_from(&mut bytes.into(), 300)
    }

    #[test]
    fn reads_back_packets_with_every_size_of_remaining_length() {
        for length in [0, 1, 127, 128, 300] {
            let packet = ControlPacket { header: 0x30, body: vec![7; length].into() };
            let mut bytes = Vec::new();
            packet.append_to(&mut bytes);
            for end in 0..bytes.len() {
                assert!(take(&bytes[..end]).unwrap().is_none(), "{end} of {length}");
            }
            let again = take(&bytes).unwrap().unwrap();
            assert_eq!((again.header, again.body), (packet.header, packet.body));
        }
    }

    #[test]
    fn refuses_packets_that_are_too_large_or_endless() {
        assert!(matches!(take(&[0x30, 0xad, 0x02]), Err(PacketError::TooLarge)));
        assert!(matches!(take(&[0x30, 0xff, 0xff, 0xff, 0xff]), Err(PacketError::Malformed(_))));
    }

    #[test]
    fn answers_in_the_protocol_version_of_the_client() {
        let code = |version| {
            let reason = ReasonCode::BadUsernameOrPassword;
            ControlPacket::connack(version, false, reason, Properties::new()).unwrap().body[1]
        };
        assert_eq!((code(3), code(4), code(5)), (4, 4, 0x86));
        let is_present = |version| {
            ControlPacket::connack(version, true, ReasonCode::Success, Properties::new()).unwrap().body[0] == 1
        };
        assert_eq!((is_present(3), is_present(4), is_present(5)), (false, true, true));
    }

    #[test]
    fn decodes_a_connect_of_mqtt_3_1() {
        let body = [MQTT_31, b"\x82\x00\x3c\x00\x02id\x00\x04user"].concat();
        let packet = ControlPacket { header: 0x10, body: body.into() }.connect();
        // The flags are those of a user name and no password, with a clean session.
        let packet = packet.unwrap();
        assert_eq!((packet.protocol_version, packet.clean_start, packet.keep_alive), (3, true, 60));
        assert_eq!((packet.client_id.as_str(), packet.username.as_deref()), ("id", Some("user")));
    }

    proptest! {
        // Conformance: Truncated packets, wrong identifiers, flags, QoS and text: closed
        #[test]
        fn decodes_any_body_without_panicking(header: u8, body: Vec<u8>, version in 3..6_u8) {
            let packet = ControlPacket { header, body: body.into() };
            let _ = (packet.connect(), packet.publish(version), packet.disconnect(), packet.acknowledged_id());
            let packet = ControlPacket { header: 0x82, ..packet };
            let _ = (packet.subscribe(version), packet.unsubscribe(version));
        }
    }
}
