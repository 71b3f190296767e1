//! The packets of MQTT 5 and 3.1.1. Those of the message path are written here, and the others by the library, which
//! also reads them all.

mod v4;
mod v5;

use bytes::{BufMut, Bytes, BytesMut};

use super::{endpoint::Endpoint, lost::Lost, protocol::Protocol};

/// Maximum size of a packet that is received, in bytes. Events of ChirpStack have a few thousand.
pub const PACKET_BYTES_MAX: u32 = 1024 * 1024;
/// The largest packet that there is, in bytes.
const PROTOCOL_PACKET_BYTES_MAX: u32 = 268_435_460;
/// The longest topic that there is, in bytes.
pub(super) const TOPIC_BYTES_MAX: usize = u16::MAX as usize;
/// Room for the header of a PUBLISH packet, besides topic and payload.
pub(super) const HEADER_BYTES_MAX: usize = 16;
/// The broker closes a connection that was silent for one and a half times as long, in seconds.
pub(super) const KEEP_ALIVE_S: u16 = 30;

const PUBLISH_AT_LEAST_ONCE: u8 = 0x32;
const PUBACK: [u8; 2] = [0x40, 2];
const PINGREQ: [u8; 2] = [0xc0, 0];
const DISCONNECT: [u8; 2] = [0xe0, 0];

/// Purpose of a connection.
#[derive(Clone, Copy, Debug)]
pub enum Role {
    /// Receives up to so many messages that are not acknowledged yet. A broker keeps the session if it is told to.
    Subscriber {
        /// The number that the broker is told.
        in_flight_max: u16,
        /// True if the broker is to keep the session.
        keeps_session: bool,
    },
    /// Publishes messages that the broker confirms.
    Publisher,
    /// Does both for a program, whose threads acknowledge messages without waiting.
    Program,
}

/// A packet from the broker.
#[derive(Debug)]
pub enum Event {
    /// The broker accepted the connection.
    Connected(Connected),
    /// The response to the subscription in the packet of this number.
    Subscribed {
        /// The number.
        packet: u16,
        /// The reason why it was refused, if it was.
        refusal: Option<String>,
    },
    /// The response to the end of a subscription.
    Unsubscribed,
    /// A message.
    Received(Received),
    /// The message in the packet of this number was confirmed, or refused.
    Confirmed {
        /// The number.
        packet: u16,
        /// The reason why it was refused, if it was.
        refusal: Option<String>,
    },
    /// The response to a ping.
    Pong,
}

/// The broker's response to a connection request.
#[derive(Clone, Debug)]
pub struct Connected {
    /// True if the broker has kept a session.
    pub(super) has_session: bool,
    pub(super) has_shared_subscriptions: bool,
    pub(super) packet_bytes_max: u32,
    /// Maximum number of messages that it has not confirmed yet.
    pub(super) in_flight_max: u16,
    pub(super) keep_alive_s: u16,
}

/// A message as it came in.
#[derive(Debug)]
pub struct Received {
    /// Its topic.
    pub topic: String,
    /// Its content.
    pub payload: Bytes,
    /// The number to acknowledge; `None` if the message was sent at most once.
    pub packet: Option<u16>,
    /// True if the broker sent it before.
    pub(super) is_duplicate: bool,
    /// True if it was published before the subscription.
    pub(super) is_retained: bool,
}

impl Protocol {
    pub(super) fn connect(self, endpoint: &Endpoint, role: Role, out: &mut BytesMut) -> Result<(), Lost> {
        match self {
            Self::V5 => v5::connect(endpoint, role, out),
            Self::V4 => v4::connect(endpoint, role, out),
        }
    }

    pub(super) fn subscribe(self, packet: u16, filters: &[String], out: &mut BytesMut) -> Result<(), Lost> {
        match self {
            Self::V5 => v5::subscribe(packet, filters, out),
            Self::V4 => v4::subscribe(packet, filters, out),
        }
    }

    pub(super) fn unsubscribe(self, packet: u16, filters: &[String], out: &mut BytesMut) -> Result<(), Lost> {
        match self {
            Self::V5 => v5::unsubscribe(packet, filters, out),
            Self::V4 => v4::unsubscribe(packet, filters, out),
        }
    }

    /// A message that the broker has to confirm. Whoever calls it has checked the size.
    pub(super) fn publish(self, packet: u16, topic: &str, payload: &[u8], out: &mut BytesMut) {
        let properties: &[u8] = if self == Self::V5 { &[0] } else { &[] };
        let length = 2 + topic.len() + 2 + properties.len() + payload.len();
        out.reserve(HEADER_BYTES_MAX + length);
        out.put_u8(PUBLISH_AT_LEAST_ONCE);
        put_length(length, out);
        out.put_u16(topic.len() as u16);
        out.put_slice(topic.as_bytes());
        out.put_u16(packet);
        out.put_slice(properties);
        out.put_slice(payload);
    }

    /// The next event, once all of its packet has come.
    pub(super) fn read(self, input: &mut BytesMut) -> Result<Option<Event>, Lost> {
        match self {
            Self::V5 => v5::read(input),
            Self::V4 => v4::read(input),
        }
    }
}

pub(super) fn acknowledge(packet: u16, out: &mut BytesMut) {
    out.put_slice(&PUBACK);
    out.put_u16(packet);
}

pub(super) fn ping(out: &mut BytesMut) {
    out.put_slice(&PINGREQ);
}

pub(super) fn disconnect(out: &mut BytesMut) {
    out.put_slice(&DISCONNECT);
}

/// Writes a length with seven bits in each byte, the lowest first.
fn put_length(mut length: usize, out: &mut BytesMut) {
    while length >= 0x80 {
        out.put_u8((length & 0x7f) as u8 | 0x80);
        length >>= 7;
    }
    out.put_u8(length as u8);
}

fn unwritable(error: impl std::fmt::Display) -> Lost {
    Lost::because(format!("a packet cannot be written: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The library reads what is written here.
    #[test]
    fn publications_are_read_as_they_were_written() {
        for protocol in [Protocol::V5, Protocol::V4] {
            for bytes in [0, 1, 100, 20_000, 300_000] {
                let (payload, mut out) = (vec![7; bytes], BytesMut::new());
                protocol.publish(513, "a/é", &payload, &mut out);
                assert!(out.len() <= HEADER_BYTES_MAX + "a/é".len() + bytes);
                for length in 0..out.len().min(5) {
                    assert!(protocol.read(&mut out[..length].into()).unwrap().is_none(), "{length} bytes are enough");
                }
                let Ok(Some(Event::Received(received))) = protocol.read(&mut out) else { panic!("{protocol:?}") };
                assert_eq!((received.topic.as_str(), received.packet), ("a/é", Some(513)));
                assert!(received.payload == payload && !received.is_duplicate && out.is_empty());
            }
        }
    }

    #[test]
    fn acknowledgements_confirm_their_packet() {
        for protocol in [Protocol::V5, Protocol::V4] {
            let mut out = BytesMut::new();
            acknowledge(258, &mut out);
            let event = protocol.read(&mut out);
            assert!(matches!(event, Ok(Some(Event::Confirmed { packet: 258, refusal: None }))), "{event:?}");
        }
    }
}
