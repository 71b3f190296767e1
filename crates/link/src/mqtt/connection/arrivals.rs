//! The messages that came on a connection, in their order, until they are acknowledged.
//!
//! MQTT wants acknowledgements in this order (4.6.0-2), and brokers look for the message of each from the oldest on. So
//! an acknowledgement is held until those of all earlier messages have left, but not for ever: a message that takes long
//! is passed over, and its own acknowledgement leaves when it is done. How many messages a broker sends at once need not
//! be known for this: many say it only in MQTT 5, and messages that were passed over count, too.

use std::{collections::VecDeque, time::Duration};

use bytes::BytesMut;
use tokio::time::Instant;

use super::super::packet;

/// Maximum time for which an acknowledgement is held while there are at most [`FEW`] messages. A broker that sends fewer
/// messages at once than [`HELD_MIN`] waits for it.
pub(super) const HELD_MAX: Duration = Duration::from_millis(200);
/// The same while there are more. Then a message takes as long as all that wait before it: thousands, a second on a slow
/// machine. It is not longer, because a broker whose window is full of messages that take minutes waits for it.
const HELD_MAX_OF_MANY: Duration = Duration::from_secs(2);
const FEW: usize = 64;
/// No message is passed over for fewer than these, unless one of them was held for [`HELD_MAX`].
const HELD_MIN: usize = 8;

/// The messages that hold back others, or are held back.
#[derive(Default)]
pub(super) struct Arrivals {
    messages: VecDeque<Arrival>,
    /// The number of the first of them. Earlier ones have left, or were passed over.
    first: u64,
    /// Number of messages that are done and wait for an earlier one.
    held: usize,
}

struct Arrival {
    packet: u16,
    state: ArrivalState,
}

enum ArrivalState {
    InProgress,
    Done { since: Instant },
    GivenUp,
}

/// The outcome of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Settled {
    /// The number that it got when it came.
    pub(super) number: u64,
    pub(super) packet: u16,
    /// True if the message is to be acknowledged. If not, the broker sends it again on the next connection.
    pub(super) is_done: bool,
}

impl Arrivals {
    /// Numbers a message that has come.
    pub(super) fn add(&mut self, packet: u16) -> u64 {
        self.messages.push_back(Arrival { packet, state: ArrivalState::InProgress });
        self.first + self.messages.len() as u64 - 1
    }

    /// Takes note of the outcome of a message, and appends the acknowledgements that may leave now to `out`.
    pub(super) fn settle(&mut self, settled: Settled, now: Instant, out: &mut BytesMut) {
        let Settled { number, packet, is_done } = settled;
        if number < self.first {
            // It was passed over.
            if is_done {
                packet::acknowledge(packet, out);
            }
            return;
        }
        if let Some(message) = self.messages.get_mut((number - self.first) as usize) {
            message.state = if is_done { ArrivalState::Done { since: now } } else { ArrivalState::GivenUp };
            self.held += usize::from(is_done);
        }
        self.release(out);
    }

    /// Returns true if acknowledgements are being held.
    pub(super) fn is_holding(&self) -> bool {
        self.held > 0
    }

    /// Puts acknowledgements that were held for long enough behind `out`, with all before them.
    pub(super) fn release_late(&mut self, now: Instant, out: &mut BytesMut) {
        let held_max = if self.messages.len() > FEW { HELD_MAX_OF_MANY } else { HELD_MAX };
        let last = self.messages.iter().rposition(|message| message.is_late(now, held_max));
        self.take(last.map_or(0, |last| last + 1), out);
        self.release(out);
    }

    /// Puts all that are held behind `out`.
    pub(super) fn release_all(&mut self, out: &mut BytesMut) {
        let last = self.messages.iter().rposition(|message| matches!(message.state, ArrivalState::Done { .. }));
        self.take(last.map_or(0, |last| last + 1), out);
    }

    /// Puts those behind `out` that no message holds back, or too few.
    fn release(&mut self, out: &mut BytesMut) {
        while let Some(first) = self.messages.front()
            && (first.is_over() || self.holds_too_many())
        {
            self.take(1, out);
        }
    }

