//! What scripts write to the console, within limits.

use crate::bounds::Bounds;
use crate::failure::cut;
use crate::guest::{self, Guest};
use crate::js::{Primitive, Realm, Thrown, Value};
use crate::json::{Refusal, Writer};
use crate::wire::{Level, Slot, Writer as Reply};
use std::ffi::CStr;

/// What a field costs beside its text, so that empty ones are bounded too.
const FIELD_BYTES: usize = 8;

const METHODS: [(&str, &CStr, Level); 6] = [
    ("log", c"log", Level::Info),
    ("info", c"info", Level::Info),
    ("debug", c"debug", Level::Debug),
    ("trace", c"trace", Level::Debug),
    ("warn", c"warn", Level::Warn),
    ("error", c"error", Level::Error),
];

/// The entries of one load or call.
#[derive(Default)]
pub(crate) struct Log {
    entries: Vec<Entry>,
    bytes: usize,
    /// Set by the first entry that found no room.
    overflow: Option<Slot>,
}

struct Entry {
    slot: Slot,
    level: Level,
    fields: Vec<String>,
}

impl Log {
    fn has_room(&self, bounds: &Bounds) -> bool {
        self.overflow.is_none()
            && self.entries.len() < bounds.log_entries_max as usize
            && self.bytes < bounds.log_bytes_max as usize
    }

    fn push(&mut self, entry: Entry, bounds: &Bounds) {
        let bytes = entry.fields.iter().map(|field| field.len() + FIELD_BYTES).sum::<usize>() + FIELD_BYTES;
        if !self.has_room(bounds) || self.bytes + bytes > bounds.log_bytes_max as usize {
            self.overflow.get_or_insert(entry.slot);
            return;
        }
        self.bytes += bytes;
        self.entries.push(entry);
    }

    /// Appends the entries to a reply, with a marker if some were dropped.
    pub(crate) fn write(&self, reply: &mut Reply) {
        reply.number((self.entries.len() + usize::from(self.overflow.is_some())) as u32);
        for entry in &self.entries {
            reply.byte(entry.slot as u8).byte(entry.level as u8).number(entry.fields.len() as u32);
            for field in &entry.fields {
                reply.text(field.as_bytes());
            }
        }
        if let Some(slot) = self.overflow {
            reply.byte(slot as u8).byte(Level::Warn as u8).number(1).text(br#""further log entries were dropped""#);
        }
    }
}

/// Gives `realm` its `console`.
pub(crate) fn install(realm: Realm) -> Result<(), Thrown> {
    let console = realm.object()?;
    for (name, c_name, level) in METHODS {
        console.define(realm.atom(name), realm.function(c_name, write, level as i32)?)?;
    }
    realm.global().define(realm.atom("console"), console)
}

/// What `console.log` and its like call.
fn write(realm: Realm, arguments: &[Value], level: i32) -> Result<Value, Thrown> {
    let guest = guest::get();
    if let (Some(slot), Some(level)) = (guest.slot(), Level::from_byte(level as u8)) {
        // The log is not borrowed while the arguments are asked, which may run script that logs.
        let bounds = guest.bounds();
        let fields = if guest.log.borrow().has_room(&bounds) { fields(guest, arguments)? } else { Vec::new() };
        guest.log.borrow_mut().push(Entry { slot, level, fields }, &bounds);
    }
    Ok(realm.undefined())
}

/// The arguments as texts; only an interruption of what they run gets through.
fn fields(guest: &Guest, arguments: &[Value]) -> Result<Vec<String>, Thrown> {
    let bounds = guest.bounds();
    let mut room = bounds.log_bytes_max as usize;
    let mut fields = Vec::new();
    for argument in arguments {
        let field = cut(field(guest, argument)?.as_bytes(), bounds.log_field_bytes_max);
        let Some(rest) = room.checked_sub(field.len() + FIELD_BYTES) else { break };
        room = rest;
        fields.push(field);
    }
    Ok(fields)
}

/// One argument as JSON text, or words in quotes where it has none.
fn field(guest: &Guest, argument: &Value) -> Result<String, Thrown> {
    if argument.primitive() == Primitive::Symbol {
        return Ok(r#""[symbol]""#.to_owned());
    }
    let shown = if argument.is_error() { error_fields(guest, argument).ok() } else { None };
    let mut writer = Writer::new(guest, guest.bounds().log_field_bytes_max as usize);
    let outcome = writer.write(shown.unwrap_or_else(|| argument.share(argument.realm())));
    let written = || String::from_utf8_lossy(&writer.into_parts().0).into_owned();
    Ok(match outcome {
        Ok(true) => written(),
        // One byte too many, so that the caller marks the cut.
        Err(Refusal::TooLong) => written() + " …",
        Ok(false) => "undefined".to_owned(),
        Err(Refusal::Circular) => r#""[circular]""#.to_owned(),
        Err(Refusal::TooDeep | Refusal::TooManyKeys) => r#""[too large]""#.to_owned(),
        Err(Refusal::BigInt) if argument.primitive() == Primitive::BigInt => {
            format!(r#""{}n""#, String::from_utf8_lossy(&argument.text()?))
        }
        Err(Refusal::BigInt) => r#""[contains a bigint]""#.to_owned(),
        Err(Refusal::Threw(thrown)) if thrown.is_interruption() => return Err(thrown),
        Err(Refusal::Threw(_)) => r#""[threw while it was shown]""#.to_owned(),
    })
}

/// An error as an object, since its message and name are not among what JSON shows.
fn error_fields(guest: &Guest, error: &Value) -> Result<Value, Thrown> {
    let shown = error.realm().object()?;
    for name in [guest.names.message, guest.names.name] {
        shown.set(name, error.get(name)?)?;
    }
    Ok(shown)
}
