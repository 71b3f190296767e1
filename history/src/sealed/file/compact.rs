//! Thrift's compact protocol, as far as it is needed to see what a structure claims without believing it.

/// The end of a struct.
pub(super) const STOP: u8 = 0;
/// Types of values, as they are encoded.
const TRUE: u8 = 1;
const FALSE: u8 = 2;
const BYTE: u8 = 3;
const I16: u8 = 4;
const I32: u8 = 5;
const I64: u8 = 6;
const DOUBLE: u8 = 7;
const BYTES: u8 = 8;
const LIST: u8 = 9;
const SET: u8 = 10;
const STRUCT: u8 = 12;

/// Maximum depth of values without a form in each other.
const DEPTH_MAX: u8 = 16;

/// The form of a value. The `parquet` crate reads it so whatever type it claims to have, so it must have that type.
pub(super) enum Form {
    Number,
    /// The number of things of which each takes at least a byte.
    Count,
    Byte,
    Bool,
    Bytes,
    List(&'static Self),
    /// A list of at most so many values.
    ShortList(usize, &'static Self),
    /// Nothing: a struct with this field is not read.
    Never,
    /// A struct with these fields; others may be anything.
    Struct(&'static [(i16, Self)]),
}

/// The rest of a structure.
pub(super) struct Compact<'a> {
    rest: &'a [u8],
    /// Length of all.
    length: usize,
}

impl<'a> Compact<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes, length: bytes.len() }
    }

    /// Number of bytes that were read.
    pub(super) fn position(&self) -> usize {
        self.length - self.rest.len()
    }

    /// Reads a number that cannot be negative.
    pub(super) fn unsigned(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..u64::BITS).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    /// Reads the 32-bit number of the field behind the last one.
    pub(super) fn next_i32(&mut self) -> Option<i64> {
        if self.byte()? == (1 << 4) | I32 { self.number() } else { None }
    }

    /// Reads the fields of a struct behind the one with this id. None if it has others, or claims what cannot be.
    pub(super) fn fields(&mut self, known: &[(i16, Form)], mut last: i16) -> Option<()> {
        while let Some((step, kind)) = self.field()? {
            let id = if step == 0 { i16::try_from(self.number()?).ok()? } else { last.checked_add(step)? };
            // One that comes again would take the place of the other.
            if id <= last {
                return None;
            }
            last = id;
            match known.iter().find(|(known, _)| *known == id) {
                Some((_, form)) => self.value(kind, form)?,
                None => self.skip(kind, DEPTH_MAX)?,
            }
        }
        Some(())
    }

    fn value(&mut self, kind: u8, form: &Form) -> Option<()> {
        match (form, kind) {
            (Form::Number, I16 | I32 | I64) => self.unsigned().map(drop),
            (Form::Count, I16 | I32 | I64) => {
                let count = usize::try_from(self.number()?).ok()?;
                (count <= self.length).then_some(())
            }
            (Form::Byte, BYTE) => self.byte().map(drop),
            (Form::Bool, TRUE | FALSE) => Some(()),
            (Form::Bytes, BYTES) => self.skip_bytes(),
            (Form::List(form), LIST) => self.values(usize::MAX, form),
            (Form::ShortList(count_max, form), LIST) => self.values(*count_max, form),
            (Form::Struct(known), STRUCT) => self.fields(known, 0),
            _ => None,
        }
    }

    fn values(&mut self, count_max: usize, form: &Form) -> Option<()> {
        let (count, kind) = self.list()?;
        if count > count_max {
            return None;
        }
        (0..count).try_for_each(|_| self.value(kind, form))
    }

