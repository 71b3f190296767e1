//! The state of the guest: runtime, realms, loaded functions, log.

mod function;
pub(crate) mod host;
mod log;
mod names;

pub(crate) use self::function::{Function, Untouched};
pub(crate) use self::log::{Entry, FIELD_BYTES, Log};
use self::names::{Boxes, Names};
use crate::guest_limits::GuestLimits;
use crate::js::{Location, Realm, Runtime};
use crate::wire::Slot;
use std::cell::{Cell, OnceCell, RefCell};
use std::ffi::{CStr, c_void};

/// The most fuel reserved for writing the reply after a script is interrupted.
const RESERVE_MAX: i64 = 500_000;

/// Not on the heap: messages change the log and its kin, which then lie on the same page as other static data.
static GUEST: Single = Single(OnceCell::new());

struct Single(OnceCell<Guest>);

// SAFETY: the guest has no threads.
unsafe impl Sync for Single {}

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

/// The guest, which `build` makes for the first call. That happens at build time.
pub(crate) fn get_or_build(build: fn() -> Guest) -> &'static Guest {
    GUEST.0.get_or_init(build)
}

/// The guest; none while it is being built.
pub(crate) fn get() -> Option<&'static Guest> {
    GUEST.0.get()
}

impl Guest {
    /// A guest without sources. None if there is no memory for it.
    pub(crate) fn new(runtime: Runtime, realms: [Realm; 4]) -> Option<Self> {
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
        Slot::from_byte(host::running_slot())
    }

    /// Records `slot` as running, where the host can read it.
    pub(crate) fn enter(&self, slot: Slot) {
        host::set_running_slot(slot as u8);
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
        self.reserve.set((host::fuel_left() / 8).min(RESERVE_MAX));
    }
}

/// The interrupt handler of QuickJS; also called while the guest is being built.
pub(crate) fn interrupt() -> bool {
    get().is_some_and(|guest| host::fuel_left() < guest.reserve.get())
}

/// Called by QuickJS when a script throws a value that is not an `Error`; records where.
#[unsafe(no_mangle)]
extern "C" fn guest_note_throw(_context: *const c_void) {
    let Some(guest) = get() else { return };
    guest.threw.set(guest.slot().and_then(|slot| guest.location(slot)));
}
