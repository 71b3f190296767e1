//! Uplinks of a batch that are handled together.

use std::sync::Arc;

use server::{auth::Caller, ledger::Charge, serve::PartTurns, usage::Usage};
use tokio::sync::oneshot;
use types::{AppId, ApplicationRight, Clock, Kind, Kinded};

use super::{LINE_BYTES_MAX, Line};
use crate::{
    Error,
    access::{Access, TooMany},
    payload::ExpectedFuel,
    status::Traffic,
    uplink::{Frame, Group, Handled, Reader, Uplinks},
};

/// Maximum number of uplinks in a group, and the number of bytes with which it is full.
const LINES_MAX: usize = 64;
const BYTES_FULL: usize = 64 * 1024;
/// Maximum memory that a group takes, in bytes. An uplink in it may be longer than the room that is left.
pub(super) const GROUP_BYTES_MAX: usize = BYTES_FULL + LINE_BYTES_MAX + LINES_MAX * size_of::<Line>();
/// The cost of an uplink besides its bytes and its functions, in entries of a list.
const UPLINK_ENTRIES: usize = 2;
/// Minimum memory that an answer takes, in bytes.
const ANSWER_BYTES: usize = 256;

/// The parts of the handler that handle a batch, and whose it is.
pub(crate) struct BatchParts {
    pub(crate) access: Access,
    pub(crate) uplinks: Arc<Uplinks>,
    pub(crate) traffic: Arc<Traffic>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) caller: Caller,
    pub(crate) app_id: AppId,
    pub(crate) fuel: ExpectedFuel,
}

/// Uplinks that are read and not handled yet.
#[derive(Default)]
pub(super) struct Lines {
    lines: Vec<Line>,
    bytes: usize,
}

/// The answer to an uplink.
pub(crate) struct BatchAnswer {
    /// Its place in the batch, from 1.
    pub(crate) number: u64,
    /// The result, or the error if it was refused.
    pub(crate) result: Result<Handled, Error>,
}

/// The answers to the uplinks of a group. Their owner is charged for the memory.
pub(crate) struct GroupAnswers {
    pub(crate) answers: Vec<BatchAnswer>,
    pub(crate) charge: Option<Charge>,
    is_last: bool,
}

impl Lines {
    pub(super) fn push(&mut self, line: Line) {
        self.bytes += line.bytes;
        self.lines.push(line);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    pub(super) fn is_full(&self) -> bool {
        self.lines.len() >= LINES_MAX || self.bytes >= BYTES_FULL
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The place of the first one in the batch.
    pub(super) fn first(&self) -> Option<u64> {
        self.lines.first().map(|line| line.number)
    }

    /// Takes the frames of the first lines, as many as are allowed. Also returns the place of each line, and the error
    /// if no frame of it was taken.
    fn admit(self, allowed: usize, too_many: Option<&TooMany>) -> (Vec<Frame>, Vec<(u64, Option<Error>)>) {
        let (mut frames, mut places) = (Vec::new(), Vec::with_capacity(self.lines.len()));
        for (place, Line { number, frame, .. }) in self.lines.into_iter().enumerate() {
            let refusal = match (frame, too_many) {
                (_, Some(too_many)) if place >= allowed => Some(too_many.clone().into()),
                (Err(error), _) => Some(error),
                (Ok(frame), _) => {
                    frames.push(frame);
                    None
                }
            };
            places.push((number, refusal));
        }
        (frames, places)
    }

    /// The answers if an error keeps all of them from being handled.
    pub(super) fn refused(self, error: Error) -> GroupAnswers {
        // Whoever may not send, or is not known any more, need not send on.
        let is_last = matches!(error.kind(), Kind::Unauthenticated | Kind::Denied);
        let error = Arc::new(error);
        let refuse = |Line { number, frame, .. }: Line| {
            let result = Err(frame.err().unwrap_or_else(|| Error::Shared(Arc::clone(&error))));
            BatchAnswer { number, result }
        };
        GroupAnswers { answers: self.lines.into_iter().map(refuse).collect(), charge: None, is_last }
    }
}

impl BatchParts {
    /// Handles uplinks as if their devices had sent them, each as [`Uplinks`] handles any other.
    ///
    /// The right is checked each time, because a batch may take long. Every line counts for the rate limits, also one
    /// that cannot be handled.
    pub(super) async fn handle(
        &self,
        lines: Lines,
        usage: &Usage,
        (previous, published): (Option<oneshot::Receiver<()>>, oneshot::Sender<()>),
    ) -> GroupAnswers {
        let wanted = u32::try_from(lines.lines.len()).unwrap_or(u32::MAX);
        usage.add_entries(UPLINK_ENTRIES * lines.lines.len());
        let caller = || Caller { usage: usage.clone(), ..self.caller.clone() };
        let (allowed, too_many) = match self.access.allow_uplinks(caller(), &self.app_id, wanted).await {
            Ok(allowed) => allowed,
            Err(error) => return lines.refused(error),
        };
        let may_read = self.access.may_read(caller(), &self.app_id, ApplicationRight::Settings).await;
        let reader = if may_read { Reader::Caller } else { Reader::Nobody };
        let (frames, places) = lines.admit(allowed as usize, too_many.as_ref());
        let previous = previous.unwrap_or_else(|| oneshot::channel().1);
        let group = Group { usage, reader, fuel: &self.fuel, previous, published };
        let mut handled = self.handle_frames(frames, group).await.into_iter();
        let answer = |(number, refusal): (u64, Option<Error>)| {
            let result = refusal.map_or_else(|| handled.next(), |error| Some(Err(error)))?;
            Some(BatchAnswer { number, result })
        };
        GroupAnswers { answers: places.into_iter().filter_map(answer).collect(), charge: None, is_last: false }
    }

    async fn handle_frames(&self, frames: Vec<Frame>, group: Group<'_>) -> Vec<Result<Handled, Error>> {
        let now = self.clock.now();
        frames.iter().for_each(|_| self.traffic.uplink.mark(now));
        self.uplinks.handle_several(frames, group).await
    }
}

impl GroupAnswers {
    /// Returns true if the rest of the batch is not handled.
    pub(super) fn is_last(&self) -> bool {
        self.is_last
    }

    /// Charges the owner for the memory until it is sent. Of uplinks for which there is no room, only that is told.
    pub(super) fn held_by(mut self, turns: &PartTurns) -> Self {
        let bytes = |answer: &BatchAnswer| ANSWER_BYTES + answer.result.as_ref().map_or(0, Handled::bytes);
        match turns.charge_response(self.answers.iter().map(bytes).sum()) {
            Ok(charge) => Self { charge, ..self },
            // They were published all the same: an error would have them sent again.
            Err(_) => {
                let handled = self.answers.iter_mut().filter_map(|answer| answer.result.as_mut().ok());
                handled.for_each(|handled| handled.result = None);
                self
            }
        }
    }
}
