//! What the guest itself holds functions to, as it crosses the sandbox wall. Compiled into both sides, like `wire`.

use super::wire::{Reader, Writer};

/// The limits that the guest keeps with the functions it loaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Bounds {
    /// JavaScript heap.
    pub(crate) heap_bytes_max: u32,
    /// JSON of one result.
    pub(crate) fields_bytes_max: u32,
    /// Objects and arrays in each other.
    pub(crate) fields_depth_max: u32,
    /// Keys of all objects of one result together.
    pub(crate) fields_keys_max: u32,
    /// What an encoder returns.
    pub(crate) payload_bytes_max: u32,
    /// Calls of the console.
    pub(crate) log_entries_max: u32,
    /// One argument of such a call.
    pub(crate) log_field_bytes_max: u32,
    /// All of them together.
    pub(crate) log_bytes_max: u32,
    /// Text of a failure or a warning.
    pub(crate) message_bytes_max: u32,
    /// Warnings of one message.
    pub(crate) warnings_max: u32,
}

impl Bounds {
    /// How many there are.
    const COUNT: usize = 10;

    /// The numbers in the order in which they cross; equal numbers make equal images of equal texts.
    pub(crate) fn numbers(&self) -> [u32; Self::COUNT] {
        [
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
        ]
    }

    /// Appends them to a message.
    pub(crate) fn write(&self, writer: &mut Writer) {
        for number in self.numbers() {
            writer.number(number);
        }
    }

    /// Takes them off a message.
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
