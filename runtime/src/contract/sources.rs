//! The texts of one application's functions, as they are saved.

use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::contract::guest_limits::GuestLimits;
use crate::contract::wire::{ANY_SLOT, Dialect, Slot, Writer};
use crate::settings::Limits;

/// The function texts of one application; an empty text is a step left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sources {
    /// Turns payload bytes into fields.
    pub decoder: String,
    /// Turns the decoder's fields into other fields.
    pub converter: String,
    /// Says whether fields are worth publishing.
    pub validator: String,
    /// Turns fields into payload bytes.
    pub encoder: String,
    /// Whose calling convention to follow; found from the texts when absent.
    pub dialect: Option<Dialect>,
    /// Whether `decoder` is one text for everything, which may define any of the functions; the other texts are then
    /// not looked at.
    pub is_single_file: bool,
}

impl Sources {
    /// One text that may define any of the functions, as vendors publish them.
    pub fn single_file(text: impl Into<String>) -> Self {
        Self { decoder: text.into(), is_single_file: true, ..Self::default() }
    }

    /// The text in `slot`.
    pub fn text(&self, slot: Slot) -> &str {
        match slot {
            _ if self.is_single_file => &self.decoder,
            Slot::Decoder => &self.decoder,
            Slot::Converter => &self.converter,
            Slot::Validator => &self.validator,
            Slot::Encoder => &self.encoder,
        }
    }

    /// Names these texts under these limits: what is loaded from them is the same for the same hash.
    pub fn hash_with(&self, limits: &Limits) -> SourcesHash {
        let mut hasher = Sha256::new_with_prefix(self.hash().as_bytes());
        hasher.update(LimitsHash::of(limits).0);
        SourcesHash(hasher.finalize().into())
    }

    /// Names these texts: equal texts have equal hashes, others have not.
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

    /// The request to load them within `limits`.
    pub(crate) fn load_request(&self, limits: &GuestLimits) -> Writer {
        let mut request = Writer::default();
        limits.write(&mut request);
        for (slots, text) in self.parcels() {
            if !text.trim_ascii().is_empty() {
                let dialect = self.dialect.filter(|dialect| has_step(*dialect, slots));
                request.byte(slots).byte(dialect.map_or(0, |dialect| dialect as u8)).text(text.as_bytes());
            }
        }
        request
    }

    /// Each text with the slots that it fills. People paste the same text as decoder and as encoder, which never meet in
    /// one message: that one is evaluated once.
    fn parcels(&self) -> Vec<(u8, &str)> {
        if self.is_single_file {
            return vec![(ANY_SLOT, &self.decoder)];
        }
        let parcel = |slot: Slot| (1 << slot as u8, self.text(slot));
        let mut parcels: Vec<_> = Slot::ALL.map(parcel).into();
        if self.decoder == self.encoder {
            parcels.truncate(Slot::Encoder as usize);
            parcels[Slot::Decoder as usize].0 |= 1 << Slot::Encoder as u8;
        }
        parcels
    }
}

/// Whether a dialect knows any of `slots`: converters and validators of v2 go with the decoders of all.
fn has_step(dialect: Dialect, slots: u8) -> bool {
    slots == ANY_SLOT
        || Slot::ALL.into_iter().any(|slot| slots & (1 << slot as u8) != 0 && dialect.function_name(slot).is_some())
}

/// A SHA-256 that names [`Sources`], or what was loaded from them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SourcesHash([u8; 32]);

impl SourcesHash {
    pub(crate) const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Its 32 bytes.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// A number that spreads hashes evenly, to choose a worker by.
    pub(crate) const fn spread(&self) -> usize {
        let [a, b, c, d, ..] = self.0;
        u32::from_le_bytes([a, b, c, d]) as usize
    }
}

impl fmt::Debug for SourcesHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0[..8].iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// A SHA-256 that names [`Limits`].
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct LimitsHash([u8; 32]);

impl LimitsHash {
    /// Names these limits: equal limits have equal hashes, others have not.
    ///
    /// All of them are part of it, also those that only a message meets: one that is added later cannot be forgotten.
    pub fn of(limits: &Limits) -> Self {
        Self(Sha256::digest(format!("{limits:?}")).into())
    }
}
