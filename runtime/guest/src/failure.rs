//! Why a function gave no result: its kind, where in the user's text, and a bounded message.

use crate::guest::Guest;
use crate::js::{Primitive, Thrown, Value};
use crate::json::{Refusal, Writer};
use crate::wire::{Kind, Slot, Writer as Reply};

/// The longest message, in bytes.
const MESSAGE_BYTES_MAX: usize = 1024;
const OUT_OF_MEMORY: &str = "ran out of memory";

/// A failed load or call.
pub(crate) struct Failure {
    slot: Slot,
    kind: Kind,
    line: u32,
    column: u32,
    message: String,
}

impl Failure {
    /// A failure that has no place in the text.
    pub(crate) fn new(slot: Slot, kind: Kind, message: impl Into<String>) -> Self {
        Self { slot, kind, line: 0, column: 0, message: message.into() }
    }

    /// A result that cannot be used.
    pub(crate) fn output(slot: Slot, message: impl Into<String>) -> Self {
        Self::new(slot, Kind::Output, message)
    }

    /// What became of a thrown value; `kind` if it is nothing special.
    pub(crate) fn thrown(guest: &Guest, slot: Slot, kind: Kind, thrown: &Thrown) -> Self {
        let (line, column) = position(guest, slot, &thrown.0);
        let (kind, message) = classify(guest, kind, thrown);
        Self { slot, kind, line, column, message }
    }

    /// What became of a value that has no JSON.
    pub(crate) fn refused(guest: &Guest, slot: Slot, refusal: Refusal) -> Self {
        let message = match refusal {
            Refusal::Threw(thrown) => return Self::thrown(guest, slot, Kind::Thrown, &thrown),
            Refusal::Circular => "returned an object that contains itself",
            Refusal::TooDeep => "returned objects more than 32 levels deep",
            Refusal::TooManyKeys => "returned more than 1024 keys",
            Refusal::TooLong => "returned more than 16 KiB of JSON",
            Refusal::BigInt => "returned a BigInt, which JSON does not have; convert it with Number() or String()",
        };
        Self::output(slot, message)
    }

    /// Appends the failure to a reply.
    pub(crate) fn write(&self, reply: &mut Reply) {
        reply.byte(self.slot as u8).byte(self.kind as u8).number(self.line).number(self.column);
        reply.text(self.message.as_bytes());
    }
}

/// Tells the engine's own errors from those of the script by the text that only they have.
fn classify(guest: &Guest, kind: Kind, thrown: &Thrown) -> (Kind, String) {
    let value = &thrown.0;
    if thrown.is_interruption() {
        return (Kind::Fuel, "used up its fuel".to_owned());
    }
    // Without room for an error QuickJS throws null, or nothing at all.
    let is_nothing = value.is_missing() || value.primitive() == Primitive::Null;
    let own = value.is_error().then(|| value.own_plain(guest.names.message)).flatten();
    match own.and_then(|message| message.text().ok()).as_deref() {
        Some(b"out of memory") => (Kind::Memory, OUT_OF_MEMORY.to_owned()),
        None if is_nothing && guest.runtime.has_refused_memory() => (Kind::Memory, OUT_OF_MEMORY.to_owned()),
        Some(b"Maximum call stack size exceeded") => (Kind::Stack, "called itself too deeply".to_owned()),
        _ => match describe(guest, value) {
            Ok(text) => (kind, cut(text, MESSAGE_BYTES_MAX)),
            Err(thrown) if thrown.is_interruption() => classify(guest, kind, &thrown),
            Err(_) => (kind, "a value that cannot be shown".to_owned()),
        },
    }
}

/// A thrown value in words. Asking it may run script, which may throw again.
fn describe(guest: &Guest, value: &Value) -> Result<String, Thrown> {
    let is_plain_object = value.primitive() == Primitive::Object && !value.is_error() && !value.is_function();
    if is_plain_object {
        let mut writer = Writer::new(guest, MESSAGE_BYTES_MAX);
        match writer.write(value.share(value.realm())) {
            Ok(true) | Err(Refusal::TooLong) => {
                return Ok(String::from_utf8_lossy(&writer.into_parts().0).into_owned());
            }
            Err(Refusal::Threw(thrown)) if thrown.is_interruption() => return Err(thrown),
            _ => {}
        }
    }
    let text = value.text()?;
    Ok(String::from_utf8_lossy(&text[..text.len().min(MESSAGE_BYTES_MAX + 4)]).into_owned())
}

/// `text`, no longer than `bytes_max`.
pub(crate) fn cut(mut text: String, bytes_max: usize) -> String {
    const ELLIPSIS: &str = "…";
    if text.len() > bytes_max {
        let end = (0..=bytes_max - ELLIPSIS.len()).rev().find(|end| text.is_char_boundary(*end));
        text.truncate(end.unwrap_or(0));
        text.push_str(ELLIPSIS);
    }
    text
}

/// Line and column of the innermost frame in the function's own text; zeros where there is none.
fn position(guest: &Guest, slot: Slot, value: &Value) -> (u32, u32) {
    let Some(stack) = value.own_plain(guest.names.stack).filter(|stack| stack.primitive() == Primitive::Text) else {
        return (0, 0);
    };
    let Ok(stack) = stack.text() else { return (0, 0) };
    let stack = String::from_utf8_lossy(&stack);
    let file = Guest::file(slot).to_string_lossy();
    stack.lines().find_map(|frame| frame_position(frame, &file)).unwrap_or((0, 0))
}

/// Reads `    at name (file:line:column)` or `    at file:line:column`.
fn frame_position(frame: &str, file: &str) -> Option<(u32, u32)> {
    let place = frame.trim_end_matches(')').rsplit([' ', '(']).next()?;
    let (line, column) = place.strip_prefix(file)?.strip_prefix(':')?.split_once(':')?;
    Some((line.parse().ok()?, column.parse().ok()?))
}
