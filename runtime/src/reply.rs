//! Reads what a guest replied, which may be anything: tenant code has run on its side of the wall.

use serde_json::value::RawValue;

use crate::call::{LogEntry, Report, Value};
use crate::failure::Failure;
use crate::wire::{Dialect, Kind, Level, Reader, Slot};

/// The longest reply that is read at all: results, warnings and logs have bounds far below.
pub(crate) const REPLY_BYTES_MAX: usize = 256 * 1024;
const FIELDS_BYTES_MAX: usize = 16 * 1024;
const FIELDS_DEPTH_MAX: usize = 32;
const PAYLOAD_BYTES_MAX: usize = 242;
const TEXT_BYTES_MAX: usize = 4 * 1024;
const WARNINGS_MAX: usize = 64;
const LOG_ENTRIES_MAX: usize = 65;
const LOG_FIELDS_MAX: usize = 2048;
const LOG_BYTES_MAX: usize = 64 * 1024;

/// Reads the reply to a call; `None` for one that makes no sense.
pub(crate) fn call(bytes: &[u8]) -> Option<Report> {
    let mut reader = Reader::new(bytes);
    let result = match reader.byte()? {
        0 => Ok(fields(&mut reader)?),
        1 => Ok(payload(&mut reader)?),
        2 => Err(failure(&mut reader)?),
        _ => return None,
    };
    let warnings = texts(&mut reader, WARNINGS_MAX)?;
    let logs = logs(&mut reader)?;
    reader.is_empty().then_some(Report { warnings, logs, ..Report::of(result) })
}

/// Reads the reply to a load: the dialect in each slot, or why there is none.
pub(crate) fn load(bytes: &[u8]) -> Option<Result<[Option<Dialect>; 4], Failure>> {
    let mut reader = Reader::new(bytes);
    let reply = match reader.byte()? {
        0 => {
            let mut dialects = [None; 4];
            for dialect in &mut dialects {
                *dialect = match reader.byte()? {
                    0 => None,
                    byte => Some(Dialect::from_byte(byte)?),
                };
            }
            Ok(dialects)
        }
        1 => Err(failure(&mut reader)?),
        _ => return None,
    };
    reader.is_empty().then_some(reply)
}

fn fields(reader: &mut Reader<'_>) -> Option<Value> {
    let valid = match reader.byte()? {
        0 => false,
        1 => true,
        _ => return None,
    };
    Some(Value::Fields { json: object(text(reader, FIELDS_BYTES_MAX)?)?, valid })
}

fn payload(reader: &mut Reader<'_>) -> Option<Value> {
    let port = reader.byte()?;
    let bytes = reader.text().filter(|bytes| bytes.len() <= PAYLOAD_BYTES_MAX)?;
    Some(Value::Bytes { bytes: bytes.to_vec(), port: (port != 0).then_some(port) })
}

fn failure(reader: &mut Reader<'_>) -> Option<Failure> {
    let slot = Slot::from_byte(reader.byte()?)?;
    let kind = Kind::from_byte(reader.byte()?)?;
    let line = known(reader.number()?);
    let column = known(reader.number()?);
    Some(Failure { slot, kind, line, column, message: text(reader, TEXT_BYTES_MAX)?.to_owned() })
}

fn logs(reader: &mut Reader<'_>) -> Option<Vec<LogEntry>> {
    let count = count(reader, LOG_ENTRIES_MAX)?;
    let mut left = LOG_BYTES_MAX;
    let mut logs = Vec::with_capacity(count);
    for _ in 0..count {
        let slot = Slot::from_byte(reader.byte()?)?;
        let level = Level::from_byte(reader.byte()?)?;
        let fields = texts(reader, LOG_FIELDS_MAX)?;
        left = left.checked_sub(fields.iter().map(String::len).sum())?;
        logs.push(LogEntry { slot, level, fields });
    }
    Some(logs)
}

fn texts(reader: &mut Reader<'_>, most: usize) -> Option<Vec<String>> {
    let count = count(reader, most)?;
    (0..count).map(|_| text(reader, TEXT_BYTES_MAX).map(str::to_owned)).collect()
}

