//! Which function sets have a memory of their own.
//!
//! A memory of one's own saves copying in what loading changed, but making it takes as long as some tens of messages. So
//! it goes to those who have met a worker often lately, and only from those who have met it far less often: neither
//! thousands of sets that take turns nor a stream of strangers push out those that are busy.

use std::num::NonZeroUsize;

use lru::LruCache;

use crate::contract::sources::SourcesHash;
use crate::engine::Engine;
use crate::functions::Functions;
use crate::sandbox::memory_slot::Bed;

/// A message counts half as much after this many others.
const HALF_LIFE_CALLS: u64 = 4096;
/// Sets without a memory of their own whose messages are counted.
const CANDIDATES: NonZeroUsize = NonZeroUsize::MIN.saturating_add(255);
/// How much busier than another a set must be to take its memory.
const BUSIER: u32 = 2;

/// A function set with a memory of its own.
pub(crate) struct Own {
    hash: SourcesHash,
    score: Score,
    pub(crate) bed: Bed,
}

/// The function sets of one worker that have a memory of their own, and those that may get one.
pub(crate) struct Hot {
    own: Vec<Own>,
    candidates: LruCache<SourcesHash, Score>,
    calls: u64,
    own_max: usize,
    after: u32,
}

impl Hot {
    /// Lets at most `own_max` sets have a memory of their own, each after so many messages.
    pub(crate) fn new(own_max: usize, after: u32) -> Self {
        Self { own: Vec::new(), candidates: LruCache::new(CANDIDATES), calls: 0, own_max, after }
    }

    /// Counts a message of `functions`, and takes out their memory if they have one or shall have one from now on.
    ///
    /// Out, until it is put back: what a panic leaves behind must not meet another message.
    pub(crate) fn take(&mut self, engine: &Engine, functions: &Functions) -> Option<Own> {
        self.calls += 1;
        let hash = functions.hash();
        if let Some(place) = self.place(hash) {
            let mut own = self.own.swap_remove(place);
            own.score.count(self.calls);
            return Some(own);
        }
        if self.own_max == 0 {
            return None;
        }
        let score = self.candidates.get_or_insert_mut(hash, Score::default);
        score.count(self.calls);
        let score = *score;
        if score.messages < self.after || !self.make_room(score) {
            return None;
        }
        let made = engine.image(functions).and_then(|image| Bed::new(engine, image, functions.module().memory_bytes()));
        // Counted anew either way: where there is no room, the shared memory does, and it is tried again later.
        self.candidates.pop(&hash);
        made.inspect_err(
            |error| tracing::warn!(%error, "no room for a memory of its own, functions go on in a shared one"),
        )
        .ok()
        .map(|bed| Own { hash, score, bed })
    }

    /// Puts back what was taken out.
    pub(crate) fn put(&mut self, own: Own) {
        self.own.push(own);
    }

    /// The memory of its own that the set of this hash has.
    pub(crate) fn get(&mut self, hash: SourcesHash) -> Option<&mut Bed> {
        self.place(hash).map(|place| &mut self.own[place].bed)
    }

    fn place(&self, hash: SourcesHash) -> Option<usize> {
        self.own.iter().position(|own| own.hash == hash)
    }

    /// Whether there is room for one more; makes it where somebody is far less busy than `score`.
    fn make_room(&mut self, score: Score) -> bool {
        if self.own.len() < self.own_max {
            return true;
        }
        let least = (0..self.own.len()).map(|place| (self.own[place].score.at(self.calls), place)).min();
        let least = least.filter(|(messages, _)| messages.saturating_mul(BUSIER) < score.messages);
        if let Some((_, place)) = least {
            self.own.swap_remove(place);
        }
        least.is_some()
    }
}

/// How many messages there were lately.
#[derive(Clone, Copy, Default)]
struct Score {
    messages: u32,
    /// The number of the last one.
    call: u64,
}

impl Score {
    /// What it is worth at call number `call`.
    fn at(self, call: u64) -> u32 {
        let halvings = (call / HALF_LIFE_CALLS).saturating_sub(self.call / HALF_LIFE_CALLS);
        u32::try_from(halvings).ok().and_then(|halvings| self.messages.checked_shr(halvings)).unwrap_or(0)
    }

    fn count(&mut self, call: u64) {
        *self = Self { messages: self.at(call).saturating_add(1), call };
    }
}
