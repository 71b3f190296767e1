//! What the guest exports to the host.

use crate::guest::{Guest, host};
use crate::wire::Writer;
use crate::{call, load, start, steps};
use std::cell::RefCell;

thread_local! {
    static REQUEST: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    static REPLY: RefCell<Writer> = RefCell::default();
}

unsafe extern "C" {
    /// Provided by the linker. Referring to it also stops the linker from wrapping every export in start-up and
    /// shut-down code.
    fn __wasm_call_ctors();
}

/// Initializes the guest. Runs at build time; the resulting heap is the initial memory of `guest.wasm`.
#[unsafe(export_name = "wizer-initialize")]
extern "C" fn initialize() {
    // SAFETY: nothing has run before.
    unsafe { __wasm_call_ctors() };
    start::guest().runtime.seal();
}

/// Allocates a request buffer of `length` bytes, valid until `load` or `call` returns.
#[unsafe(no_mangle)]
extern "C" fn alloc(length: u32) -> *mut u8 {
    REQUEST.with_borrow_mut(|request| {
        *request = vec![0; length as usize];
        request.as_mut_ptr()
    })
}

/// Evaluates function sources; returns the address and length of the reply.
#[unsafe(export_name = "load")]
extern "C" fn load_sources(_address: *const u8, _length: u32) -> u64 {
    answer(load::run)
}

/// Runs one message; returns the address and length of the reply.
#[unsafe(export_name = "call")]
extern "C" fn call_functions(_address: *const u8, _length: u32) -> u64 {
    answer(call::run)
}

/// Lists the steps of all functions. Only a host that counts steps calls it.
#[unsafe(no_mangle)]
extern "C" fn list_steps() -> u64 {
    answer(steps::list)
}

/// After a trap: reports where the script was and what it had logged.
#[unsafe(no_mangle)]
extern "C" fn trap_report() -> u64 {
    // Not in `REPLY`, which the trap may have left borrowed.
    let report = Box::leak(Box::new(Writer::default()));
    call::trap_report(start::guest(), report);
    address_and_length(report.as_bytes())
}

fn address_and_length(bytes: &[u8]) -> u64 {
    (bytes.as_ptr() as u64) << 32 | bytes.len() as u64
}

fn answer(run: fn(&Guest, &[u8], &mut Writer)) -> u64 {
    let request = REQUEST.take();
    REPLY.with_borrow_mut(|reply| {
        // Not the buffer of an earlier reply, which lies in the image: the host would have to put back one more page.
        *reply = Writer::default();
        run(start::guest(), &request, reply);
        host::clear_running_slot();
        address_and_length(reply.as_bytes())
    })
}
