//! A message that was delivered or given up, as a ring keeps it and as others see it.

use std::time::Duration;

use types::{DevId, Timestamp};

use crate::{
    message::EVENTS,
    queue::StoredMessage,
    sender::{SendError, SendReceipt},
};

/// Maximum number of bytes of an id of a device.
const DEV_ID_BYTES_MAX: usize = 36;

/// A message that left the queue of its destination: it was delivered, or given up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecentDelivery {
    /// The device that it is about, if it is about one.
    pub dev_id: Option<DevId>,
    /// The event that it reports; empty for what is not about the application.
    pub event: &'static str,
    /// When it was accepted.
    pub accepted: Timestamp,
    /// When the receiver confirmed it, or when it was given up.
    pub at: Timestamp,
    /// True if the receiver confirmed it.
    pub is_delivered: bool,
    /// The HTTP status of the answer to the last attempt, if there was one.
    pub status: Option<u16>,
    /// Number of attempts of the process that delivered it, with the last.
    pub attempts: u32,
    /// Time that the last attempt took.
    pub duration: Duration,
}

/// The same in a ring. Without pointers, so that keeping one costs no allocation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FinishedDelivery {
    identity: u64,
    /// When the message was accepted.
    accepted: Timestamp,
    at: Timestamp,
    duration_us: u32,
    attempts: u16,
    /// Zero for none.
    status: u16,
    /// Place among the events; after the last for none.
    event: u8,
    is_delivered: bool,
    dev_id_bytes: u8,
    dev_id: [u8; DEV_ID_BYTES_MAX],
}

/// The end of an attempt to send a message, and the time that it took.
#[derive(Clone, Copy)]
pub(crate) struct Timing {
    pub(crate) at: Timestamp,
    pub(crate) duration: Duration,
}

/// The message that was sent.
#[derive(Clone, Copy)]
pub(crate) struct About<'a> {
    pub(crate) dev_id: Option<&'a DevId>,
    pub(crate) event: &'a str,
    pub(crate) identity: u64,
    pub(crate) accepted: Timestamp,
}

impl<'a> From<&'a StoredMessage> for About<'a> {
    fn from(message: &'a StoredMessage) -> Self {
        let StoredMessage { dev_id, event, time, identity, .. } = message;
        Self { dev_id: dev_id.as_ref(), event, identity: *identity, accepted: *time }
    }
}

impl FinishedDelivery {
    /// A message, the result of the last attempt, the number of attempts, and the time of the last.
    pub(crate) fn new(
        about: About<'_>,
        (result, attempts): (Result<SendReceipt, &SendError>, u32),
        timing: Timing,
    ) -> Self {
        let mut dev_id = [0; DEV_ID_BYTES_MAX];
        let id = about.dev_id.map(DevId::as_str).filter(|id| id.len() <= dev_id.len()).unwrap_or_default();
        dev_id[..id.len()].copy_from_slice(id.as_bytes());
        let event = EVENTS.iter().position(|event| *event == about.event).unwrap_or(EVENTS.len());
        Self {
            identity: about.identity,
            accepted: about.accepted,
            at: timing.at,
            duration_us: u32::try_from(timing.duration.as_micros()).unwrap_or(u32::MAX),
            attempts: u16::try_from(attempts).unwrap_or(u16::MAX),
            status: result.map_or_else(SendError::status, |taken| taken.status).unwrap_or_default(),
            event: u8::try_from(event).unwrap_or(u8::MAX),
            is_delivered: result.is_ok(),
            dev_id_bytes: u8::try_from(id.len()).unwrap_or_default(),
            dev_id,
        }
    }

    /// Returns true for a message with this identity that was accepted in this time.
    pub(super) fn is(&self, identity: u64, (from, until): (Timestamp, Option<Timestamp>)) -> bool {
        let is_in_time = self.accepted >= from && until.is_none_or(|until| self.accepted <= until);
        self.identity != 0 && self.identity == identity && is_in_time
    }

    pub(super) fn shown(&self) -> RecentDelivery {
        let dev_id = self.dev_id.get(..self.dev_id_bytes.into()).and_then(|id| str::from_utf8(id).ok());
        RecentDelivery {
            dev_id: dev_id.and_then(|id| id.parse().ok()),
            event: EVENTS.get(usize::from(self.event)).copied().unwrap_or_default(),
            accepted: self.accepted,
            at: self.at,
            is_delivered: self.is_delivered,
            status: (self.status > 0).then_some(self.status),
            attempts: self.attempts.into(),
            duration: Duration::from_micros(self.duration_us.into()),
        }
    }
}
