//! What the page calls: a request and its reply are JSON, each in memory that the page gives back.

#![allow(unreachable_pub, reason = "exported from the module")]

use crate::answer::answer;

/// Memory for a request of `length` bytes.
#[unsafe(no_mangle)]
pub extern "C" fn reserve(length: usize) -> *mut u8 {
    Box::into_raw(vec![0_u8; length].into_boxed_slice()).cast()
}

/// Answers the request of `length` bytes at `at`, which `reserve` gave. Returns the address of the reply in the upper
/// 32 bits, and its length in the lower ones; [`release`] takes both.
///
/// # Safety
/// The page has written that many bytes to memory that [`reserve`] gave for this length, and does not use it again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn answer_request(at: *mut u8, length: usize) -> u64 {
    // SAFETY: as above.
    let request = unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(at, length)) };
    let reply = answer(&request).into_boxed_slice();
    let length = reply.len() as u64;
    (Box::into_raw(reply).cast::<u8>() as u64) << 32 | length
}

/// Gives back the memory of a reply.
///
/// # Safety
/// Both are of [`answer_request`], and the page does not use that memory again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn release(at: *mut u8, length: usize) {
    // SAFETY: as above.
    drop(unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(at, length)) });
}
