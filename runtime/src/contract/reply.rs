//! Parses replies of the guest. Tenant code has run there, so they may be anything.

use serde_json::value::RawValue;

use crate::contract::call::{CallOutcome, LogEntry, Value};
use crate::contract::failure::Failure;
use crate::contract::input::Shape;
use crate::contract::wire::{Dialect, FailureKind, LogLevel, Reader, Slot};
use crate::limits::Limits;

/// Number of bytes by which a truncated field, and the logs with the marker for dropped entries, may exceed their
/// limits.
const LOG_SLACK_BYTES: usize = 64;

/// Parses the reply to a call; `None` if it is malformed.
pub(crate) fn call(bytes: &[u8], limits: &Limits) -> Option<CallOutcome> {
    let mut reader = Reader::new(bytes);
    let result = match reader.byte()? {
        0 => Ok(fields(&mut reader, limits)?),
        1 => Ok(payload(&mut reader, limits)?),
        2 => Err(failure(&mut reader, limits)?),
        3 => Ok(Value::Returned { json: optional(&mut reader, limits)? }),
        _ => return None,
    };
    let warnings = texts(&mut reader, limits.warnings_max as usize, limits.message_bytes_max as usize)?;
    let logs = logs(&mut reader, limits)?;
    reader.is_empty().then_some(CallOutcome { warnings, logs, ..CallOutcome::new(result) })
}

/// Returns the maximum length of a reply within `limits`.
pub(crate) fn bytes_max(limits: &Limits) -> usize {
    /// Overhead of a text, log entry or failure.
    const OVERHEAD: usize = 16;
    let size = |number: u32| number as usize;
    let texts = |count: u32, bytes: u32| size(count).saturating_mul(size(bytes).saturating_add(OVERHEAD));
    [
        texts(2, limits.fields_bytes_max),
        texts(1, limits.payload_bytes_max),
        texts(limits.warnings_max.saturating_add(1), limits.message_bytes_max),
        texts(limits.log_entries_max, 0),
        texts(2, limits.log_bytes_max),
        1024,
    ]
    .into_iter()
    .fold(0, usize::saturating_add)
}

/// Tells whether bytes are a reply to a call, and to a load, with the default limits. For tests and fuzzing.
pub fn is_reply(bytes: &[u8]) -> [bool; 2] {
    let limits = Limits::default();
    [call(bytes, &limits).is_some(), load(bytes, &limits).is_some()]
}

/// Parses the reply to a load: the dialect of the function in each slot, or a failure. `None` if it is malformed.
pub(crate) fn load(bytes: &[u8], limits: &Limits) -> Option<Result<[Option<Dialect>; 4], Failure>> {
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
        1 => Err(failure(&mut reader, limits)?),
        _ => return None,
    };
    reader.is_empty().then_some(reply)
}

/// The guest's report after a trap.
pub(crate) struct TrapReport {
    /// The position of the script.
    pub(crate) line: Option<u32>,
    pub(crate) column: Option<u32>,
    /// Its console output.
    pub(crate) logs: Vec<LogEntry>,
}

/// Parses a trap report; `None` if it is malformed.
pub(crate) fn trap_report(bytes: &[u8], limits: &Limits) -> Option<TrapReport> {
    let mut reader = Reader::new(bytes);
    let (line, column) = (known(reader.number()?), known(reader.number()?));
    let report = TrapReport { line, column, logs: logs(&mut reader, limits)? };
    reader.is_empty().then_some(report)
}

fn fields(reader: &mut Reader<'_>, limits: &Limits) -> Option<Value> {
    let valid = match reader.byte()? {
        0 => false,
        1 => true,
        _ => return None,
    };
    let json = optional(reader, limits)?.filter(|json| json.get() == "null" || json.get().starts_with('{'))?;
    Some(Value::Fields { json, normalized: optional(reader, limits)?, valid })
}

fn payload(reader: &mut Reader<'_>, limits: &Limits) -> Option<Value> {
    let port = reader.byte()?;
    let bytes = reader.text().filter(|bytes| bytes.len() <= limits.payload_bytes_max as usize)?;
    Some(Value::Bytes { bytes: bytes.to_vec(), port: (port != 0).then_some(port) })
}

fn failure(reader: &mut Reader<'_>, limits: &Limits) -> Option<Failure> {
    let slot = Slot::from_byte(reader.byte()?)?;
    let kind = FailureKind::from_byte(reader.byte()?)?;
    let line = known(reader.number()?);
    let column = known(reader.number()?);
    let message = text(reader, limits.message_bytes_max as usize)?.to_owned();
    Some(Failure { slot, function: None, kind, line, column, message })
}

