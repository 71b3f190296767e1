//! The function sources of one application.

use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::contract::guest_limits::GuestLimits;
use crate::contract::wire::{ANY_SLOT, Dialect, Slot, Writer};
use crate::limits::Limits;

/// The function sources of one application; empty for a function that is not defined.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sources {
    /// Turns payload bytes into fields.
    pub decoder: String,
    /// Turns the decoder's fields into other fields.
    pub converter: String,
    /// Decides whether fields are published.
    pub validator: String,
    /// Turns fields into payload bytes.
    pub encoder: String,
    /// The dialect; detected if absent.
    pub dialect: Option<Dialect>,
    /// True if `decoder` is a single file that may define any of the functions. The other sources are then ignored.
    pub is_single_file: bool,
}

impl Sources {
    /// A single file that may define any of the functions, as vendors publish them.
    pub fn single_file(text: impl Into<String>) -> Self {
        Self { decoder: text.into(), is_single_file: true, ..Self::default() }
    }

    /// The source for `slot`.
    pub fn text(&self, slot: Slot) -> &str {
        match slot {
            _ if self.is_single_file => &self.decoder,
            Slot::Decoder => &self.decoder,
            Slot::Converter => &self.converter,
            Slot::Validator => &self.validator,
            Slot::Encoder => &self.encoder,
        }
    }

    /// The size of all sources, in bytes.
    pub fn bytes(&self) -> usize {
        match self.is_single_file {
            true => self.decoder.len(),
            false => Slot::ALL.into_iter().map(|slot| self.text(slot).len()).sum(),
        }
    }

    /// Hashes the sources.
    pub fn hash(&self) -> SourcesHash {
        let mut hasher = Sha256::new();
        hasher.update([self.dialect.map_or(0, |dialect| dialect as u8), u8::from(self.is_single_file)]);
        for slot in Slot::ALL {
            let text = self.text(slot);
            hasher.update((text.len() as u64).to_le_bytes());
            hasher.update(text);
        }
        SourcesHash(hasher.finalize().into())
    }

    pub(crate) fn load_request(&self, limits: &Limits) -> Writer {
        let mut request = Writer::default();
        GuestLimits::from(limits).write(&mut request);
        for (slots, text) in self.with_slots() {
            if !text.trim_ascii().is_empty() {
                let dialect = self.dialect.filter(|dialect| has_function(*dialect, slots));
                request.byte(slots).byte(dialect.map_or(0, |dialect| dialect as u8)).text(text.as_bytes());
            }
        }
        request
    }

    /// Each source with the slots that it fills. People paste the same source as decoder and as encoder; it is
    /// evaluated only once, because no message runs both.
    fn with_slots(&self) -> Vec<(u8, &str)> {
        if self.is_single_file {
            return vec![(ANY_SLOT, &self.decoder)];
        }
        let with_slot = |slot: Slot| (1 << slot as u8, self.text(slot));
        let mut sources: Vec<_> = Slot::ALL.map(with_slot).into();
        if self.decoder == self.encoder {
            sources.truncate(Slot::Encoder as usize);
            sources[Slot::Decoder as usize].0 |= 1 << Slot::Encoder as u8;
        }
        sources
    }
}

/// Returns true if a dialect has functions for any of `slots`; v2 converters and validators combine with every decoder.
fn has_function(dialect: Dialect, slots: u8) -> bool {
    slots == ANY_SLOT
        || Slot::ALL.into_iter().any(|slot| slots & (1 << slot as u8) != 0 && dialect.function_name(slot).is_some())
}

/// A SHA-256 of [`Sources`], with or without limits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SourcesHash([u8; 32]);

impl SourcesHash {
    pub(crate) const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Adds the limits, which together with the sources determine the loaded functions.
    pub fn with(self, limits: &Limits) -> Self {
        let mut hasher = Sha256::new_with_prefix(self.0);
        hasher.update(LimitsHash::of(limits).0);
        Self(hasher.finalize().into())
    }

    /// Its 32 bytes.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// An evenly distributed number, to choose a worker by.
    pub(crate) const fn as_index(&self) -> usize {
        let [a, b, c, d, ..] = self.0;
        u32::from_le_bytes([a, b, c, d]) as usize
    }
}

impl fmt::Debug for SourcesHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0[..8].iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// A SHA-256 of [`Limits`].
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct LimitsHash([u8; 32]);

impl LimitsHash {
    /// Hashes all limits. Includes those that do not affect loading, so that nobody forgets to add a new one here.
    pub fn of(limits: &Limits) -> Self {
        Self(Sha256::digest(format!("{limits:?}")).into())
    }

    /// The first bytes, to tell a few limits from each other.
    pub fn prefix(&self) -> [u8; 8] {
        let [a, b, c, d, e, f, g, h, ..] = self.0;
        [a, b, c, d, e, f, g, h]
    }
}

impl From<&Limits> for GuestLimits {
    fn from(limits: &Limits) -> Self {
        Self {
            heap_bytes_max: limits.heap_bytes_max,
            fields_bytes_max: limits.fields_bytes_max,
            fields_depth_max: limits.fields_depth_max,
            fields_keys_max: limits.fields_keys_max,
            payload_bytes_max: limits.payload_bytes_max,
            log_entries_max: limits.log_entries_max,
            log_field_bytes_max: limits.log_field_bytes_max,
            log_bytes_max: limits.log_bytes_max,
            message_bytes_max: limits.message_bytes_max,
            warnings_max: limits.warnings_max,
        }
    }
}
