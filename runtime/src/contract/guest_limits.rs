//! The limits that the guest enforces itself, as part of the load request. Compiled into both sides, like `wire`.

use super::wire::{Reader, Writer};

/// Limits of one function set; see `Limits` for their units.
#[derive(Clone, Copy, Default)]
pub(crate) struct GuestLimits {
    pub(crate) heap_bytes_max: u32,
    pub(crate) fields_bytes_max: u32,
    pub(crate) fields_depth_max: u32,
    pub(crate) fields_keys_max: u32,
    pub(crate) payload_bytes_max: u32,
    pub(crate) log_entries_max: u32,
    pub(crate) log_field_bytes_max: u32,
    pub(crate) log_bytes_max: u32,
    pub(crate) message_bytes_max: u32,
    pub(crate) warnings_max: u32,
}

impl GuestLimits {
    /// Appends the limits to a request.
    pub(crate) fn write(&self, writer: &mut Writer) {
        for number in [
            self.heap_bytes_max,
            self.fields_bytes_max,
            self.fields_depth_max,
            self.fields_keys_max,
            self.payload_bytes_max,
            self.log_entries_max,
            self.log_field_bytes_max,
            self.log_bytes_max,
            self.message_bytes_max,
            self.warnings_max,
        ] {
            writer.number(number);
        }
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Option<Self> {
        Some(Self {
            heap_bytes_max: reader.number()?,
            fields_bytes_max: reader.number()?,
            fields_depth_max: reader.number()?,
            fields_keys_max: reader.number()?,
            payload_bytes_max: reader.number()?,
            log_entries_max: reader.number()?,
            log_field_bytes_max: reader.number()?,
            log_bytes_max: reader.number()?,
            message_bytes_max: reader.number()?,
            warnings_max: reader.number()?,
        })
    }
}
