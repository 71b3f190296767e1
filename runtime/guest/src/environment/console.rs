//! The `console` of scripts.

use crate::failure::cut;
use crate::guest::{self, Entry, FIELD_BYTES, Guest};
use crate::js::{Primitive, Realm, Thrown, Value};
use crate::json::{Refusal, Writer};
use crate::wire::LogLevel;
use std::ffi::CStr;

const METHODS: [(&str, &CStr, LogLevel); 6] = [
    ("log", c"log", LogLevel::Info),
    ("info", c"info", LogLevel::Info),
    ("debug", c"debug", LogLevel::Debug),
    ("trace", c"trace", LogLevel::Debug),
    ("warn", c"warn", LogLevel::Warn),
    ("error", c"error", LogLevel::Error),
];

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
    let Some(guest) = guest::get() else { return Ok(realm.undefined()) };
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
