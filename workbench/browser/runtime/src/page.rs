//! Asks the page: a request and its reply are JSON in the memory of this module.

use serde::{Serialize, de::DeserializeOwned};

#[link(wasm_import_module = "page")]
unsafe extern "C" {
    /// Answers the request of `length` bytes at `at`, keeps the reply, and returns its length.
    fn ask_page(at: *const u8, length: usize) -> usize;
    /// Writes the reply that was kept to `at`.
    fn take_reply(at: *mut u8);
}

/// The answer of the page; none if it is something else than expected.
pub fn ask<T: DeserializeOwned>(request: &impl Serialize) -> Option<T> {
    let request = serde_json::to_vec(request).ok()?;
    // SAFETY: the page reads these bytes before it returns, and keeps no address.
    let length = unsafe { ask_page(request.as_ptr(), request.len()) };
    let mut reply = vec![0; length];
    // SAFETY: the page writes the reply, whose length it has just returned, and the vector has that many bytes.
    unsafe { take_reply(reply.as_mut_ptr()) };
    serde_json::from_slice(&reply).ok()
}