fn logs(reader: &mut Reader<'_>, limits: &Limits) -> Option<Vec<LogEntry>> {
    let field_bytes_max = limits.log_field_bytes_max as usize + LOG_SLACK_BYTES;
    let mut left = limits.log_bytes_max as usize + LOG_SLACK_BYTES;
    let count = count(reader, limits.log_entries_max as usize + 1)?;
    let mut logs = Vec::new();
    for _ in 0..count {
        let slot = Slot::from_byte(reader.byte()?)?;
        let level = LogLevel::from_byte(reader.byte()?)?;
        let fields = texts(reader, left, field_bytes_max)?;
        left = left.checked_sub(fields.iter().map(String::len).sum())?;
        logs.push(LogEntry { slot, level, fields });
    }
    Some(logs)
}

fn texts(reader: &mut Reader<'_>, most: usize, bytes_max: usize) -> Option<Vec<String>> {
    let count = count(reader, most)?;
    (0..count).map(|_| text(reader, bytes_max).map(str::to_owned)).collect()
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

/// Reads JSON within the limits; `Some(None)` for empty text.
fn optional(reader: &mut Reader<'_>, limits: &Limits) -> Option<Option<Box<RawValue>>> {
    let text = text(reader, limits.fields_bytes_max as usize)?;
    if text.is_empty() {
        return Some(None);
    }
    // Parsing a raw value checks the whole grammar without recursion.
    let json: Box<RawValue> = serde_json::from_str(text).ok()?;
    Shape::of(json.get(), limits).fits(limits).then_some(Some(json))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::contract::wire::Writer;

    /// A reply with fields, one warning and one log entry.
    fn reply(fields: &str) -> Vec<u8> {
        let mut writer = Writer::default();
        writer.byte(0).byte(1).text(fields.as_bytes()).text(b"");
        writer.number(1).text(b"careful");
        writer.number(1).byte(0).byte(1).number(1).text(b"\"hello\"");
        writer.as_bytes().to_vec()
    }

    fn is_readable(fields: &str) -> bool {
        call(&reply(fields), &Limits::default()).is_some()
    }

    #[test]
    fn fields_must_be_a_json_object_of_bounded_depth() {
        assert!(is_readable(r#"{"a":[1,"\\\"{[","\ud800"]}"#) && is_readable("{}") && is_readable("null"));
        for fields in ["", "[]", "1", "{", "{}{}", "{\"a\":NaN}", "{\"a\":01}", "{\"a\":\"\n\"}", "\"{\"", "{a:1}"] {
            assert!(!is_readable(fields), "{fields}");
        }
        let nested = |depth: usize| format!("{}1{}", "{\"a\":".repeat(depth), "}".repeat(depth));
        assert!(is_readable(&nested(32)));
        assert!(!is_readable(&nested(33)));
        assert!(!is_readable(&format!("{{\"a\":{}1{}}}", "[".repeat(8000), "]".repeat(8000))));
        // Neither brackets one after the other nor those in strings are nested.
        assert!(is_readable(&format!("{{\"a\":[{}1]}}", "[{}],".repeat(500))));
        assert!(is_readable(&format!("{{\"a\":\"{}\"}}", "[".repeat(300))));
    }

    #[test]
    fn fields_may_be_as_long_as_their_limit() {
        let long = |bytes: usize| format!("{{\"a\":\"{}\"}}", "x".repeat(bytes - 8));
        assert!(is_readable(&long(16_384)));
        assert!(!is_readable(&long(16_385)));
    }

    #[test]
    fn fields_may_have_as_many_keys_as_their_limit() {
        let many = |keys: usize| format!("{{{}}}", vec!["\":\":1"; keys].join(","));
        assert!(is_readable(&many(1024)));
        assert!(!is_readable(&many(1025)));
    }

    #[test]
    fn texts_must_be_utf_8() {
        let mut bytes = reply("{}");
        let start = bytes.windows(5).position(|window| window == b"hello").unwrap();
        bytes[start] = 0xff;
        assert!(call(&bytes, &Limits::default()).is_none());
    }

    #[test]
    fn a_huge_count_does_not_reserve_memory() {
        let mut writer = Writer::default();
        writer.byte(0).byte(1).text(b"{}").text(b"").number(u32::MAX);
        assert!(call(writer.as_bytes(), &Limits::default()).is_none());
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = (call(&bytes, &Limits::default()), load(&bytes, &Limits::default()));
        }

        #[test]
        fn a_corrupted_reply_never_panics(index in 0_usize..80, byte: u8, cut in 0_usize..80) {
            let mut bytes = reply(r#"{"temperature":21.5,"alarms":["low","high"]}"#);
            let last = bytes.len() - 1;
            bytes[index.min(last)] = byte;
            let limits = Limits::default();
            let _ = call(&bytes, &limits);
            prop_assert!(call(&bytes[..cut.min(last)], &limits).is_none());
        }
    }
}
