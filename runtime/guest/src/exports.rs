//! The sandbox wall from inside: what the host calls and reads, and the one thing asked of it.

use crate::wire::Writer;
use crate::{call, guest, load};
use std::cell::RefCell;
use std::sync::atomic::{AtomicU8, Ordering};

/// The slot now running; 255 between calls. The host finds it by the exported global of this name.
#[unsafe(export_name = "stage")]
static STAGE: AtomicU8 = AtomicU8::new(NO_STAGE);
const NO_STAGE: u8 = u8::MAX;

thread_local! {
    static REQUEST: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    static REPLY: RefCell<Writer> = RefCell::default();
}

#[link(wasm_import_module = "airlock")]
unsafe extern "C" {
    /// Replaced by a read of the counter when the guest is metered.
    #[link_name = "fuel_left"]
    safe fn metered_fuel_left() -> i64;
}

unsafe extern "C" {
    /// Made by the linker. Naming it also keeps the linker from wrapping every export in start-up and shut-down code.
    fn __wasm_call_ctors();
}

/// How much fuel the host has left us.
pub(crate) fn fuel_left() -> i64 {
    metered_fuel_left()
}

/// The byte that says which slot is running.
pub(crate) fn stage() -> u8 {
    STAGE.load(Ordering::Relaxed)
}

/// Says which slot is running.
pub(crate) fn set_stage(stage: u8) {
    STAGE.store(stage, Ordering::Relaxed);
}

/// Makes the guest ready; runs when it is built, and its heap is kept.
#[unsafe(export_name = "wizer-initialize")]
extern "C" fn initialize() {
    // SAFETY: nothing has run before.
    unsafe { __wasm_call_ctors() };
    guest::get();
    REPLY.with_borrow_mut(|reply| {
        reply.byte(0);
        reply.clear();
    });
    guest::get().runtime.seal();
}

/// Makes room for a request of `length` bytes; valid until `load` or `call` returns.
#[unsafe(no_mangle)]
extern "C" fn alloc(length: u32) -> *mut u8 {
    REQUEST.with_borrow_mut(|request| {
        *request = vec![0; length as usize];
        request.as_mut_ptr()
    })
}

/// Evaluates function texts; returns address and length of the reply.
#[unsafe(export_name = "load")]
extern "C" fn load_texts(_address: *const u8, _length: u32) -> u64 {
    answer(load::run)
}

/// Sends one message through the functions; returns address and length of the reply.
#[unsafe(export_name = "call")]
extern "C" fn call_functions(_address: *const u8, _length: u32) -> u64 {
    answer(call::run)
}

/// After a trap: where the script was that ran, and what it had logged. Returns address and length of that.
#[unsafe(no_mangle)]
extern "C" fn last_words() -> u64 {
    // In a message of its own: the trap came while the reply was being made.
    let words = Box::leak(Box::new(Writer::default()));
    call::last_words(guest::get(), words);
    place_of(words.as_bytes())
}

fn place_of(bytes: &[u8]) -> u64 {
    (bytes.as_ptr() as u64) << 32 | bytes.len() as u64
}

fn answer(run: fn(&guest::Guest, &[u8], &mut Writer)) -> u64 {
    let request = REQUEST.take();
    REPLY.with_borrow_mut(|reply| {
        run(guest::get(), &request, reply);
        set_stage(NO_STAGE);
        place_of(reply.as_bytes())
    })
}
