//! Built-ins beyond ECMAScript that codecs expect: `Buffer`, `TextEncoder`, `TextDecoder`, `atob`, `btoa`.
//!
//! They are written in JavaScript, except UTF-8 conversion, which would be slow there. A source that mentions one of them
//! gets it installed before it is evaluated, so it becomes part of the image; other sources do not pay for it.

use crate::js::{Primitive, Realm, Thrown, Value};
use std::borrow::Cow;
use std::ffi::CStr;

macro_rules! script {
    ($file:literal) => {
        match CStr::from_bytes_with_nul(concat!(include_str!($file), "\0").as_bytes()) {
            Ok(text) => text,
            Err(_) => c"null",
        }
    };
}

// Each script is an expression that yields a function of one object.
const BUFFER: &CStr = script!("builtins/buffer.js");
const NUMBERS: &CStr = script!("builtins/numbers.js");
const TEXT: &CStr = script!("builtins/text.js");
// Takes effect when evaluated.
const FIXES: &CStr = script!("builtins/fixes.js");

/// Fixes deviations of QuickJS from other engines in `realm`.
pub(crate) fn apply_fixes(realm: Realm) -> Result<(), Thrown> {
    realm.value_of(FIXES).map(drop)
}

/// Installs the built-ins that `text` mentions.
pub(crate) fn install(realm: Realm, text: &[u8]) -> Result<(), Thrown> {
    let undefined = realm.undefined();
    if names(text, b"Buffer") {
        let shared = realm.value_of(BUFFER)?.call(&undefined, [&tools(realm)?])?;
        realm.value_of(NUMBERS)?.call(&undefined, [&shared])?;
    }
    if [&b"TextEncoder"[..], b"TextDecoder", b"atob", b"btoa"].iter().any(|name| names(text, name)) {
        realm.value_of(TEXT)?.call(&undefined, [&tools(realm)?])?;
    }
    Ok(())
}

/// True if `text` contains `name`, and not as the end of a longer name.
fn names(text: &[u8], name: &[u8]) -> bool {
    let is_name_byte = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$');
    let is_at = |(start, found): (usize, &[u8])| found == name && !(start > 0 && is_name_byte(&text[start - 1]));
    text.windows(name.len()).enumerate().any(is_at)
}

/// The native functions for the scripts.
fn tools(realm: Realm) -> Result<Value, Thrown> {
    let tools = realm.object()?;
    tools.set(realm.atom("encodeUtf8"), realm.function(c"encodeUtf8", encode_utf8, 0)?)?;
    tools.set(realm.atom("decodeUtf8"), realm.function(c"decodeUtf8", decode_utf8, 0)?)?;
    Ok(tools)
}

/// Encodes a string as a `Uint8Array` of UTF-8; a lone surrogate becomes U+FFFD.
fn encode_utf8(realm: Realm, arguments: &[Value], _: i32) -> Result<Value, Thrown> {
    let Some(text) = arguments.first() else { return realm.bytes(&[]) };
    let mut bytes = text.text()?.to_vec();
    for index in 0..bytes.len() {
        // QuickJS writes a surrogate as three bytes, which is the length of U+FFFD.
        if bytes[index] == 0xed && bytes.get(index + 1).is_some_and(|next| *next >= 0xa0) {
            bytes[index..index + 3].copy_from_slice("\u{fffd}".as_bytes());
        }
    }
    realm.bytes(&bytes)
}

/// Decodes a `Uint8Array` of UTF-8. Invalid bytes become U+FFFD, or make the result `null` if the second argument is
/// true.
fn decode_utf8(realm: Realm, arguments: &[Value], _: i32) -> Result<Value, Thrown> {
    let Some(bytes) = arguments.first().and_then(Value::to_bytes) else { return realm.string("") };
    let is_fatal = arguments.get(1).is_some_and(|fatal| fatal.primitive() == Primitive::Bool(true));
    match String::from_utf8_lossy(&bytes) {
        Cow::Owned(_) if is_fatal => Ok(realm.null()),
        text => realm.string(&text),
    }
}
