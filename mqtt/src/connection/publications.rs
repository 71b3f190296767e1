//! Publications of a client that are not answered yet: several at a time, because their writes to the store are
//! flushed to disk together.
//!
//! They are answered in the order in which they came (MQTT 4.6.0-2). Those for one device are handed over one after the
//! other, so that it gets them in their order.

use std::collections::VecDeque;

use futures::{FutureExt, StreamExt, future::BoxFuture, stream::FuturesOrdered};
use mqtt5_protocol::types::ReasonCode;
use types::DevId;

use crate::packet::{ControlPacket, limits::RECEIVE_MAX};

/// Number handed over at the same time: as many as an MQTT 5 client may send before one of them is answered.
const COUNT_MAX: usize = RECEIVE_MAX as usize;
/// Bytes that they may have together; one alone may have more.
const BYTES_MAX: usize = 64 * 1024;
/// Approximate memory of each in bytes, besides its topic, payload and properties.
const PUBLICATION_BYTES: usize = 1024;

/// The answer to a publication, if there is one; an error is the reason to disconnect the client.
pub(super) type Answered<'a> = BoxFuture<'a, Result<Option<ControlPacket>, ReasonCode>>;

/// Publications that are not answered yet.
#[derive(Default)]
pub(super) struct Publications<'a> {
    /// None before the first one: most clients never publish, and this takes memory.
    answers: Option<FuturesOrdered<Answered<'a>>>,
    begun: VecDeque<PublicationInProgress>,
    bytes: usize,
}

/// A publication that was begun.
struct PublicationInProgress {
    /// None if it is handed over to nobody.
    dev_id: Option<DevId>,
    bytes: usize,
}

impl<'a> Publications<'a> {
    pub(super) fn is_empty(&self) -> bool {
        self.begun.is_empty()
    }

    /// Returns true if a publication of this size for this device need not wait for others.
    pub(super) fn may_begin(&self, dev_id: Option<&DevId>, bytes: usize) -> bool {
        let is_free = |begun: &PublicationInProgress| dev_id.is_none_or(|dev_id| begun.dev_id.as_ref() != Some(dev_id));
        let has_room = self.begun.len() < COUNT_MAX && self.bytes + bytes + PUBLICATION_BYTES <= BYTES_MAX;
        self.is_empty() || has_room && self.begun.iter().all(is_free)
    }

    pub(super) fn begin(&mut self, dev_id: Option<DevId>, bytes: usize, answered: Answered<'a>) {
        let bytes = bytes + PUBLICATION_BYTES;
        self.bytes += bytes;
        self.begun.push_back(PublicationInProgress { dev_id, bytes });
        self.answers.get_or_insert_default().push_back(answered);
    }

    /// Waits for the first answer, and puts it behind `unwritten`, with the next ones that are there. Can be cancelled
    /// without losing anything.
    pub(super) async fn answer(&mut self, unwritten: &mut Vec<u8>) -> Result<(), ReasonCode> {
        let Some(answers) = &mut self.answers else { return Ok(()) };
        let mut next = answers.next().await;
        while let Some(answer) = next {
            self.bytes -= self.begun.pop_front().map_or(0, |begun| begun.bytes);
            answer?.into_iter().for_each(|packet| packet.append_to(unwritten));
            next = answers.next().now_or_never().flatten();
        }
        Ok(())
    }

    /// Waits for all answers.
    pub(super) async fn answer_all(&mut self, unwritten: &mut Vec<u8>) -> Result<(), ReasonCode> {
        while !self.is_empty() {
            self.answer(unwritten).await?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use futures::future::{pending, ready};

    use super::*;

    fn device(name: &str) -> DevId {
        name.parse().unwrap()
    }

    #[test]
    fn devices_have_one_at_a_time_and_clients_a_few() {
        let mut publications = Publications::default();
        let (one, other) = (device("one"), device("other"));
        assert!(publications.may_begin(Some(&one), 10 * BYTES_MAX), "one alone may have any size");
        publications.begin(Some(one.clone()), 1, pending().boxed());
        assert!(!publications.may_begin(Some(&one), 1));
        assert!(publications.may_begin(Some(&other), 1) && publications.may_begin(None, 1));
        let rest = BYTES_MAX - 1 - 2 * PUBLICATION_BYTES;
        assert!(publications.may_begin(Some(&other), rest) && !publications.may_begin(Some(&other), rest + 1));
        (1..COUNT_MAX).for_each(|_| publications.begin(None, 0, pending().boxed()));
        assert!(!publications.may_begin(Some(&other), 0) && !publications.may_begin(None, 0));
    }

    #[test]
    fn those_that_are_answered_make_room() {
        let (mut publications, mut unwritten) = (Publications::default(), Vec::new());
        let answer = |result| ready(result).boxed();
        publications.begin(Some(device("one")), BYTES_MAX, answer(Ok(Some(ControlPacket::pong()))));
        publications.begin(Some(device("two")), 1, answer(Err(ReasonCode::QuotaExceeded)));
        publications.begin(Some(device("three")), 1, answer(Ok(Some(ControlPacket::pong()))));
        let failed = publications.answer(&mut unwritten).now_or_never();
        assert_eq!((failed, unwritten.len()), (Some(Err(ReasonCode::QuotaExceeded)), 2));
        assert!(publications.may_begin(Some(&device("one")), 1));
        assert_eq!(publications.answer_all(&mut unwritten).now_or_never(), Some(Ok(())));
        assert!(publications.is_empty() && unwritten.len() == 4);
    }
}
