//! The time and random numbers that scripts see. Both come with the message.

use std::ffi::{c_int, c_long, c_void};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

static TIME_MS: AtomicI64 = AtomicI64::new(0);
static RANDOM: AtomicU64 = AtomicU64::new(1);

/// Sets the time, which does not advance during a call, and seeds the random numbers.
pub(crate) fn set(time_ms: i64, seed: u64) {
    TIME_MS.store(time_ms, Ordering::Relaxed);
    RANDOM.store(seed, Ordering::Relaxed);
}

/// The next random number in [0, 1), by SplitMix64.
pub(crate) fn random() -> f64 {
    let state = RANDOM.load(Ordering::Relaxed).wrapping_add(0x9e37_79b9_7f4a_7c15);
    RANDOM.store(state, Ordering::Relaxed);
    let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1u64 << 53) as f64
}

#[repr(C)]
struct Timeval {
    seconds: i64,
    microseconds: i64,
}

#[repr(C)]
struct Timespec {
    seconds: i64,
    nanoseconds: c_long,
}

/// Overrides wasi-libc's function, which would call the host.
#[unsafe(no_mangle)]
unsafe extern "C" fn gettimeofday(out: *mut Timeval, _zone: *mut c_void) -> c_int {
    let time_ms = TIME_MS.load(Ordering::Relaxed);
    // SAFETY: the caller passes a valid pointer.
    unsafe { *out = Timeval { seconds: time_ms.div_euclid(1000), microseconds: time_ms.rem_euclid(1000) * 1000 } };
    0
}

/// Overrides wasi-libc's function, which would call the host.
#[unsafe(no_mangle)]
unsafe extern "C" fn clock_gettime(_clock: *const c_void, out: *mut Timespec) -> c_int {
    let time_ms = TIME_MS.load(Ordering::Relaxed);
    let nanoseconds = (time_ms.rem_euclid(1000) * 1_000_000) as c_long;
    // SAFETY: the caller passes a valid pointer.
    unsafe { *out = Timespec { seconds: time_ms.div_euclid(1000), nanoseconds } };
    0
}
