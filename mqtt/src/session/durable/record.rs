//! The stored forms of a session and of a message.

use std::{collections::HashMap, sync::Arc};

use bytes::{Buf, BufMut, Bytes};
use mqtt5_protocol::Properties;
use serde::{Deserialize, Serialize};

/// A session. Its messages are in the log of its application.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SessionRecord {
    pub(crate) filters: HashMap<String, SubscriptionRecord>,
    pub(crate) expiry_ms: u64,
    /// None while the client is connected.
    pub(crate) away_since_ms: Option<u64>,
    /// The messages of the log that were sent and not acknowledged.
    pub(crate) in_flight: Vec<u64>,
    /// The packet identifiers under which they were sent.
    #[serde(default)]
    pub(crate) packet_ids: Vec<u16>,
    /// The first message of the log that was not sent.
    pub(crate) waiting_from: u64,
    /// Messages of the log with smaller numbers may have been sent by a process that was killed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) sent_below: u64,
    /// The packet identifier of the message that was sent last: those that follow get the next ones, also when they are
    /// sent again.
    #[serde(default, skip_serializing_if = "is_none")]
    pub(crate) last_packet_id: u16,
    /// Number of dropped messages that the client has not been told about.
    pub(crate) dropped: u64,
    /// Differs from that of earlier sessions with the same id, whose messages may still be in the log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) generation: Option<String>,
    /// Stands for the credential of its client.
    #[serde(default, rename = "holder")]
    pub(crate) session_owner: String,
}

/// The options of a subscription.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SubscriptionRecord {
    pub(crate) qos: u8,
    pub(crate) no_local: bool,
    pub(crate) id: Option<u32>,
}

/// A message, and who gets it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LogRecord {
    pub(crate) topic: String,
    pub(crate) payload: Bytes,
    pub(crate) properties: Option<Box<Properties>>,
    /// The sessions as [`SessionRecord::recipient`] names them, and the identifiers of the subscriptions that matched.
    pub(crate) recipients: Vec<(Arc<str>, Vec<u32>)>,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

fn is_none(packet_id: &u16) -> bool {
    *packet_id == 0
}

/// About how much memory the name of a session takes among the recipients, and its place among their owners.
const RECIPIENT_BYTES: usize = size_of::<(Arc<str>, Vec<u32>)>() + size_of::<usize>();

/// JSON header in front of the payload.
#[derive(Deserialize)]
struct Header {
    topic: String,
    recipients: Vec<(String, Vec<u32>)>,
    #[serde(default)]
    properties: Vec<u8>,
}

/// The same without copies.
#[derive(Serialize)]
struct EncodedHeader<'a> {
    topic: &'a str,
    recipients: Vec<(&'a str, &'a [u32])>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    properties: Vec<u8>,
}

impl SessionRecord {
    pub(crate) fn encode(&self) -> Vec<u8> {
        // Nothing in it can fail to be written.
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// None if it is damaged, or of a version that this one does not know: then the session is lost, not the client.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        serde_json::from_slice(bytes)
            .inspect_err(|error| tracing::error!(%error, "cannot read an MQTT session in the store"))
            .ok()
    }

    /// Returns the name of the session among the recipients of a message.
    pub(crate) fn recipient(&self, id: &str) -> String {
        match &self.generation {
            None => id.to_owned(),
            Some(generation) => format!("{id}:{generation}"),
        }
    }

    /// Messages of the log with smaller numbers may have been sent; `below` is a number that none of them has. While
    /// the client was connected, the record does not say which.
    pub(crate) fn sent_below(&self, below: u64) -> u64 {
        if self.away_since_ms.is_none() { below } else { self.sent_below }
    }

    /// The packet identifier of the message that was sent last. Earlier versions stored only those in flight.
    pub(crate) fn last_packet_id(&self) -> u16 {
        if self.last_packet_id == 0 { self.packet_ids.last().copied().unwrap_or_default() } else { self.last_packet_id }
    }

