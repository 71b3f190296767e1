//! Serializes a JavaScript value as `JSON.stringify` would, within limits.
//!
//! Deliberate differences: values that are too deep, too large or circular are refused with a specific reason, and `NaN`
//! and the infinities produce a note.

use crate::guest::Guest;
use crate::js::{Atom, Primitive, Realm, Thrown, Value};

/// The most notes about lost numbers.
const NOTES_MAX: usize = 16;

/// Why a value has no JSON.
pub(crate) enum Refusal {
    /// A getter, a proxy or `toJSON` threw.
    Threw(Thrown),
    /// An object contains itself.
    Circular,
    /// Objects are nested too deeply.
    TooDeep,
    /// There are too many keys.
    TooManyKeys,
    /// The JSON would be too long.
    TooLong,
    /// JSON has no BigInt.
    BigInt,
}

impl From<Thrown> for Refusal {
    fn from(thrown: Thrown) -> Self {
        Self::Threw(thrown)
    }
}

#[derive(Clone, Copy)]
enum Step {
    Root,
    Key(Atom),
    Index(u32),
}

/// Serializes one value.
pub(crate) struct Writer<'a> {
    guest: &'a Guest,
    out: Vec<u8>,
    bytes_max: usize,
    depth_max: usize,
    keys_left: usize,
    /// The path from the outermost object to the current value.
    path: Vec<Step>,
    /// The objects on that path.
    parents: Vec<u64>,
    notes: Vec<String>,
}

impl<'a> Writer<'a> {
    /// A writer of at most `bytes_max` bytes.
    pub(crate) fn new(guest: &'a Guest, bytes_max: usize) -> Self {
        Self {
            guest,
            out: Vec::with_capacity(512),
            bytes_max,
            depth_max: guest.limits().fields_depth_max as usize,
            keys_left: guest.limits().fields_keys_max as usize,
            path: Vec::with_capacity(8),
            parents: Vec::with_capacity(8),
            notes: Vec::new(),
        }
    }

    /// Writes `value`; false if JSON omits such a value.
    pub(crate) fn write(&mut self, value: Value) -> Result<bool, Refusal> {
        self.member(value, Step::Root)
    }

    /// The JSON, and notes about numbers that JSON cannot represent.
    pub(crate) fn into_parts(self) -> (Vec<u8>, Vec<String>) {
        (self.out, self.notes)
    }

    fn member(&mut self, value: Value, step: Step) -> Result<bool, Refusal> {
        let can_convert = matches!(value.primitive(), Primitive::Object | Primitive::BigInt);
        let value = if can_convert { self.resolve(value, step)? } else { value };
        match value.primitive() {
            Primitive::Object if value.is_function() => return Ok(false),
            Primitive::Undefined | Primitive::Symbol => return Ok(false),
            Primitive::Object => self.container(&value)?,
            Primitive::Text => self.text(&value)?,
            Primitive::Int(number) => self.integer(number),
            Primitive::Float(number) if number.is_finite() => self.float(number),
            Primitive::Float(number) => {
                self.note(number);
                self.out.extend_from_slice(b"null");
            }
            Primitive::Bool(true) => self.out.extend_from_slice(b"true"),
            Primitive::Bool(false) => self.out.extend_from_slice(b"false"),
            Primitive::Null => self.out.extend_from_slice(b"null"),
            Primitive::BigInt => return Err(Refusal::BigInt),
        }
        if self.out.len() > self.bytes_max { Err(Refusal::TooLong) } else { Ok(true) }
    }

    /// Calls `toJSON` if the object has it, and unboxes boxed primitives.
    fn resolve(&self, value: Value, step: Step) -> Result<Value, Refusal> {
        let convert = value.get(self.guest.names.to_json)?;
        let value = if convert.is_function() {
            let realm = value.realm();
            let key = match step {
                Step::Root => realm.string("")?,
                Step::Key(key) => key.value(realm)?,
                Step::Index(index) => realm.number(f64::from(index)).to_text()?,
            };
            convert.call(&value, [&key])?
        } else {
            value
        };
        if value.primitive() != Primitive::Object {
            return Ok(value);
        }
        let class = value.class();
        if class == self.guest.boxes.number {
            return Ok(value.to_number()?);
        }
        if class == self.guest.boxes.text {
            return Ok(value.to_text()?);
        }
        if class == self.guest.boxes.big_integer {
            return Err(Refusal::BigInt);
        }
        if class == self.guest.boxes.boolean {
            let is_true = value.to_number()?.primitive() == Primitive::Int(1);
            return Ok(value.realm().boolean(is_true));
        }
        Ok(value)
    }

    fn container(&mut self, value: &Value) -> Result<(), Refusal> {
        let identity = value.identity();
        if self.parents.contains(&identity) {
            return Err(Refusal::Circular);
        }
        if self.parents.len() == self.depth_max {
            return Err(Refusal::TooDeep);
        }
        self.parents.push(identity);
        if value.is_array() {
            self.array(value)?
        } else {
            self.object(value)?
        }
        self.parents.pop();
        Ok(())
    }

    fn array(&mut self, value: &Value) -> Result<(), Refusal> {
        self.out.push(b'[');
        for index in 0..value.length()?.min(i64::from(u32::MAX)) as u32 {
            if index > 0 {
                self.out.push(b',');
            }
            self.path.push(Step::Index(index));
            if !self.member(value.at(index)?, Step::Index(index))? {
                self.out.extend_from_slice(b"null");
            }
            self.path.pop();
            // Checked here too, because `member` does not check omitted values.
            if self.out.len() > self.bytes_max {
                return Err(Refusal::TooLong);
            }
        }
        self.out.push(b']');
        Ok(())
    }

