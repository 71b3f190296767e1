//! The binary format of requests and replies between host and guest.
//!
//! This file is compiled into both sides, so they cannot disagree. The host checks every length before it reads,
//! because it cannot trust a guest that has run tenant code. Numbers are little endian.
//!
//! | message | layout |
//! |---|---|
//! | load request | the limits (`guest_limits.rs`), then for each source `slots: u8`, `dialect: u8` (0: detect), `text` |
//! | load reply | `0`, then the dialect of each slot (0: no function), or `1` and a failure |
//! | call request | `entry: u8`, `port: u8`, `time_ms: i64`, `seed: u64`, `payload`, `extra`; for a single function also `function: u8` |
//! | call reply | a result, `warnings: u32` texts, `logs: u32` entries |
//! | trap report | `line: u32`, `column: u32` (0: unknown), `logs: u32` entries |
//! | step list | entries, then `0`: `1` `slot: u8` `address: u32` name, then for each of its steps `2`, or `3` for a branch, and `offset: u32`, `line: u32`, `column: u32` |
//! | result | `0` `valid: u8` fields normalized (empty: none), `1` `port: u8` bytes, `2` a failure, or `3` JSON (empty: undefined) |
//! | failure | `slot: u8`, `kind: u8`, `line: u32`, `column: u32` (0: unknown), `message` |
//! | log entry | `slot: u8`, `level: u8`, `fields: u32` texts |
//!
//! A text, payload, fields or JSON is `length: u32` and that many bytes. `slots` has one bit for each slot that the
//! source fills, or is [`ANY_SLOT`].

/// The four payload functions, in the order in which a message passes them.
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

/// The calling convention of a payload function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// The Things Network 2: `Decoder(bytes, port)`, `Converter`, `Validator`, `Encoder`.
    V2 = 1,
    /// LoRa Alliance TS013: `decodeUplink(input)`, `encodeDownlink(input)`, `decodeDownlink(input)`.
    Ts013 = 2,
    /// ChirpStack 3: `Decode(fPort, bytes, variables)`, `Encode(fPort, object, variables)`.
    ChirpStack3 = 3,
}

/// Which functions a call runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EntryPoint {
    /// Payload bytes through decoder, converter and validator.
    Uplink = 0,
    /// A JSON object through the encoder.
    EncodeDownlink = 1,
    /// Payload bytes of a downlink back to an object (TS013 only).
    DecodeDownlink = 2,
    /// One function alone; the reply holds its whole return value.
    SingleFunction = 3,
}

/// The functions that a source can define: one for each slot, and two that only TS013 has.
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
    /// `normalizeUplink`: the decoder's object to a vocabulary shared by all devices.
    NormalizeUplink = 5,
}

impl Function {
    /// The slot whose source should define it, and which its failures are reported for.
    pub const fn slot(self) -> Slot {
        match self {
            Self::Decoder | Self::NormalizeUplink => Slot::Decoder,
            Self::Converter => Slot::Converter,
            Self::Validator => Slot::Validator,
            Self::Encoder | Self::DecodeDownlink => Slot::Encoder,
        }
    }
}

/// Instead of a set of slots: the source may define any of the functions, and none in particular.
pub(crate) const ANY_SLOT: u8 = 0x80;

/// The reason why a function gave no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FailureKind {
    /// The source is not a script, or defines no function for its slot.
    Syntax = 0,
    /// The function threw, or reported errors of its own.
    Thrown = 1,
    /// It ran out of fuel.
    Fuel = 2,
    /// It exceeded its memory limit.
    Memory = 3,
    /// It overflowed the stack.
    Stack = 4,
    /// It exceeded the wall-clock limit.
    Time = 5,
    /// Its result has the wrong type, is out of range, too large or too deep.
    Output = 6,
    /// The sandbox misbehaved: its reply was malformed, or it trapped for an unknown reason.
    Broken = 7,
}

/// The severity of a log entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LogLevel {
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
from_byte!(EntryPoint: Uplink, EncodeDownlink, DecodeDownlink, SingleFunction);
from_byte!(Function: Decoder, Converter, Validator, Encoder, DecodeDownlink, NormalizeUplink);
from_byte!(FailureKind: Syntax, Thrown, Fuel, Memory, Stack, Time, Output, Broken);
from_byte!(LogLevel: Debug, Info, Warn, Error);

/// Builds a request or reply.
#[derive(Default)]
pub(crate) struct Writer {
    bytes: Vec<u8>,
}

impl Writer {
    pub(crate) fn byte(&mut self, value: u8) -> &mut Self {
        self.bytes.push(value);
        self
    }

    /// Appends a 32-bit number.
    pub(crate) fn number(&mut self, value: u32) -> &mut Self {
        self.bytes.extend_from_slice(&value.to_le_bytes());
        self
    }

    /// Appends a 64-bit number; a signed one by its bit pattern.
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

    /// Clears the message but keeps its allocation.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
    }
}

/// Reads a request or reply; every method returns `None` once the bytes run out.
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Reads `message` from its start.
    pub(crate) fn new(message: &'a [u8]) -> Self {
        Self { rest: message }
    }

    pub(crate) fn byte(&mut self) -> Option<u8> {
        self.take(1).map(|bytes| bytes[0])
    }

    /// Reads a 32-bit number.
    pub(crate) fn number(&mut self) -> Option<u32> {
        self.take(4)?.try_into().ok().map(u32::from_le_bytes)
    }

    /// Reads a 64-bit number.
    pub(crate) fn long(&mut self) -> Option<u64> {
        self.take(8)?.try_into().ok().map(u64::from_le_bytes)
    }

    /// Reads a length and that many bytes.
    pub(crate) fn text(&mut self) -> Option<&'a [u8]> {
        let length = self.number()? as usize;
        self.take(length)
    }

    /// Returns true if nothing is left.
    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(taken)
    }
}
