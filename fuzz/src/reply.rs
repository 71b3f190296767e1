//! Parses arbitrary bytes as a guest's reply, which tenant code may have forged.
#![no_main]

use libfuzzer_sys::fuzz_target;
use runtime::is_reply;

fuzz_target!(|bytes: &[u8]| {
    let _ = is_reply(bytes);
});
