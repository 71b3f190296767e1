//! Any bytes as what a guest replies: tenant code has run on its side.
#![no_main]

use libfuzzer_sys::fuzz_target;
use runtime::is_reply;

fuzz_target!(|bytes: &[u8]| {
    let _ = is_reply(bytes);
});
