//! Why a function gave no result: its kind, where in the user's text, and a bounded message.

use crate::guest::Guest;
use crate::js::{Primitive, Thrown, Value};
use crate::json::{Refusal, Writer};
use crate::wire::{Kind, Slot, Writer as Reply};

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
        let bounds = guest.bounds();
        let message = match refusal {
            Refusal::Threw(thrown) => return Self::thrown(guest, slot, Kind::Thrown, &thrown),
            Refusal::Circular => "returned an object that contains itself".to_owned(),
            Refusal::TooDeep => format!("returned objects more than {} levels deep", bounds.fields_depth_max),
            Refusal::TooManyKeys => format!("returned more than {} keys", bounds.fields_keys_max),
            Refusal::TooLong => format!("returned more than {} bytes of JSON", bounds.fields_bytes_max),
            Refusal::BigInt => {
                "returned a BigInt, which JSON does not have; convert it with Number() or String()".to_owned()
            }
        };
        Self::output(slot, message)
    }

    /// What happened, in words.
    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// Appends the failure to a reply, with at most `bytes_max` of its message.
    pub(crate) fn write(&self, reply: &mut Reply, bytes_max: u32) {
        reply.byte(self.slot as u8).byte(self.kind as u8).number(self.line).number(self.column);
        reply.text(cut(self.message.as_bytes(), bytes_max).as_bytes());
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
            Ok(text) => (kind, text),
            Err(thrown) if thrown.is_interruption() => classify(guest, kind, &thrown),
            Err(_) => (kind, "a value that cannot be shown".to_owned()),
        },
    }
}

/// A thrown value in words. Asking it may run script, which may throw again.
fn describe(guest: &Guest, value: &Value) -> Result<String, Thrown> {
    let bytes_max = guest.bounds().message_bytes_max;
    let is_plain_object = value.primitive() == Primitive::Object && !value.is_error() && !value.is_function();
    if is_plain_object {
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

/// `text`, no longer than `bytes_max`; what is no UTF-8 is replaced.
pub(crate) fn cut(text: &[u8], bytes_max: u32) -> String {
    const ELLIPSIS: &str = "…";
    let bytes_max = bytes_max as usize;
    // One character more than fits, so that the cut is seen below.
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

/// Line and column of the innermost frame in the function's own text; zeros where there is none.
fn position(guest: &Guest, slot: Slot, value: &Value) -> (u32, u32) {
    if !value.is_error() {
        return guest.threw().unwrap_or((0, 0));
    }
    let Some(stack) = value.own_plain(guest.names.stack).filter(|stack| stack.primitive() == Primitive::Text) else {
        return (0, 0);
    };
    let Ok(stack) = stack.text() else { return (0, 0) };
    let stack = String::from_utf8_lossy(&stack);
    // A text that fills two slots goes by the name of the first.
    [slot, Slot::Decoder]
        .into_iter()
        .find_map(|slot| stack.lines().find_map(|frame| frame_position(frame, &Guest::file(slot).to_string_lossy())))
        .unwrap_or((0, 0))
}

/// Reads `    at name (file:line:column)` or `    at file:line:column`.
fn frame_position(frame: &str, file: &str) -> Option<(u32, u32)> {
    let place = frame.trim_end_matches(')').rsplit([' ', '(']).next()?;
    let (line, column) = place.strip_prefix(file)?.strip_prefix(':')?.split_once(':')?;
    Some((line.parse().ok()?, column.parse().ok()?))
}
