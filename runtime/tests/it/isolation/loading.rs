//! The same for functions that hide a secret while they are loaded, and then fail to load.

use std::sync::Arc;

use airlock_runtime::{FailureKind, Limits, Slot};

use super::places_of;
use super::tenant::{ENDINGS, SECRET, Tenant};
use crate::harness::{Harness, settings, sources, ways};

/// Ends of a source's evaluation, and their failures.
const ENDS: [(&str, FailureKind); 6] = [
    ("throw new Error(text);", FailureKind::Thrown),
    ("while (true) text = (text + 'x').slice(1, 50);", FailureKind::Fuel),
    ("while (true) all.push(text.repeat(5000));", FailureKind::Memory),
    ("(function f(a) { return f(a + 1) + text; })(0);", FailureKind::Stack),
    ("kept = text.repeat(200000);", FailureKind::Memory),
    ("+ + ;", FailureKind::Syntax),
];

#[test]
fn nothing_survives_a_failed_load() {
    for way in ways() {
        let mut harness = Harness::with_way(way);
        let before = Tenant::load(&harness, "before", Slot::Decoder, &ENDINGS[0]);
        before.look(&mut harness.sandbox, SECRET, "before");
        for (end, kind) in ENDS {
            for slot in Slot::ALL {
                check_refused(&harness, slot, end, kind);
                let again = Tenant::load(&harness, "before", Slot::Decoder, &ENDINGS[0]);
                assert!(again.functions.module_bytes() == before.functions.module_bytes(), "after {end}");
                before.look(&mut harness.sandbox, SECRET, end);
                again.look(&mut harness.sandbox, SECRET, end);
            }
        }
        assert_eq!(places_of(SECRET, &harness.sandbox.next_memory(&before.functions).unwrap()), 0);
    }
}

/// Loads a source that hides the secret and then fails.
fn check_refused(harness: &Harness, slot: Slot, end: &str, kind: FailureKind) {
    let text = format!(
        "function Converter() {{}} function Validator() {{}} function Encoder() {{}} function Decoder() {{}}
        var text = '{}', all = []; Object.prototype.leaked = text; Symbol.for(text);
        for (var i = 0; i < 500; i++) ('freed ' + i + text + '\\u2603').slice(3);
        {end}",
        SECRET.escape_ascii()
    );
    let limits =
        Limits { load_fuel: 20_000_000, heap_bytes_max: 3 << 20, kept_bytes_max: 1 << 20, ..settings().limits };
    let failure = harness.engine.load(&sources(slot, &text), &Arc::new(limits)).expect_err(end);
    assert_eq!((failure.slot, failure.kind), (slot, kind), "{failure} after {end}");
}
