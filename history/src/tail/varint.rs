//! Numbers of variable length (LEB128), and texts with their lengths.

use crate::RecordId;

pub(crate) fn put_unsigned(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Small numbers are short, whatever their sign.
pub(crate) fn put_signed(out: &mut Vec<u8>, value: i64) {
    put_unsigned(out, ((value << 1) ^ (value >> 63)) as u64);
}

pub(crate) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_unsigned(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Input that is left to be read. Each method returns none if it is too short.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Input<'a>(pub(crate) &'a [u8]);

impl<'a> Input<'a> {
    pub(crate) fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    pub(crate) fn array_ref<const LENGTH: usize>(&mut self) -> Option<&'a [u8; LENGTH]> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(taken)
    }

    pub(crate) fn array<const LENGTH: usize>(&mut self) -> Option<[u8; LENGTH]> {
        self.array_ref().copied()
    }

    pub(crate) fn unsigned(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let [byte] = self.array()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    pub(crate) fn unsigned_32(&mut self) -> Option<u32> {
        self.unsigned()?.try_into().ok()
    }

    pub(crate) fn signed(&mut self) -> Option<i64> {
        let value = self.unsigned()?;
        Some((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    pub(crate) fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = self.unsigned()?.try_into().ok()?;
        self.take(length)
    }

    pub(crate) fn text(&mut self) -> Option<&'a str> {
        str::from_utf8(self.bytes()?).ok()
    }

    pub(crate) fn id(&mut self) -> Option<RecordId> {
        Some(RecordId { millis: self.unsigned()?, writer: self.unsigned_32()?, number: self.unsigned_32()? })
    }
}
