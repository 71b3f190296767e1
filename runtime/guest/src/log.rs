//! The `console` of scripts, within limits.

use crate::failure::cut;
use crate::guest::{self, Guest};
use crate::guest_limits::GuestLimits;
use crate::js::{Primitive, Realm, Thrown, Value};
use crate::json::{Refusal, Writer};
use crate::wire::{LogLevel, Slot, Writer as Reply};
use std::ffi::CStr;

/// Overhead counted for each field, so that the limit covers empty ones too.
const FIELD_BYTES: usize = 8;

const METHODS: [(&str, &CStr, LogLevel); 6] = [
    ("log", c"log", LogLevel::Info),
    ("info", c"info", LogLevel::Info),
    ("debug", c"debug", LogLevel::Debug),
    ("trace", c"trace", LogLevel::Debug),
    ("warn", c"warn", LogLevel::Warn),
    ("error", c"error", LogLevel::Error),
];

/// The entries of one load or call.
#[derive(Default)]
pub(crate) struct Log {
    entries: Vec<Entry>,
    bytes: usize,
    /// The slot of the first entry that did not fit.
    overflow: Option<Slot>,
}

struct Entry {
    slot: Slot,
    level: LogLevel,
    fields: Vec<String>,
}

impl Log {
    fn has_room(&self, limits: &GuestLimits) -> bool {
        self.overflow.is_none()
            && self.entries.len() < limits.log_entries_max as usize
            && self.bytes < limits.log_bytes_max as usize
    }

    fn push(&mut self, entry: Entry, limits: &GuestLimits) {
        let bytes = entry.fields.iter().map(|field| field.len() + FIELD_BYTES).sum::<usize>() + FIELD_BYTES;
        if !self.has_room(limits) || self.bytes + bytes > limits.log_bytes_max as usize {
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
            reply.byte(slot as u8).byte(LogLevel::Warn as u8).number(1).text(br#""further log entries were dropped""#);
        }
    }
}

/// Installs `console` in `realm`.
pub(crate) fn install(realm: Realm) -> Result<(), Thrown> {
    let console = realm.object()?;
    for (name, c_name, level) in METHODS {
        console.define(realm.atom(name), realm.function(c_name, write, level as i32)?)?;
    }
    realm.global().define(realm.atom("console"), console)
}

/// Implements `console.log` and the other methods.
fn write(realm: Realm, arguments: &[Value], level: i32) -> Result<Value, Thrown> {
    let guest = guest::get();
    if let (Some(slot), Some(level)) = (guest.slot(), LogLevel::from_byte(level as u8)) {
        // Converting the arguments may run script that logs, so the log must not be borrowed meanwhile.
        let limits = guest.limits();
        let fields = if guest.log.borrow().has_room(&limits) { fields(guest, arguments)? } else { Vec::new() };
        guest.log.borrow_mut().push(Entry { slot, level, fields }, &limits);
    }
    Ok(realm.undefined())
}

/// Converts the arguments to text. Fails only if the script is interrupted meanwhile.
fn fields(guest: &Guest, arguments: &[Value]) -> Result<Vec<String>, Thrown> {
    let limits = guest.limits();
    let mut room = limits.log_bytes_max as usize;
    let mut fields = Vec::new();
    for argument in arguments {
        let field = cut(field(guest, argument)?.as_bytes(), limits.log_field_bytes_max);
        let Some(rest) = room.checked_sub(field.len() + FIELD_BYTES) else { break };
        room = rest;
        fields.push(field);
    }
    Ok(fields)
}

/// Converts one argument to JSON, or to a quoted description where it has none.
fn field(guest: &Guest, argument: &Value) -> Result<String, Thrown> {
    if argument.primitive() == Primitive::Symbol {
        return Ok(r#""[symbol]""#.to_owned());
    }
    let shown = if argument.is_error() { error_fields(guest, argument).ok() } else { None };
    let mut writer = Writer::new(guest, guest.limits().log_field_bytes_max as usize);
    let outcome = writer.write(shown.unwrap_or_else(|| argument.share(argument.realm())));
    let written = || String::from_utf8_lossy(&writer.into_parts().0).into_owned();
    Ok(match outcome {
        Ok(true) => written(),
        // One byte too long, so that the caller marks the truncation.
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

/// The name and message of an error as an object; JSON would omit both.
fn error_fields(guest: &Guest, error: &Value) -> Result<Value, Thrown> {
    let shown = error.realm().object()?;
    for name in [guest.names.message, guest.names.name] {
        shown.set(name, error.get(name)?)?;
    }
    Ok(shown)
}
