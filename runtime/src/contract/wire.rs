//! The bytes that cross the sandbox wall: what the host writes and the guest reads, and back.
//!
//! One file, compiled into both sides, so that they cannot disagree. Only bytes cross; every length is checked before
//! anything is read, because after tenant code has run the guest's side of this cannot be trusted. Little endian.
//!
//! | message | layout |
//! |---|---|
//! | load request | the limits (`bounds.rs`), then per text `slots: u8`, `dialect: u8` (0: detect), `text` |
//! | load reply | `0`, then the dialect of each slot (0: no function), or `1` and a failure |
//! | call request | `entry: u8`, `port: u8`, `time_ms: i64`, `seed: u64`, `payload`; for a trial also `function: u8`, `extra` |
//! | call reply | a result, `warnings: u32` texts, `logs: u32` entries |
//! | last words | after a trap: `line: u32`, `column: u32` (0: unknown), `logs: u32` entries |
//! | result | `0` `valid: u8` fields normalized (empty: none), `1` `port: u8` bytes, `2` a failure, or `3` JSON (empty: undefined) |
//! | failure | `slot: u8`, `kind: u8`, `line: u32`, `column: u32` (0: unknown), `message` |
//! | log entry | `slot: u8`, `level: u8`, `fields: u32` texts |
//!
//! A text, a payload, fields or JSON are `length: u32` and that many bytes. The slots of a text are a bit each, or
//! [`WHOLE`].

/// The four payload functions, in the order in which a message meets them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Slot {
    /// Bytes and port in, an object out.
    Decoder = 0,
    /// The decoder's object in, an object out.
    Converter = 1,
    /// The converter's object in, true or false out.
    Validator = 2,
    /// An object and port in, bytes out.
    Encoder = 3,
}

/// Whose calling convention a function text follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// The Things Network 2: `Decoder(bytes, port)`, `Converter`, `Validator`, `Encoder`.
    V2 = 1,
    /// LoRa Alliance TS013: `decodeUplink(input)`, `encodeDownlink(input)`, `decodeDownlink(input)`.
    Ts013 = 2,
    /// ChirpStack 3: `Decode(fPort, bytes, variables)`, `Encode(fPort, object, variables)`.
    ChirpStack3 = 3,
}

/// Which way a message goes through the functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Entry {
    /// Payload bytes through decoder, converter and validator.
    Uplink = 0,
    /// A JSON object through the encoder.
    EncodeDownlink = 1,
    /// Payload bytes of a downlink back to an object (TS013 only).
    DecodeDownlink = 2,
    /// One function by itself; its whole return value comes back.
    Trial = 3,
}

/// The functions that texts define: one for each slot, and what only TS013 has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Function {
    /// `decodeUplink`, `Decoder` or `Decode`.
    Decoder = 0,
    /// `Converter`.
    Converter = 1,
    /// `Validator`.
    Validator = 2,
    /// `encodeDownlink`, `Encoder` or `Encode`.
    Encoder = 3,
    /// `decodeDownlink`: bytes of a downlink back to an object.
    DecodeDownlink = 4,
    /// `normalizeUplink`: the decoder's object to the words that all devices share.
    NormalizeUplink = 5,
}

/// In place of the slots of a text: it may define any of the functions, and need not define a certain one.
pub(crate) const WHOLE: u8 = 0x80;

/// Why a function gave no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// The text is not a script, or defines no function that fits its slot.
    Syntax = 0,
    /// The function threw, or reported errors of its own.
    Thrown = 1,
    /// It used up its fuel.
    Fuel = 2,
    /// It needed more memory than it may have.
    Memory = 3,
    /// It called itself too deeply.
    Stack = 4,
    /// The wall-clock backstop fired.
    Time = 5,
    /// What it returned cannot be used: wrong type, out of range, too large or too deep.
    Output = 6,
    /// The sandbox broke: its reply made no sense, or it trapped for no reason that we know.
    Broken = 7,
}

/// The severity with which a function logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Level {
    /// `console.debug` and `console.trace`.
    Debug = 0,
    /// `console.log` and `console.info`.
    Info = 1,
    /// `console.warn`.
    Warn = 2,
    /// `console.error`.
    Error = 3,
}

macro_rules! from_byte {
    ($name:ident: $($variant:ident),+) => {
        impl $name {
            /// The value that `byte` stands for on the wire.
            pub fn from_byte(byte: u8) -> Option<Self> {
                [$(Self::$variant),+].into_iter().find(|value| *value as u8 == byte)
            }
        }
    };
}

from_byte!(Slot: Decoder, Converter, Validator, Encoder);
from_byte!(Dialect: V2, Ts013, ChirpStack3);
from_byte!(Entry: Uplink, EncodeDownlink, DecodeDownlink, Trial);
from_byte!(Function: Decoder, Converter, Validator, Encoder, DecodeDownlink, NormalizeUplink);
from_byte!(Kind: Syntax, Thrown, Fuel, Memory, Stack, Time, Output, Broken);
from_byte!(Level: Debug, Info, Warn, Error);

/// Appends values to a message.
#[derive(Default)]
pub(crate) struct Writer {
    bytes: Vec<u8>,
}

impl Writer {
    /// Appends one byte.
    pub(crate) fn byte(&mut self, value: u8) -> &mut Self {
        self.bytes.push(value);
        self
    }

    /// Appends a number of 32 bits.
    pub(crate) fn number(&mut self, value: u32) -> &mut Self {
        self.bytes.extend_from_slice(&value.to_le_bytes());
        self
    }

    /// Appends a number of 64 bits; signed ones by their bit pattern.
    pub(crate) fn long(&mut self, value: u64) -> &mut Self {
        self.bytes.extend_from_slice(&value.to_le_bytes());
        self
    }

    /// Appends a length and that many bytes.
    pub(crate) fn text(&mut self, value: &[u8]) -> &mut Self {
        self.number(value.len() as u32);
        self.bytes.extend_from_slice(value);
        self
    }

    /// The message so far.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Forgets the message and keeps the room it took.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
    }
}

/// Takes values off a message; `None` from the first one that does not fit.
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Reads `message` from its start.
    pub(crate) fn new(message: &'a [u8]) -> Self {
        Self { rest: message }
    }

    /// Takes one byte.
    pub(crate) fn byte(&mut self) -> Option<u8> {
        self.take(1).map(|bytes| bytes[0])
    }

    /// Takes a number of 32 bits.
    pub(crate) fn number(&mut self) -> Option<u32> {
        self.take(4)?.try_into().ok().map(u32::from_le_bytes)
    }

    /// Takes a number of 64 bits.
    pub(crate) fn long(&mut self) -> Option<u64> {
        self.take(8)?.try_into().ok().map(u64::from_le_bytes)
    }

    /// Takes a length and that many bytes.
    pub(crate) fn text(&mut self) -> Option<&'a [u8]> {
        let length = self.number()? as usize;
        self.take(length)
    }

    /// Whether nothing is left.
    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(taken)
    }
}
