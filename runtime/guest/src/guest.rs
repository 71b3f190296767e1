//! The state of the guest: runtime, realms, loaded functions, log.

use crate::builtins;
use crate::clock;
use crate::dialect::Function;
use crate::exports;
use crate::guest_limits::GuestLimits;
use crate::js::{Location, Realm, Runtime, Thrown, Value};
use crate::load::GARBAGE_BYTES;
use crate::log::{self, Log};
use crate::names::{Boxes, Names};
use crate::wire::Slot;
use std::cell::{Cell, OnceCell, RefCell};
use std::ffi::CStr;

/// The most fuel reserved for writing the reply after a script is interrupted.
const RESERVE_MAX: i64 = 500_000;

thread_local! {
    static GUEST: OnceCell<&'static Guest> = const { OnceCell::new() };
}

/// The functions that the sources define, indexed by [`crate::wire::Function`].
pub(crate) type Functions = [Option<Function>; 6];

pub(crate) struct Guest {
    pub(crate) runtime: Runtime,
    /// One per slot, so that helpers of the same name in two sources do not collide.
    pub(crate) realms: [Realm; 4],
    pub(crate) names: Names,
    pub(crate) boxes: Boxes,
    pub(crate) functions: RefCell<Functions>,
    pub(crate) log: RefCell<Log>,
    limits: Cell<GuestLimits>,
    /// Scripts are interrupted once less fuel is left.
    reserve: Cell<i64>,
    /// Where a script last threw a value that is not an `Error`.
    threw: Cell<Option<Location>>,
}

/// The guest. Created by the first call, which happens at build time.
pub(crate) fn get() -> &'static Guest {
    GUEST.with(|guest| *guest.get_or_init(|| Box::leak(Box::new(Guest::new()))))
}

impl Guest {
    /// A failure here fails the build of the guest, never a message.
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
            limits: Cell::default(),
            reserve: Cell::new(0),
            threw: Cell::new(None),
        })
    }

    /// The realm of the source in `slot`.
    pub(crate) fn realm(&self, slot: Slot) -> Realm {
        self.realms[slot as usize]
    }

    /// The file name of the source in `slot`, for backtraces.
    pub(crate) fn file(slot: Slot) -> &'static CStr {
        match slot {
            Slot::Decoder => c"decoder",
            Slot::Converter => c"converter",
            Slot::Validator => c"validator",
            Slot::Encoder => c"encoder",
        }
    }

    /// The limits from the load request.
    pub(crate) fn limits(&self) -> GuestLimits {
        self.limits.get()
    }

    /// Sets the limits from the load request.
    pub(crate) fn set_limits(&self, limits: GuestLimits) {
        self.runtime.set_heap_bytes_max(limits.heap_bytes_max);
        self.limits.set(limits);
    }

    pub(crate) fn slot(&self) -> Option<Slot> {
        Slot::from_byte(exports::running_slot())
    }

    /// Records `slot` as running, where the host can read it.
    pub(crate) fn enter(&self, slot: Slot) {
        exports::set_running_slot(slot as u8);
    }

    /// Where the function of `slot` is now. A source that fills two slots has the file name of the first.
    pub(crate) fn location(&self, slot: Slot) -> Option<Location> {
        let find = |slot| self.realm(slot).location(self.names.files[slot as usize]);
        find(slot).or_else(|| find(Slot::Decoder))
    }

    /// Where a value that is not an `Error` was last thrown.
    pub(crate) fn threw(&self) -> Option<Location> {
        self.threw.get()
    }

    /// Prepares for a load or call: reserves fuel for the reply and forgets the last throw.
    pub(crate) fn start(&self) {
        self.threw.set(None);
        self.reserve.set((exports::fuel_left() / 8).min(RESERVE_MAX));
    }
}

/// Records where a script threw.
pub(crate) fn note_throw() {
    GUEST.with(|guest| {
        let Some(guest) = guest.get() else { return };
        guest.threw.set(guest.slot().and_then(|slot| guest.location(slot)));
    });
}

/// The interrupt handler of QuickJS; also called while the guest is being built.
fn interrupt() -> bool {
    GUEST.with(|guest| guest.get().is_some_and(|guest| exports::fuel_left() < guest.reserve.get()))
}

/// Installs what every script needs and removes what none may have.
fn prepare(realm: Realm) -> Result<(), Thrown> {
    log::install(realm)?;
    let math = realm.value_of(c"Math")?;
    math.define(realm.atom("random"), realm.function(c"random", random, 0)?)?;
    let module = realm.object()?;
    let exports = realm.object()?;
    module.set(realm.atom("exports"), exports.share(realm))?;
    realm.global().define(realm.atom("module"), module)?;
    realm.global().define(realm.atom("exports"), exports)?;
    builtins::apply_fixes(realm)?;
    realm.value_of(WARM)?;
    Ok(())
}

/// QuickJS creates built-ins on first use. This touches every one, so that all of them are part of the image.
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
