//! What the guest consists of while it lives: runtime, realms, loaded functions, log.

use crate::bounds::Bounds;
use crate::builtins;
use crate::clock;
use crate::dialect::Function;
use crate::exports;
use crate::js::{Place, Realm, Runtime, Thrown, Value};
use crate::load::GARBAGE_BYTES;
use crate::log::{self, Log};
use crate::names::{Boxes, Names};
use crate::wire::Slot;
use std::cell::{Cell, OnceCell, RefCell};
use std::ffi::CStr;

/// The most fuel kept back for writing the reply when a script is interrupted.
const RESERVE_MAX: i64 = 500_000;

thread_local! {
    static GUEST: OnceCell<&'static Guest> = const { OnceCell::new() };
}

/// What the texts define, each where [`crate::wire::Function`] numbers it.
pub(crate) type Functions = [Option<Function>; 6];

/// The state of the guest.
pub(crate) struct Guest {
    pub(crate) runtime: Runtime,
    /// One per slot, so that helpers of the same name in two texts do not collide.
    pub(crate) realms: [Realm; 4],
    pub(crate) names: Names,
    pub(crate) boxes: Boxes,
    pub(crate) functions: RefCell<Functions>,
    pub(crate) log: RefCell<Log>,
    bounds: Cell<Bounds>,
    /// Scripts are interrupted below this much fuel.
    reserve: Cell<i64>,
    /// Where a script last threw what was no error.
    threw: Cell<Option<Place>>,
}

/// The guest; made by the first call, which happens at build time.
pub(crate) fn get() -> &'static Guest {
    GUEST.with(|guest| *guest.get_or_init(|| Box::leak(Box::new(Guest::new()))))
}

impl Guest {
    /// Failing here fails the build of the guest, never a message.
    fn new() -> Self {
        let Some(guest) = Self::build() else { std::process::abort() };
        guest
    }

    fn build() -> Option<Self> {
        let runtime = Runtime::new(interrupt)?;
        let realms = [Realm::new(runtime)?, Realm::new(runtime)?, Realm::new(runtime)?, Realm::new(runtime)?];
        for realm in realms {
            prepare(realm).ok()?;
        }
        runtime.collect(GARBAGE_BYTES);
        Some(Self {
            runtime,
            realms,
            names: Names::new(realms[0]),
            boxes: Boxes::new(realms[0])?,
            functions: RefCell::default(),
            log: RefCell::default(),
            bounds: Cell::default(),
            reserve: Cell::new(0),
            threw: Cell::new(None),
        })
    }

    /// The realm of the text in `slot`.
    pub(crate) fn realm(&self, slot: Slot) -> Realm {
        self.realms[slot as usize]
    }

    /// The name under which the text of `slot` appears in backtraces.
    pub(crate) fn file(slot: Slot) -> &'static CStr {
        match slot {
            Slot::Decoder => c"decoder",
            Slot::Converter => c"converter",
            Slot::Validator => c"validator",
            Slot::Encoder => c"encoder",
        }
    }

    /// The limits that came with the texts.
    pub(crate) fn bounds(&self) -> Bounds {
        self.bounds.get()
    }

    /// Takes the limits that texts come with.
    pub(crate) fn set_bounds(&self, bounds: Bounds) {
        self.runtime.set_heap_bytes_max(bounds.heap_bytes_max);
        self.bounds.set(bounds);
    }

    /// The slot now running.
    pub(crate) fn slot(&self) -> Option<Slot> {
        Slot::from_byte(exports::stage())
    }

    /// Notes, where the host can read it, that `slot` is running.
    pub(crate) fn enter(&self, slot: Slot) {
        exports::set_stage(slot as u8);
    }

    /// Where the function of `slot` is now. A text that fills two slots goes by the name of the first.
    pub(crate) fn place(&self, slot: Slot) -> Option<Place> {
        let find = |slot| self.realm(slot).place(self.names.files[slot as usize]);
        find(slot).or_else(|| find(Slot::Decoder))
    }

    /// Where something was thrown that does not know it itself.
    pub(crate) fn threw(&self) -> Option<Place> {
        self.threw.get()
    }

    /// Notes how much fuel there is, to keep some of it back, and that nothing was thrown.
    pub(crate) fn start(&self) {
        self.threw.set(None);
        self.reserve.set((exports::fuel_left() / 8).min(RESERVE_MAX));
    }
}

/// Notes where a script is that throws.
pub(crate) fn note_throw() {
    GUEST.with(|guest| {
        let Some(guest) = guest.get() else { return };
        guest.threw.set(guest.slot().and_then(|slot| guest.place(slot)));
    });
}

/// Asked by QuickJS now and then; also while the guest is being made.
fn interrupt() -> bool {
    GUEST.with(|guest| guest.get().is_some_and(|guest| exports::fuel_left() < guest.reserve.get()))
}

/// Puts in what every script finds, and takes out what none shall have.
fn prepare(realm: Realm) -> Result<(), Thrown> {
    log::install(realm)?;
    let math = realm.value_of(c"Math")?;
    math.define(realm.atom("random"), realm.function(c"random", random, 0)?)?;
    let module = realm.object()?;
    let exports = realm.object()?;
    module.set(realm.atom("exports"), exports.share(realm))?;
    realm.global().define(realm.atom("module"), module)?;
    realm.global().define(realm.atom("exports"), exports)?;
    builtins::mend(realm)?;
    realm.value_of(WARM)?;
    Ok(())
}

/// Built-ins come to life when they are first looked up; looking here, every one of them lies in the image.
const WARM: &CStr = c"(function () {
    const seen = new Set();
    const look = (object) => {
        if ((typeof object !== 'object' && typeof object !== 'function') || object === null || seen.has(object)) return;
        seen.add(object);
        for (const key of Reflect.ownKeys(object)) {
            const property = Reflect.getOwnPropertyDescriptor(object, key);
            look(property.value);
            look(property.get);
            look(property.set);
        }
        look(Reflect.getPrototypeOf(object));
    };
    look(globalThis);
    delete globalThis.SharedArrayBuffer;
    delete globalThis.Atomics;
})()";

fn random(realm: Realm, _: &[Value], _: i32) -> Result<Value, Thrown> {
    Ok(realm.number(clock::random()))
}