    /// The packet identifier of a message that is in flight.
    pub(crate) fn packet_id(&self, number: u64) -> Option<u16> {
        let at = self.in_flight.iter().position(|in_flight| *in_flight == number)?;
        self.packet_ids.get(at).copied()
    }

    /// Returns true if the client has not acknowledged this message of the log.
    pub(crate) fn owes(&self, number: u64) -> bool {
        number >= self.waiting_from || self.in_flight.contains(&number)
    }
}

impl LogRecord {
    pub(crate) fn new(
        topic: &str,
        payload: &Bytes,
        properties: Option<&Properties>,
        recipients: Vec<(Arc<str>, Vec<u32>)>,
    ) -> Self {
        let properties = properties.cloned().map(Box::new);
        Self { topic: topic.to_owned(), payload: payload.clone(), properties, recipients }
    }

    /// About how long it is when it is encoded.
    pub(crate) fn bytes(&self) -> usize {
        let properties = self.properties.as_ref().map_or(0, |properties| properties.encoded_len());
        let recipients = self.recipients.iter().map(|(name, ids)| name.len() + 11 * ids.len() + 8);
        self.topic.len() + self.payload.len() + 4 * properties + recipients.sum::<usize>()
    }

    /// About how much memory it takes until it is saved, besides its payload.
    pub(crate) fn memory_bytes(&self) -> usize {
        size_of::<Self>() + self.topic.len() + self.recipients.len() * RECIPIENT_BYTES
    }

    /// It is encoded without the recipients that are `owned` no longer; none if that are all.
    pub(crate) fn for_recipients(&self, owned: impl Iterator<Item = bool>) -> Option<Bytes> {
        let owned = self.recipients.iter().zip(owned).filter(|(_, is_owned)| *is_owned);
        let recipients: Vec<_> = owned.map(|((name, ids), _)| (&**name, &**ids)).collect();
        (!recipients.is_empty()).then(|| self.encode(recipients))
    }

    fn encode(&self, recipients: Vec<(&str, &[u32])>) -> Bytes {
        let mut properties = Vec::new();
        if let Some(present) = &self.properties {
            // They were decoded from a packet, so they can be encoded.
            _ = present.encode(&mut properties);
        }
        let header = EncodedHeader { topic: &self.topic, recipients, properties };
        let header = serde_json::to_vec(&header).unwrap_or_default();
        let mut bytes = Vec::with_capacity(4 + header.len() + self.payload.len());
        bytes.put_u32(u32::try_from(header.len()).unwrap_or_default());
        bytes.extend_from_slice(&header);
        bytes.extend_from_slice(&self.payload);
        bytes.into()
    }

    /// None if it is damaged.
    pub(crate) fn decode(mut bytes: Bytes) -> Option<Self> {
        let length = bytes.try_get_u32().ok()? as usize;
        let header: Header = serde_json::from_slice(bytes.get(..length)?).ok()?;
        let properties = (!header.properties.is_empty()).then_some(header.properties);
        let properties = properties.and_then(|encoded| Properties::decode(&mut &encoded[..]).ok()).map(Box::new);
        let payload = bytes.split_off(length);
        let recipients = header.recipients.into_iter().map(|(name, ids)| (name.into(), ids)).collect();
        Some(Self { topic: header.topic, payload, properties, recipients })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn reads_back_a_message_with_everything_it_has() {
        let mut properties = Properties::new();
        properties.add_user_property("from".to_owned(), "me".to_owned());
        for properties in [None, Some(Box::new(properties))] {
            let record = LogRecord {
                topic: "my-app/devices/dev/up".to_owned(),
                payload: vec![0, 1, 0xff].into(),
                properties,
                recipients: vec![("one".into(), vec![]), ("two".into(), vec![1, 268_435_455])],
            };
            assert_eq!(LogRecord::decode(record.for_recipients([true, true].into_iter()).unwrap()), Some(record));
        }
    }

    proptest! {
        #[test]
        fn decodes_anything_without_panicking(bytes: Vec<u8>) {
            let _ = (LogRecord::decode(bytes.clone().into()), SessionRecord::decode(&bytes));
        }
    }
}
