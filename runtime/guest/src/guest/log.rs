//! What scripts logged, within limits.

use crate::guest_limits::GuestLimits;
use crate::wire::{LogLevel, Slot, Writer as Reply};

/// Overhead counted for each field, so that the limit covers empty ones too.
pub(crate) const FIELD_BYTES: usize = 8;

/// The entries of one load or call.
#[derive(Default)]
pub(crate) struct Log {
    entries: Vec<Entry>,
    bytes: usize,
    /// The slot of the first entry that did not fit.
    overflow: Option<Slot>,
}

/// One call of a method of `console`.
pub(crate) struct Entry {
    pub(crate) slot: Slot,
    pub(crate) level: LogLevel,
    pub(crate) fields: Vec<String>,
}

impl Log {
    pub(crate) fn has_room(&self, limits: &GuestLimits) -> bool {
        self.overflow.is_none()
            && self.entries.len() < limits.log_entries_max as usize
            && self.bytes < limits.log_bytes_max as usize
    }

    pub(crate) fn push(&mut self, entry: Entry, limits: &GuestLimits) {
        let bytes = entry.fields.iter().map(|field| field.len() + FIELD_BYTES).sum::<usize>() + FIELD_BYTES;
        if !self.has_room(limits) || self.bytes + bytes > limits.log_bytes_max as usize {
            self.overflow.get_or_insert(entry.slot);
            return;
        }
        self.bytes += bytes;
        self.entries.push(entry);
    }

    /// Appends the entries to a reply, with a marker if some were dropped.
    pub(crate) fn write(&self, reply: &mut Reply) {
        reply.number((self.entries.len() + usize::from(self.overflow.is_some())) as u32);
        for entry in &self.entries {
            reply.byte(entry.slot as u8).byte(entry.level as u8).number(entry.fields.len() as u32);
            for field in &entry.fields {
                reply.text(field.as_bytes());
            }
        }
        if let Some(slot) = self.overflow {
            reply.byte(slot as u8).byte(LogLevel::Warn as u8).number(1).text(br#""further log entries were dropped""#);
        }
    }
}
