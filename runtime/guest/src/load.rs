//! Evaluates the function texts and finds what they define.

use crate::dialect::{DECODE_DOWNLINK, Function};
use crate::failure::Failure;
use crate::guest::Guest;
use crate::js::{Evaluation, Realm, Thrown, Value};
use crate::memory;
use crate::wire::{Dialect, Kind, Reader, Slot, Writer};
use std::ffi::CString;

/// How much scripts may allocate before garbage is collected.
pub(crate) const GARBAGE_BYTES: usize = 1 << 20;

/// Loads the texts of `request` and writes the reply.
pub(crate) fn run(guest: &Guest, request: &[u8], reply: &mut Writer) {
    guest.start();
    let outcome = load(guest, request);
    guest.runtime.collect(GARBAGE_BYTES);
    reply.clear();
    match outcome {
        Ok(dialects) => {
            reply.byte(0);
            for dialect in dialects {
                reply.byte(dialect);
            }
        }
        Err(failure) => {
            reply.byte(1);
            failure.write(reply);
        }
    }
    guest.log.take();
    memory::seal();
}

fn load(guest: &Guest, request: &[u8]) -> Result<[u8; 4], Failure> {
    let malformed = || Failure::new(Slot::Decoder, Kind::Broken, "the load request is malformed");
    let mut reader = Reader::new(request);
    let heap_bytes_max = reader.number().ok_or_else(malformed)?;
    guest.runtime.set_heap_bytes_max(heap_bytes_max);
    let mut dialects = [0; 4];
    while !reader.is_empty() {
        let slot = reader.byte().and_then(Slot::from_byte).ok_or_else(malformed)?;
        let dialect = Dialect::from_byte(reader.byte().ok_or_else(malformed)?);
        let text = reader.text().ok_or_else(malformed)?;
        if text.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        let function = load_text(guest, slot, dialect, text)?;
        dialects[slot as usize] = function.dialect as u8;
        guest.functions.borrow_mut()[slot as usize] = Some(function);
    }
    Ok(dialects)
}

fn load_text(guest: &Guest, slot: Slot, dialect: Option<Dialect>, text: &[u8]) -> Result<Function, Failure> {
    let realm = guest.realm(slot);
    let fail = |kind| move |thrown: Thrown| Failure::thrown(guest, slot, kind, &thrown);
    let text = CString::new(text)
        .map_err(|_| Failure::new(slot, Kind::Syntax, "contains a zero byte, which no script may"))?;
    guest.enter(slot);
    let globals = Globals::place(guest, slot).map_err(fail(Kind::Thrown))?;
    match realm.run(&text, Guest::file(slot)) {
        Evaluation::Done => {}
        Evaluation::Unreadable(thrown) => return Err(fail(Kind::Syntax)(thrown)),
        Evaluation::Threw(thrown) => return Err(fail(Kind::Thrown)(thrown)),
    }
    let mut function = Function::find(guest, slot, dialect)
        .map_err(fail(Kind::Thrown))?
        .ok_or_else(|| Failure::new(slot, Kind::Syntax, Function::expected(slot, dialect)))?;
    function.globals = globals.settle(guest, slot, function.dialect).map_err(fail(Kind::Thrown))?;
    // Kept for ever: freeing them when a call sets the globals would dirty half a dozen pages.
    std::mem::forget(globals);
    if function.dialect == Dialect::Ts013
        && let Some(decode) = Function::find_decode_downlink(guest, slot).map_err(fail(Kind::Thrown))?
    {
        guest.functions.borrow_mut()[DECODE_DOWNLINK] = Some(decode);
    }
    Ok(function)
}

/// The globals `payload` or `fields`, and `port`, which TTN v2 set before it ran a text.
struct Globals {
    realm: Realm,
    subject: Value,
    port: Value,
}

impl Globals {
    /// Gives the text something to find while it is evaluated.
    fn place(guest: &Guest, slot: Slot) -> Result<Self, Thrown> {
        let realm = guest.realm(slot);
        let subject = if slot == Slot::Decoder { realm.byte_array(&[])? } else { realm.object()? };
        let placed = Self { realm, subject, port: realm.number(0.0) };
        let global = realm.global();
        global.set(subject_name(guest, slot), placed.subject.share(realm))?;
        global.set(guest.names.port, placed.port.share(realm))?;
        Ok(placed)
    }

    /// Says which of them a call shall set: those that the text has not made its own.
    fn settle(&self, guest: &Guest, slot: Slot, dialect: Dialect) -> Result<(bool, bool), Thrown> {
        let global = self.realm.global();
        let untouched = |name, placed: &Value| Ok(global.get(name)?.identity() == placed.identity());
        let subject = untouched(subject_name(guest, slot), &self.subject)?;
        let port = untouched(guest.names.port, &self.port)?;
        if dialect == Dialect::V2 {
            return Ok((subject, port));
        }
        if subject {
            global.delete(subject_name(guest, slot))?;
        }
        if port {
            global.delete(guest.names.port)?;
        }
        Ok((false, false))
    }
}

/// The name under which a text of TTN v2 finds its input.
pub(crate) fn subject_name(guest: &Guest, slot: Slot) -> crate::js::Atom {
    match slot {
        Slot::Decoder | Slot::Encoder => guest.names.payload,
        Slot::Converter | Slot::Validator => guest.names.fields,
    }
}
