//! Evaluates the function texts and finds what they define.

use crate::bounds::Bounds;
use crate::builtins;
use crate::dialect::{Definitions, Function};
use crate::failure::Failure;
use crate::globals::{Globals, Untouched};
use crate::guest::{Functions, Guest};
use crate::js::{Evaluation, Realm, Thrown};
use crate::memory;
use crate::wire::Function::{Converter, DecodeDownlink, Decoder, Encoder, NormalizeUplink, Validator};
use crate::wire::{self, Dialect, Kind, Reader, Slot, WHOLE, Writer};
use std::ffi::CString;

const SLOTS: [wire::Function; 4] = [Decoder, Converter, Validator, Encoder];
const ALL: [wire::Function; 6] = [Decoder, Converter, Validator, Encoder, DecodeDownlink, NormalizeUplink];

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
            failure.write(reply, guest.bounds().message_bytes_max);
        }
    }
    guest.log.take();
    guest.runtime.seal();
    memory::align();
}

fn load(guest: &Guest, request: &[u8]) -> Result<[u8; 4], Failure> {
    let malformed = || Failure::new(Slot::Decoder, Kind::Broken, "the load request is malformed");
    let mut reader = Reader::new(request);
    guest.set_bounds(Bounds::read(&mut reader).ok_or_else(malformed)?);
    while !reader.is_empty() {
        let slots = reader.byte().filter(|slots| *slots != 0).ok_or_else(malformed)?;
        let dialect = Dialect::from_byte(reader.byte().ok_or_else(malformed)?);
        let text = reader.text().ok_or_else(malformed)?;
        Text { guest, slots, dialect }.load(text)?;
    }
    let functions = guest.functions.borrow();
    let slots = [Slot::Decoder, Slot::Converter, Slot::Validator, Slot::Encoder];
    Ok(slots.map(|slot| functions[slot as usize].as_ref().map_or(0, |function| function.dialect as u8)))
}

/// A text, and what it is for.
struct Text<'a> {
    guest: &'a Guest,
    slots: u8,
    dialect: Option<Dialect>,
}

impl Text<'_> {
    fn load(&self, text: &[u8]) -> Result<(), Failure> {
        let (home, kind) = (self.home(), Kind::Syntax);
        let text =
            CString::new(text).map_err(|_| Failure::new(home, kind, "contains a zero byte, which no script may"))?;
        self.guest.enter(home);
        self.fine(builtins::install(self.realm(), text.as_bytes()))?;
        let globals = self.fine(Globals::place(self.guest, self.realm()))?;
        match self.realm().run(&text, Guest::file(home)) {
            Evaluation::Done => {}
            Evaluation::Unreadable(thrown) => return Err(Failure::thrown(self.guest, home, kind, &thrown)),
            Evaluation::Threw(thrown) => return self.fine(Err(thrown)),
        }
        let mut found = self.find()?;
        let is_v2 = found.iter().flatten().any(|function| function.dialect == Dialect::V2);
        let untouched = self.fine(globals.settle(self.guest, is_v2))?;
        // Kept for ever: freeing them when a call sets the globals would dirty half a dozen pages.
        std::mem::forget(globals);
        let mut functions = self.guest.functions.borrow_mut();
        for (place, function) in functions.iter_mut().zip(&mut found) {
            if let Some(mut function) = function.take() {
                function.globals = if function.dialect == Dialect::V2 { untouched } else { Untouched::default() };
                *place = Some(function);
            }
        }
        Ok(())
    }

    /// What the text defines of what it is for.
    fn find(&self) -> Result<Functions, Failure> {
        let mut found = Functions::default();
        let definitions = self.fine(Definitions::of(self.realm()))?;
        for which in ALL {
            found[which as usize] = self.fine(self.look_up(&definitions, which, &found))?;
        }
        let lacks =
            |which: &wire::Function| self.slots != WHOLE && self.fills(*which) && found[*which as usize].is_none();
        if let Some(which) = SLOTS.into_iter().find(lacks) {
            let slot = Function::slot_of(which);
            return Err(Failure::new(slot, Kind::Syntax, Function::expected(&[which], self.dialect)));
        }
        if found.iter().all(Option::is_none) {
            return Err(Failure::new(self.home(), Kind::Syntax, Function::expected(&ALL, self.dialect)));
        }
        Ok(found)
    }

    /// Finds one function, if it is one that the text is for. What only TS013 has counts beside another of TS013.
    fn look_up(
        &self,
        definitions: &Definitions,
        which: wire::Function,
        found: &Functions,
    ) -> Result<Option<Function>, Thrown> {
        let is_beside = |slot: Slot| found[slot as usize].as_ref().is_some_and(|other| other.dialect == Dialect::Ts013);
        let is_for = match which {
            _ if self.slots == WHOLE => true,
            DecodeDownlink => is_beside(Slot::Decoder) || is_beside(Slot::Encoder),
            NormalizeUplink => is_beside(Slot::Decoder),
            _ => self.fills(which),
        };
        if is_for { definitions.find(which, self.dialect) } else { Ok(None) }
    }

    fn fills(&self, which: wire::Function) -> bool {
        self.slots & 1 << which as u8 != 0
    }

    /// The first slot that it fills, in whose realm it lives.
    fn home(&self) -> Slot {
        Slot::from_byte(self.slots.trailing_zeros() as u8).unwrap_or(Slot::Decoder)
    }

    fn realm(&self) -> Realm {
        self.guest.realm(self.home())
    }

    fn fine<T>(&self, outcome: Result<T, Thrown>) -> Result<T, Failure> {
        outcome.map_err(|thrown| Failure::thrown(self.guest, self.home(), Kind::Thrown, &thrown))
    }
}