    /// Returns true if more than half of a few messages wait for others, or seven eighths of many, since the broker may
    /// send no more before they leave.
    fn holds_too_many(&self) -> bool {
        let all = self.messages.len();
        let in_progress_min = if all > FEW { all / 8 } else { all.div_ceil(2) };
        self.held >= HELD_MIN && all - self.held < in_progress_min
    }

    /// Acknowledges the first messages, or passes them over.
    fn take(&mut self, count: usize, out: &mut BytesMut) {
        self.first += count as u64;
        for Arrival { packet, state } in self.messages.drain(..count) {
            match state {
                ArrivalState::InProgress => crate::metrics::passed_over(),
                ArrivalState::GivenUp => {}
                ArrivalState::Done { .. } => {
                    packet::acknowledge(packet, out);
                    self.held -= 1;
                }
            }
        }
    }
}

impl Arrival {
    fn is_over(&self) -> bool {
        !matches!(self.state, ArrivalState::InProgress)
    }

    fn is_late(&self, now: Instant, held_max: Duration) -> bool {
        matches!(self.state, ArrivalState::Done { since } if now.duration_since(since) >= held_max)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    /// Number of messages that the broker sends at once.
    const WINDOW: usize = 20;

    #[derive(Clone, Debug)]
    enum Step {
        Arrive,
        /// Settles one of those in progress.
        Settle(prop::sample::Index, bool),
        Wait(u64),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            4 => Just(Step::Arrive),
            4 => (any::<prop::sample::Index>(), prop::bool::weighted(0.8)).prop_map(|(at, is_done)| Step::Settle(at, is_done)),
            1 => (0..300_u64).prop_map(Step::Wait),
        ]
    }

    /// Arrivals with packets that are numbered like the messages, and the state of each.
    struct Model {
        arrivals: Arrivals,
        now: Instant,
        came: u64,
        in_progress: Vec<u64>,
        done: BTreeSet<u64>,
        acknowledged: Vec<u64>,
    }

    impl Model {
        fn new() -> Self {
            let (arrivals, now) = (Arrivals::default(), Instant::now());
            Self { arrivals, now, came: 0, in_progress: Vec::new(), done: BTreeSet::new(), acknowledged: Vec::new() }
        }

        fn arrive(&mut self) {
            assert_eq!(self.arrivals.add(self.came as u16), self.came);
            self.in_progress.push(self.came);
            self.came += 1;
        }

        fn settle(&mut self, at: usize, is_done: bool) {
            let number = self.in_progress.remove(at);
            self.done.extend(is_done.then_some(number));
            let (settled, mut out) = (Settled { number, packet: number as u16, is_done }, BytesMut::new());
            self.arrivals.settle(settled, self.now, &mut out);
            self.note(&out);
        }

        fn wait(&mut self, pause: Duration) {
            let mut out = BytesMut::new();
            self.now += pause;
            self.arrivals.release_late(self.now, &mut out);
            self.note(&out);
        }

        fn release_all(&mut self) {
            let mut out = BytesMut::new();
            self.arrivals.release_all(&mut out);
            self.note(&out);
        }

        fn note(&mut self, out: &[u8]) {
            self.acknowledged.extend(out.chunks(4).map(|packet| u64::from(u16::from_be_bytes([packet[2], packet[3]]))));
        }

        /// Done messages that are not acknowledged.
        fn held(&self) -> Vec<u64> {
            self.done.iter().copied().filter(|number| !self.acknowledged.contains(number)).collect()
        }
    }