    fn skip(&mut self, kind: u8, depth: u8) -> Option<()> {
        let depth = depth.checked_sub(1)?;
        match kind {
            TRUE | FALSE => Some(()),
            BYTE => self.byte().map(drop),
            I16 | I32 | I64 => self.unsigned().map(drop),
            DOUBLE => self.take(size_of::<f64>()).map(drop),
            BYTES => self.skip_bytes(),
            LIST | SET => {
                let (count, kind) = self.list()?;
                // It depends on the reader whether these take bytes in a list.
                let is_clear = count == 0 || !matches!(kind, TRUE | FALSE);
                (0..count).try_for_each(|_| self.skip(kind, depth)).filter(|()| is_clear)
            }
            STRUCT => {
                while let Some((step, kind)) = self.field()? {
                    if step == 0 {
                        self.unsigned()?;
                    }
                    self.skip(kind, depth)?;
                }
                Some(())
            }
            // Parquet has no maps.
            _ => None,
        }
    }

    /// The difference of the id of the next field to the last one, zero if the id follows, and its type. None at the end.
    fn field(&mut self) -> Option<Option<(i16, u8)>> {
        let head = self.byte()?;
        let (step, kind) = (head >> 4, head & 0xf);
        Some((kind != STOP).then_some((step.into(), kind)))
    }

    /// The number of values of a list, of which each takes a byte at least, and their type.
    fn list(&mut self) -> Option<(usize, u8)> {
        let head = self.byte()?;
        let count = match head >> 4 {
            0xf => usize::try_from(self.unsigned()?).ok()?,
            count => count.into(),
        };
        (count <= self.rest.len()).then_some((count, head & 0xf))
    }

    fn number(&mut self) -> Option<i64> {
        let zigzag = self.unsigned()?;
        Some((zigzag >> 1) as i64 ^ -((zigzag & 1) as i64))
    }

    fn skip_bytes(&mut self) -> Option<()> {
        let length = usize::try_from(self.unsigned()?).ok()?;
        self.take(length).map(drop)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take(1)?.first().copied()
    }

    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIELDS: &[(i16, Form)] =
        &[(1, Form::Number), (2, Form::Count), (4, Form::List(&Form::Bytes)), (5, Form::ShortList(2, &Form::Number))];

    fn is_possible(bytes: &[u8]) -> bool {
        let mut compact = Compact::new(bytes);
        compact.fields(FIELDS, 0).is_some_and(|()| compact.position() == bytes.len())
    }

    #[test]
    fn structs_with_these_fields_are_read_to_their_end() {
        // 1: 300, 2: 3, 4: ["a", ""].
        assert!(is_possible(&[0x15, 0xd8, 0x04, 0x15, 0x06, 0x29, 0x28, 0x01, b'a', 0x00, 0x00]));
        // 3 is unknown: a struct with a double, a list of numbers, and a field whose id follows.
        let unknown = [0x3c, 0x17, 0, 0, 0, 0, 0, 0, 0, 0, 0x19, 0x25, 0x02, 0x80, 0x01, 0x05, 0x40, 0x02, 0x00, 0x00];
        assert!(is_possible(&unknown));
        // 5: [1, 2].
        assert!(is_possible(&[0x59, 0x25, 0x02, 0x04, 0x00]));
        assert!(is_possible(&[0x00]));
    }

    #[test]
    fn what_a_struct_cannot_have_is_not_read() {
        for (bytes, why) in [
            (&[0x15, 0x02][..], "it has no end"),
            (&[0x18, 0x00, 0x00], "it has another type"),
            (&[0x15, 0x02, 0x05, 0x02, 0x02, 0x00], "a field comes again"),
            (&[0x25, 0x0e, 0x00], "it counts more than there are bytes"),
            (&[0x25, 0x01, 0x00], "it counts less than nothing"),
            (&[0x49, 0xf8, 0xff, 0xff, 0xff, 0xff, 0x07, 0x00], "a list has more values than there are bytes"),
            (&[0x59, 0x35, 0x02, 0x04, 0x06, 0x00], "a list has more values than it may have"),
            (&[0x49, 0x18, 0x09, b'a', 0x00], "a text is longer than the rest"),
            (&[0x15, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01, 0x00], "a number is too long"),
            (&[0x3b, 0x00, 0x00], "it has a map"),
        ] {
            assert!(!is_possible(bytes), "{why}");
        }
        let deep = [[0x3c; 1].as_slice(), &[0x1c; 40], &[0; 42]].concat();
        assert!(!is_possible(&deep));
    }
}