    fn object(&mut self, value: &Value) -> Result<(), Refusal> {
        self.out.push(b'{');
        let start = self.out.len();
        if value.is_plain() {
            let mut index = 0;
            while let Some((next, key, member)) = value.next_property(index) {
                self.property(start, value.realm(), key, member)?;
                index = next;
            }
        } else {
            let keys = value.keys()?;
            for key in keys.iter() {
                self.property(start, value.realm(), key, value.get(key)?)?;
            }
        }
        self.out.push(b'}');
        Ok(())
    }

    /// Writes one property of the object that starts at `start`, unless JSON omits it.
    fn property(&mut self, start: usize, realm: Realm, key: Atom, member: Value) -> Result<(), Refusal> {
        self.keys_left = self.keys_left.checked_sub(1).ok_or(Refusal::TooManyKeys)?;
        let before = self.out.len();
        if before > start {
            self.out.push(b',');
        }
        match key.characters(realm) {
            Some(text) if self.can_be_copied(text) => self.copy(text),
            _ => self.string(&key.text(realm)?)?,
        }
        self.out.push(b':');
        self.path.push(Step::Key(key));
        if !self.member(member, Step::Key(key))? {
            self.out.truncate(before);
        }
        self.path.pop();
        Ok(())
    }

    fn text(&mut self, value: &Value) -> Result<(), Refusal> {
        match value.characters() {
            Some(text) if self.can_be_copied(text) => {
                self.copy(text);
                Ok(())
            }
            _ => self.string(&value.text()?),
        }
    }

    /// True if the characters need no escaping and fit.
    fn can_be_copied(&self, text: &[u8]) -> bool {
        text.len() <= self.bytes_max.saturating_sub(self.out.len())
            && text.iter().all(|byte| is_plain(*byte) && byte.is_ascii())
    }

    fn copy(&mut self, text: &[u8]) {
        self.out.reserve(text.len() + 2);
        self.out.push(b'"');
        self.out.extend_from_slice(text);
        self.out.push(b'"');
    }

    fn string(&mut self, text: &[u8]) -> Result<(), Refusal> {
        let room = self.bytes_max.saturating_sub(self.out.len());
        let fits = text.len() <= room;
        let text = if fits { text } else { &text[..room] };
        self.out.push(b'"');
        let mut plain = 0;
        for (index, byte) in text.iter().enumerate() {
            if is_plain(*byte) {
                continue;
            }
            self.out.extend_from_slice(&text[plain..index]);
            plain = index + self.special(text, index);
        }
        self.out.extend_from_slice(&text[plain.min(text.len())..]);
        self.out.push(b'"');
        if fits { Ok(()) } else { Err(Refusal::TooLong) }
    }

    /// Writes the byte at `index`, which needs escaping; returns how many bytes of `text` it consumed.
    fn special(&mut self, text: &[u8], index: usize) -> usize {
        let byte = text[index];
        let short = match byte {
            b'"' | b'\\' => byte,
            0x08 => b'b',
            0x0c => b'f',
            b'\n' => b'n',
            b'\r' => b'r',
            b'\t' => b't',
            0xed => return self.surrogate_or_other(&text[index..]),
            _ => {
                self.escape(u16::from(byte));
                return 1;
            }
        };
        self.out.extend_from_slice(&[b'\\', short]);
        1
    }

    /// Writes the character that begins with 0xed: a lone surrogate, which is not valid in UTF-8, as an escape. Returns how
    /// many bytes of `text` it consumed.
    fn surrogate_or_other(&mut self, text: &[u8]) -> usize {
        match *text {
            [_, second @ 0xa0..=0xbf, third, ..] => {
                self.escape(0xd000 | (u16::from(second & 0x3f) << 6) | u16::from(third & 0x3f));
                3
            }
            _ => {
                self.out.push(text[0]);
                1
            }
        }
    }

    /// Writes a UTF-16 code unit as an escape, in lower case.
    fn escape(&mut self, unit: u16) {
        const HEX: &[u8; 16] = b"0123456789abcdef";
        let digits = [12, 8, 4, 0].map(|shift| HEX[usize::from((unit >> shift) & 15)]);
        self.out.extend_from_slice(b"\\u");
        self.out.extend_from_slice(&digits);
    }

    fn integer(&mut self, number: i32) {
        let mut digits = [0; 10];
        let mut start = digits.len();
        let mut rest = number.unsigned_abs();
        loop {
            start -= 1;
            digits[start] = b'0' + (rest % 10) as u8;
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        if number < 0 {
            self.out.push(b'-');
        }
        self.out.extend_from_slice(&digits[start..]);
    }

    fn float(&mut self, number: f64) {
        self.out.extend_from_slice(ryu_js::Buffer::new().format_finite(number).as_bytes());
    }

    fn note(&mut self, number: f64) {
        if self.notes.len() < NOTES_MAX {
            let mut digits = ryu_js::Buffer::new();
            let number = digits.format(number);
            self.notes.push(format!("`{}` is {number}, which JSON writes as null", self.path_text()));
        }
    }

    fn path_text(&self) -> String {
        let mut text = String::new();
        for step in &self.path {
            match step {
                Step::Root => {}
                Step::Index(index) => text.push_str(&format!("[{index}]")),
                Step::Key(key) => {
                    if !text.is_empty() {
                        text.push('.');
                    }
                    if let Ok(key) = key.text(self.guest.realms[0]) {
                        text.push_str(&String::from_utf8_lossy(&key));
                    }
                }
            }
        }
        text
    }
}

/// True if a byte of a string needs no escaping in JSON.
fn is_plain(byte: u8) -> bool {
    byte >= 0x20 && !matches!(byte, b'"' | b'\\' | 0xed)
}