fn count(reader: &mut Reader<'_>, most: usize) -> Option<usize> {
    Some(reader.number()? as usize).filter(|count| *count <= most)
}

fn text<'a>(reader: &mut Reader<'a>, bytes_max: usize) -> Option<&'a str> {
    let bytes = reader.text().filter(|bytes| bytes.len() <= bytes_max)?;
    std::str::from_utf8(bytes).ok()
}

fn known(number: u32) -> Option<u32> {
    (number != 0).then_some(number)
}

/// `text` as JSON, if it is null or an object of bounded depth.
fn object(text: &str) -> Option<Box<RawValue>> {
    // The parser for raw values checks the whole grammar and does not recurse.
    let json: Box<RawValue> = serde_json::from_str(text).ok()?;
    let fits = json.get() == "null" || (json.get().starts_with('{') && depth(json.get()) <= FIELDS_DEPTH_MAX);
    fits.then_some(json)
}

/// How deep objects and arrays are nested in well-formed `json`.
fn depth(json: &str) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    let (mut in_string, mut escaped) = (false, false);
    for byte in json.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = in_string,
            b'"' => in_string = !in_string,
            b'{' | b'[' if !in_string => depth += 1,
            b'}' | b']' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    deepest
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::wire::Writer;

    /// A reply with fields, one warning and one log entry.
    fn reply(fields: &str) -> Vec<u8> {
        let mut writer = Writer::default();
        writer.byte(0).byte(1).text(fields.as_bytes());
        writer.number(1).text(b"careful");
        writer.number(1).byte(0).byte(1).number(1).text(b"\"hello\"");
        writer.as_bytes().to_vec()
    }

    fn is_readable(fields: &str) -> bool {
        call(&reply(fields)).is_some()
    }

    #[test]
    fn fields_must_be_a_json_object_of_bounded_depth() {
        assert!(is_readable(r#"{"a":[1,"\\\"{[","\ud800"]}"#) && is_readable("{}") && is_readable("null"));
        for fields in ["", "[]", "1", "{", "{}{}", "{\"a\":NaN}", "{\"a\":01}", "{\"a\":\"\n\"}", "\"{\"", "{a:1}"] {
            assert!(!is_readable(fields), "{fields}");
        }
        let nested = |depth: usize| format!("{}1{}", "{\"a\":".repeat(depth), "}".repeat(depth));
        assert!(is_readable(&nested(FIELDS_DEPTH_MAX)));
        assert!(!is_readable(&nested(FIELDS_DEPTH_MAX + 1)));
        assert!(!is_readable(&format!("{{\"a\":{}1{}}}", "[".repeat(8000), "]".repeat(8000))));
    }

    #[test]
    fn fields_may_be_as_long_as_their_limit() {
        let long = |bytes: usize| format!("{{\"a\":\"{}\"}}", "x".repeat(bytes - 8));
        assert!(is_readable(&long(FIELDS_BYTES_MAX)));
        assert!(!is_readable(&long(FIELDS_BYTES_MAX + 1)));
    }

    #[test]
    fn texts_must_be_utf_8() {
        let mut bytes = reply("{}");
        let place = bytes.windows(5).position(|window| window == b"hello").unwrap();
        bytes[place] = 0xff;
        assert!(call(&bytes).is_none());
    }

    #[test]
    fn a_count_does_not_reserve_memory() {
        let mut writer = Writer::default();
        writer.byte(0).byte(1).text(b"{}").number(u32::MAX);
        assert!(call(writer.as_bytes()).is_none());
    }

    proptest! {
        #[test]
        fn no_bytes_make_a_reply_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = (call(&bytes), load(&bytes));
        }

        #[test]
        fn no_change_of_a_good_reply_makes_it_panic(place in 0_usize..80, byte: u8, cut in 0_usize..80) {
            let mut bytes = reply(r#"{"temperature":21.5,"alarms":["low","high"]}"#);
            let last = bytes.len() - 1;
            bytes[place.min(last)] = byte;
            let _ = call(&bytes);
            prop_assert!(call(&bytes[..cut.min(last)]).is_none());
        }
    }
}
