//! Reads arbitrary bytes as the MQTT packets of a client; what can be passed on must reach a subscriber unchanged.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    // The first byte chooses the version.
    let Some((version, packets)) = bytes.split_first() else { return };
    for [read, passed_on] in mqtt::relay(packets, 3 + version % 3) {
        // A topic that is left out stands for an alias, and only the connection knows for which.
        assert!(read == passed_on || read.0.is_empty(), "{read:?} became {passed_on:?}");
    }
});
