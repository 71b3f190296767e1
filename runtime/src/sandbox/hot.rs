//! Chooses which function sets get a memory of their own.
//!
//! A set with its own memory does not need its module copied in for every message, but mapping one takes as long as
//! some tens of messages. So a set gets one once it is busy, and takes another set's place only if it is far busier:
//! neither thousands of sets that take turns nor a stream of new ones evict the busy ones.

use std::num::NonZeroUsize;

use lru::LruCache;

use super::host::Host;
use super::resettable_memory::ResettableMemory;
use crate::contract::sources::SourcesHash;
use crate::functions::Functions;

/// After this many messages an earlier one counts half as much.
const HALF_LIFE_MESSAGES: u64 = 4096;
/// Sets without their own memory whose messages are counted.
const CANDIDATES_MAX: NonZeroUsize = NonZeroUsize::MIN.saturating_add(255);
/// Factor by which a set must be busier than another to take its place.
const BUSIER: u32 = 2;

/// A function set with its own memory.
pub(crate) struct HotSet {
    hash: SourcesHash,
    score: Score,
    pub(crate) memory: ResettableMemory,
}

/// The hot function sets of one worker, and the candidates.
pub(crate) struct HotSets {
    sets: Vec<HotSet>,
    candidates: LruCache<SourcesHash, Score>,
    calls: u64,
    sets_max: usize,
    messages_min: u32,
}

impl HotSets {
    /// Lets at most `sets_max` sets get their own memory, each after `messages_min` recent messages.
    pub(crate) fn new(sets_max: usize, messages_min: u32) -> Self {
        Self { sets: Vec::new(), candidates: LruCache::new(CANDIDATES_MAX), calls: 0, sets_max, messages_min }
    }

    /// Counts a message of `functions`, and takes out their memory if they have one or become hot now.
    ///
    /// It stays out until [`put_back`](Self::put_back): after a panic it must not be used for another message.
    pub(crate) fn take(&mut self, host: &Host, functions: &Functions) -> Option<HotSet> {
        self.calls += 1;
        let hash = functions.hash();
        if let Some(index) = self.index(hash) {
            let mut set = self.sets.swap_remove(index);
            set.score.count(self.calls);
            return Some(set);
        }
        if self.sets_max == 0 {
            return None;
        }
        let score = self.candidates.get_or_insert_mut(hash, Score::default);
        score.count(self.calls);
        let score = *score;
        if score.messages < self.messages_min || !self.make_room(score) {
            return None;
        }
        let module = functions.module();
        let image = functions.image(|| host.image_of(module));
        let memory = image.and_then(|image| ResettableMemory::new(host, image, module.memory_bytes()));
        // Counting starts again either way: on failure a shared memory is used, and this is tried again later.
        self.candidates.pop(&hash);
        memory
            .inspect_err(
                |error| tracing::warn!(%error, "cannot map a memory for busy functions: they stay in a shared one"),
            )
            .ok()
            .map(|memory| HotSet { hash, score, memory })
    }

    /// Returns a set that was taken out.
    pub(crate) fn put_back(&mut self, set: HotSet) {
        self.sets.push(set);
    }

    pub(crate) fn get(&mut self, hash: SourcesHash) -> Option<&mut ResettableMemory> {
        self.index(hash).map(|index| &mut self.sets[index].memory)
    }

    fn index(&self, hash: SourcesHash) -> Option<usize> {
        self.sets.iter().position(|set| set.hash == hash)
    }

    /// Returns true if one more set fits; evicts the least busy one if it is far less busy than `score`.
    fn make_room(&mut self, score: Score) -> bool {
        if self.sets.len() < self.sets_max {
            return true;
        }
        let least = (0..self.sets.len()).map(|index| (self.sets[index].score.at(self.calls), index)).min();
        let least = least.filter(|(messages, _)| messages.saturating_mul(BUSIER) < score.messages);
        if let Some((_, index)) = least {
            self.sets.swap_remove(index);
        }
        least.is_some()
    }
}

/// A count of recent messages.
#[derive(Clone, Copy, Default)]
struct Score {
    messages: u32,
    /// The number of the call that was counted last.
    call: u64,
}

impl Score {
    /// The count as of call number `call`.
    fn at(self, call: u64) -> u32 {
        let halvings = (call / HALF_LIFE_MESSAGES).saturating_sub(self.call / HALF_LIFE_MESSAGES);
        u32::try_from(halvings).ok().and_then(|halvings| self.messages.checked_shr(halvings)).unwrap_or(0)
    }

    fn count(&mut self, call: u64) {
        *self = Self { messages: self.at(call).saturating_add(1), call };
    }
}
