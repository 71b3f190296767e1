//! Why a load or call failed: the kind, the position in the source, and a bounded message.

use crate::guest::Guest;
use crate::js::{Primitive, Thrown, Value};
use crate::json::{Refusal, Writer};
use crate::wire::{FailureKind, Slot, Writer as Reply};

const OUT_OF_MEMORY: &str = "ran out of memory";

/// A failed load or call.
pub(crate) struct Failure {
    slot: Slot,
    kind: FailureKind,
    line: u32,
    column: u32,
    message: String,
}

impl Failure {
    /// A failure without a position.
    pub(crate) fn new(slot: Slot, kind: FailureKind, message: impl Into<String>) -> Self {
        Self { slot, kind, line: 0, column: 0, message: message.into() }
    }

    /// A failure because of an unusable result.
    pub(crate) fn output(slot: Slot, message: impl Into<String>) -> Self {
        Self::new(slot, FailureKind::Output, message)
    }

    pub(crate) fn out_of_memory(slot: Slot) -> Self {
        Self::new(slot, FailureKind::Memory, OUT_OF_MEMORY)
    }

    /// A failure because of a thrown value; of `kind` unless QuickJS itself threw it.
    pub(crate) fn thrown(guest: &Guest, slot: Slot, kind: FailureKind, thrown: &Thrown) -> Self {
        let (line, column) = position(guest, slot, &thrown.0);
        let (kind, message) = classify(guest, kind, thrown);
        Self { slot, kind, line, column, message }
    }

    /// A failure because a value has no JSON.
    pub(crate) fn refused(guest: &Guest, slot: Slot, refusal: Refusal) -> Self {
        let limits = guest.limits();
        let message = match refusal {
            Refusal::Threw(thrown) => return Self::thrown(guest, slot, FailureKind::Thrown, &thrown),
            Refusal::Circular => "returned an object that contains itself".to_owned(),
            Refusal::TooDeep => format!("returned objects more than {} levels deep", limits.fields_depth_max),
            Refusal::TooManyKeys => format!("returned more than {} keys", limits.fields_keys_max),
            Refusal::TooLong => format!("returned more than {} bytes of JSON", limits.fields_bytes_max),
            Refusal::BigInt => {
                "returned a BigInt, which JSON does not have; convert it with Number() or String()".to_owned()
            }
        };
        Self::output(slot, message)
    }

    /// This failure, or `other` if that is further on in the source. What has no position comes after reading it.
    pub(crate) fn or_if_later(self, other: Self) -> Self {
        let is_other_later = self.line > 0 && (other.line, other.column) >= (self.line, self.column);
        if is_other_later { other } else { self }
    }

    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// Appends the failure to a reply, its message truncated to `bytes_max`.
    pub(crate) fn write(&self, reply: &mut Reply, bytes_max: u32) {
        reply.byte(self.slot as u8).byte(self.kind as u8).number(self.line).number(self.column);
        reply.text(cut(self.message.as_bytes(), bytes_max).as_bytes());
    }
}

/// Tells QuickJS's own errors from those of the script, by their messages.
fn classify(guest: &Guest, kind: FailureKind, thrown: &Thrown) -> (FailureKind, String) {
    let value = &thrown.0;
    if thrown.is_interruption() {
        return (FailureKind::Fuel, "used up its fuel".to_owned());
    }
    // When QuickJS has no memory for an error object, it throws null or nothing at all.
    let is_nothing = value.is_missing() || value.primitive() == Primitive::Null;
    let own = value.is_error().then(|| value.own_plain(guest.names.message)).flatten();
    match own.and_then(|message| message.text().ok()).as_deref() {
        Some(b"out of memory") => (FailureKind::Memory, OUT_OF_MEMORY.to_owned()),
        None if is_nothing && guest.runtime.has_refused_memory() => (FailureKind::Memory, OUT_OF_MEMORY.to_owned()),
        Some(b"Maximum call stack size exceeded") => (FailureKind::Stack, "called itself too deeply".to_owned()),
        _ => match describe(guest, value) {
            Ok(text) => (kind, text),
            Err(thrown) if thrown.is_interruption() => classify(guest, kind, &thrown),
            Err(_) => (kind, "a value that cannot be shown".to_owned()),
        },
    }
}

/// The text that an object gives if nothing gave it a better one.
const NO_TEXT: &[u8] = b"[object ";

/// Describes a thrown value. This may run script, which may throw again.
fn describe(guest: &Guest, value: &Value) -> Result<String, Thrown> {
    let bytes_max = guest.limits().message_bytes_max;
    let is_object = value.primitive() == Primitive::Object && !value.is_error() && !value.is_function();
    if is_object {
        // An error of the script's own making has a text, as ES5 writes them, without being one for the engine.
        match value.text() {
            Ok(text) if !value.is_array() && !text.starts_with(NO_TEXT) => return Ok(cut(&text, bytes_max)),
            Err(thrown) if thrown.is_interruption() => return Err(thrown),
            _ => {}
        }
        let mut writer = Writer::new(guest, bytes_max as usize);
        match writer.write(value.share(value.realm())) {
            Ok(true) | Err(Refusal::TooLong) => {
                return Ok(String::from_utf8_lossy(&writer.into_parts().0).into_owned());
            }
            Err(Refusal::Threw(thrown)) if thrown.is_interruption() => return Err(thrown),
            _ => {}
        }
    }
    let text = value.text()?;
    Ok(cut(&text, bytes_max))
}

/// Truncates `text` to `bytes_max` and replaces invalid UTF-8.
pub(crate) fn cut(text: &[u8], bytes_max: u32) -> String {
    const ELLIPSIS: &str = "…";
    let bytes_max = bytes_max as usize;
    // Up to one character more than fits, so that the check below notices the truncation.
    let mut text = String::from_utf8_lossy(&text[..text.len().min(bytes_max + 4)]).into_owned();
    if text.len() > bytes_max {
        let end = bytes_max.saturating_sub(ELLIPSIS.len());
        text.truncate((0..=end).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0));
        if bytes_max >= ELLIPSIS.len() {
            text.push_str(ELLIPSIS);
        }
    }
    text
}

/// Line and column of the innermost frame in the function's own source; zeros if there is none.
fn position(guest: &Guest, slot: Slot, value: &Value) -> (u32, u32) {
    if !value.is_error() {
        return guest.threw().unwrap_or((0, 0));
    }
    // Scripts can give it another one of their own.
    let stack = value.own_plain(guest.names.stack).unwrap_or_else(|| value.error_stack());
    if stack.primitive() != Primitive::Text {
        return (0, 0);
    }
    let Ok(stack) = stack.text() else { return (0, 0) };
    let stack = String::from_utf8_lossy(&stack);
    // A source that fills two slots has the file name of the first.
    [slot, Slot::Decoder]
        .into_iter()
        .find_map(|slot| stack.lines().find_map(|frame| frame_position(frame, &Guest::file(slot).to_string_lossy())))
        .unwrap_or((0, 0))
}

/// Reads `    at name (file:line:column)` or `    at file:line:column`.
fn frame_position(frame: &str, file: &str) -> Option<(u32, u32)> {
    let location = frame.trim_end_matches(')').rsplit([' ', '(']).next()?;
    let (line, column) = location.strip_prefix(file)?.strip_prefix(':')?.split_once(':')?;
    Some((line.parse().ok()?, column.parse().ok()?))
}
