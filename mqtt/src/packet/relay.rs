//! Decodes and forwards arbitrary bytes from a client, as the broker would: an entry point for fuzzing.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use mqtt5_protocol::{PacketType, packet::publish::PublishPacket};

use super::{ControlPacket, append_publish, forwarded};
use crate::{
    packet::limits::CLIENT_PACKET_BYTES_MAX,
    session::{
        Sending,
        message::{Delivery, DeliveryQos, Message},
    },
};

/// The topic and the payload of a message.
type Content = (String, Bytes);

/// Decodes packets of a client that speaks this version. Of each message, returns what was read and what a subscriber
/// reads when it is passed on.
#[doc(hidden)]
pub fn relay(bytes: &[u8], version: u8) -> Vec<[Content; 2]> {
    let mut arrived = BytesMut::from(bytes);
    let mut relayed = Vec::new();
    while let Ok(Some(packet)) = ControlPacket::take_from(&mut arrived, CLIENT_PACKET_BYTES_MAX as usize) {
        match packet.packet_type() {
            Some(PacketType::Connect) => drop(packet.connect()),
            Some(PacketType::Subscribe) => drop(packet.subscribe(version)),
            Some(PacketType::Unsubscribe) => drop(packet.unsubscribe(version)),
            Some(PacketType::Disconnect) => drop(packet.disconnect()),
            Some(PacketType::Publish) => {
                relayed.extend(packet.publish(version).ok().map(|read| pass_on(read, version)));
            }
            _ => drop(packet.acknowledged_id()),
        }
    }
    relayed
}

fn pass_on(read: PublishPacket, version: u8) -> [Content; 2] {
    let content = (read.topic_name.clone(), Bytes::copy_from_slice(&read.payload));
    let message = Message {
        topic: read.topic_name,
        payload: content.1.clone(),
        qos: DeliveryQos::AtLeastOnce,
        properties: forwarded(&read.properties).unwrap_or_default(),
        publisher: None,
        _memory: None,
    };
    let (message, qos) = (Arc::new(message), DeliveryQos::AtLeastOnce);
    let delivery = Delivery { message, qos, subscription_ids: vec![1], stored: None };
    let sending = Sending { delivery, packet_id: Some(1), is_duplicate: false };
    let mut written = Vec::new();
    let again = append_publish(&mut written, &sending, version).ok().and_then(|()| {
        let packet = ControlPacket::take_from(&mut written.as_slice().into(), usize::MAX).ok()??;
        let read = packet.publish(version).ok()?;
        Some((read.topic_name, Bytes::copy_from_slice(&read.payload)))
    });
    [content, again.unwrap_or_default()]
}
