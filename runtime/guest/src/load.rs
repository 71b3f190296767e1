//! Evaluates function sources and finds the functions they define.

pub(crate) mod definitions;
mod globals;

use self::definitions::Definitions;
use self::globals::Globals;
use crate::environment::builtins;
use crate::failure::Failure;
use crate::guest::{Function, Functions, Guest, Untouched};
use crate::guest_limits::GuestLimits;
use crate::js::{GARBAGE_BYTES, Realm, ScriptText, Thrown, Unevaluated};
use crate::memory;
use crate::wire::Function::{Converter, DecodeDownlink, Decoder, Encoder, NormalizeUplink, Validator};
use crate::wire::{self, ANY_SLOT, Dialect, FailureKind, Reader, Slot, Writer};

const UNSETTLED: &str =
    "awaits a promise that nothing settles; there are no timers and no input while a source is evaluated";

const SLOTS: [wire::Function; 4] = [Decoder, Converter, Validator, Encoder];
const ALL: [wire::Function; 6] = [Decoder, Converter, Validator, Encoder, DecodeDownlink, NormalizeUplink];

/// Loads the sources in `request` and writes the reply.
pub(crate) fn run(guest: &Guest, request: &[u8], reply: &mut Writer) {
    guest.start();
    let outcome = load(guest, request);
    guest.runtime.collect(GARBAGE_BYTES);
    if outcome.is_ok() {
        guest.runtime.make_shapes(guest.names.files);
    }
    match outcome {
        Ok(dialects) => {
            reply.byte(0);
            for dialect in dialects {
                reply.byte(dialect);
            }
        }
        Err(failure) => {
            reply.byte(1);
            failure.write(reply, guest.limits().message_bytes_max);
        }
    }
    guest.log.take();
    guest.runtime.seal();
    memory::align();
}

fn load(guest: &Guest, request: &[u8]) -> Result<[u8; 4], Failure> {
    let malformed = || Failure::new(Slot::Decoder, FailureKind::Broken, "the load request is malformed");
    let mut reader = Reader::new(request);
    guest.set_limits(GuestLimits::read(&mut reader).ok_or_else(malformed)?);
    while !reader.is_empty() {
        let slots = reader.byte().filter(|slots| *slots != 0).ok_or_else(malformed)?;
        let dialect = Dialect::from_byte(reader.byte().ok_or_else(malformed)?);
        let text = reader.text().ok_or_else(malformed)?;
        Source { guest, slots, dialect }.load(text)?;
    }
    let functions = guest.functions.borrow();
    let slots = [Slot::Decoder, Slot::Converter, Slot::Validator, Slot::Encoder];
    Ok(slots.map(|slot| functions[slot as usize].as_ref().map_or(0, |function| function.dialect as u8)))
}

/// A source and the slots that it fills.
struct Source<'a> {
    guest: &'a Guest,
    slots: u8,
    dialect: Option<Dialect>,
}

impl Source<'_> {
    fn load(&self, text: &[u8]) -> Result<(), Failure> {
        let text = ScriptText::new(text);
        self.guest.enter(self.home());
        self.fine(builtins::install(self.realm(), text.as_bytes()))?;
        let globals = self.fine(Globals::define(self.guest, self.realm()))?;
        let mut found = self.find(&self.evaluate(&text)?)?;
        let is_v2 = found.iter().flatten().any(|function| function.dialect == Dialect::V2);
        let untouched = self.fine(globals.settle(self.guest, is_v2))?;
        // Leaked: freeing them when a call sets the globals would dirty half a dozen pages.
        std::mem::forget(globals);
        let mut functions = self.guest.functions.borrow_mut();
        for (entry, function) in functions.iter_mut().zip(&mut found) {
            if let Some(mut function) = function.take() {
                function.globals = if function.dialect == Dialect::V2 { untouched } else { Untouched::default() };
                *entry = Some(function);
            }
        }
        Ok(())
    }

    /// Runs the text as a script, or as a module if it is no script.
    fn evaluate(&self, text: &ScriptText) -> Result<Definitions, Failure> {
        let (realm, file) = (self.realm(), Guest::file(self.home()));
        let as_script = match Definitions::of_script(realm, text, file) {
            Err(Unevaluated::Unreadable(thrown)) => self.unreadable(&thrown),
            outcome => return outcome.map_err(|reason| self.unevaluated(&reason)),
        };
        Definitions::of_module(realm, text, file).map_err(|reason| match reason {
            // Whichever it is meant to be, it is read further as that.
            Unevaluated::Unreadable(thrown) => self.unreadable(&thrown).or_if_later(as_script),
            reason => self.unevaluated(&reason),
        })
    }

    fn unevaluated(&self, reason: &Unevaluated) -> Failure {
        match reason {
            Unevaluated::Unreadable(thrown) => self.unreadable(thrown),
            Unevaluated::Threw(thrown) => Failure::thrown(self.guest, self.home(), FailureKind::Thrown, thrown),
            // QuickJS loses what it has no memory to queue.
            Unevaluated::Unsettled if self.guest.runtime.has_refused_memory() => Failure::out_of_memory(self.home()),
            Unevaluated::Unsettled => Failure::new(self.home(), FailureKind::Syntax, UNSETTLED),
        }
    }

    fn unreadable(&self, thrown: &Thrown) -> Failure {
        Failure::thrown(self.guest, self.home(), FailureKind::Syntax, thrown)
    }

    fn find(&self, definitions: &Definitions) -> Result<Functions, Failure> {
        let mut found = Functions::default();
        for which in ALL {
            found[which as usize] = self.fine(self.look_up(definitions, which, &found))?;
        }
        let is_missing =
            |which: &wire::Function| self.slots != ANY_SLOT && self.fills(*which) && found[*which as usize].is_none();
        if let Some(which) = SLOTS.into_iter().find(is_missing) {
            let slot = which.slot();
            return Err(Failure::new(slot, FailureKind::Syntax, Definitions::expected(&[which], self.dialect)));
        }
        if found.iter().all(Option::is_none) {
            return Err(Failure::new(self.home(), FailureKind::Syntax, Definitions::expected(&ALL, self.dialect)));
        }
        Ok(found)
    }

    /// Finds one function, if the source is for it. `decodeDownlink` and `normalizeUplink` count only beside another TS013
    /// function.
    fn look_up(
        &self,
        definitions: &Definitions,
        which: wire::Function,
        found: &Functions,
    ) -> Result<Option<Function>, Thrown> {
        let has_ts013 = |slot: Slot| found[slot as usize].as_ref().is_some_and(|other| other.dialect == Dialect::Ts013);
        let is_wanted = match which {
            _ if self.slots == ANY_SLOT => true,
            DecodeDownlink => has_ts013(Slot::Decoder) || has_ts013(Slot::Encoder),
            NormalizeUplink => has_ts013(Slot::Decoder),
            _ => self.fills(which),
        };
        if is_wanted { definitions.find(which, self.dialect) } else { Ok(None) }
    }

    fn fills(&self, which: wire::Function) -> bool {
        self.slots & 1 << which as u8 != 0
    }

    /// The first slot that it fills; the source is evaluated in the realm of this slot.
    fn home(&self) -> Slot {
        Slot::from_byte(self.slots.trailing_zeros() as u8).unwrap_or(Slot::Decoder)
    }

    fn realm(&self) -> Realm {
        self.guest.realm(self.home())
    }

    fn fine<T>(&self, outcome: Result<T, Thrown>) -> Result<T, Failure> {
        outcome.map_err(|thrown| Failure::thrown(self.guest, self.home(), FailureKind::Thrown, &thrown))
    }
}