    proptest! {
        /// Every message that is done is acknowledged once, none that is not, none that is held has a later one before
        /// it, and no more are held than hold them back.
        #[test]
        fn acknowledges_what_is_done_once(steps in prop::collection::vec(step(), 1..200)) {
            let mut model = Model::new();
            for step in steps {
                match step {
                    Step::Arrive if model.in_progress.len() + model.held().len() == WINDOW => {}
                    Step::Arrive => model.arrive(),
                    Step::Settle(_, _) if model.in_progress.is_empty() => {}
                    Step::Settle(at, is_done) => model.settle(at.index(model.in_progress.len()), is_done),
                    Step::Wait(ms) => model.wait(Duration::from_millis(ms)),
                }
                prop_assert!(model.acknowledged.iter().all(|number| model.done.contains(number)));
                let held = model.held();
                prop_assert!(held.len() < HELD_MIN || held.len() <= model.arrivals.messages.len() / 2);
                // What was acknowledged last may have been passed over, but nothing behind what is held can have been.
                let first_held = held.first().copied().unwrap_or(model.came);
                prop_assert!(model.acknowledged.iter().all(|number| *number < first_held));
            }
            while !model.in_progress.is_empty() {
                model.settle(0, true);
            }
            prop_assert!(model.held().is_empty() && !model.arrivals.is_holding() && model.arrivals.messages.is_empty());
            prop_assert_eq!(model.acknowledged.len(), model.done.len());
        }

        /// As long as nothing has to be passed over, the order is that of what came.
        #[test]
        fn acknowledges_in_the_order_of_what_came(order in Just((0..HELD_MIN as u64).collect::<Vec<_>>()).prop_shuffle()) {
            let mut model = Model::new();
            order.iter().for_each(|_| model.arrive());
            for number in &order {
                let at = model.in_progress.iter().position(|other| other == number).unwrap();
                model.settle(at, number % 5 > 0);
            }
            prop_assert_eq!(model.acknowledged, (0..HELD_MIN as u64).filter(|number| number % 5 > 0).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_message_is_passed_over_when_more_than_half_of_all_wait_behind_it() {
        let mut model = Model::new();
        (0..18).for_each(|_| model.arrive());
        (0..9).for_each(|_| model.settle(1, true));
        assert_eq!(model.acknowledged, [0; 0]);
        model.settle(1, true);
        assert_eq!(model.acknowledged, (1..=10).collect::<Vec<_>>());
        model.settle(0, true);
        model.settle(0, true);
        assert_eq!(model.acknowledged[10..], [0, 11]);
    }

    /// It has had its time when the next ones come.
    #[test]
    fn a_message_that_was_passed_over_holds_back_nothing_more() {
        let mut model = Model::new();
        (0..10).for_each(|_| model.arrive());
        (0..9).for_each(|_| model.settle(1, true));
        model.arrive();
        model.settle(1, true);
        assert_eq!(model.acknowledged, (1..=10).collect::<Vec<_>>());
    }

    /// Also two of them.
    #[test]
    fn messages_are_passed_over_when_one_behind_them_was_held_for_long_enough() {
        let mut model = Model::new();
        (0..5).for_each(|_| model.arrive());
        model.settle(2, true);
        model.wait(HELD_MAX / 2);
        model.settle(3, true);
        model.wait(HELD_MAX / 2);
        assert_eq!((&model.acknowledged, model.held()), (&vec![2], vec![4]));
        model.wait(HELD_MAX / 2);
        assert_eq!(model.acknowledged, [2, 4]);
    }

    /// A bridge that is busy takes longer for each than a broker that sends few may wait.
    #[test]
    fn many_messages_wait_longer_for_one_that_takes_long() {
        let mut model = Model::new();
        (0..=FEW).for_each(|_| model.arrive());
        (0..HELD_MIN).for_each(|_| model.settle(1, true));
        model.wait(HELD_MAX_OF_MANY - Duration::from_millis(1));
        assert_eq!(model.acknowledged, [0; 0]);
        model.wait(Duration::from_millis(1));
        assert_eq!(model.acknowledged, (1..=HELD_MIN as u64).collect::<Vec<_>>());
    }

    #[test]
    fn nothing_is_held_once_all_is_released() {
        let mut model = Model::new();
        (0..4).for_each(|_| model.arrive());
        model.settle(1, true);
        model.settle(1, false);
        model.release_all();
        assert!(!model.arrivals.is_holding());
        model.settle(1, true);
        model.settle(0, true);
        assert_eq!(model.acknowledged, [1, 3, 0]);
    }
}
