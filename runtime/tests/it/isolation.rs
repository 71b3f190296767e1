//! A planted secret: nothing that a message brought is there for the next, however the message ended.

use std::thread;

use airlock_runtime::{Call, Entry, Functions, Kind, Reset, Sandbox, Settings, Slot};

use crate::rig::{RESETS, Rig, call, fields, settings, ways};

/// What each message hides. It comes with the payload, so that the source text does not hold it.
const SECRET: &[u8] = b"k7Qz-9fW2x";

/// Hides its payload in every place that could outlive it, and then ends as the first byte says.
const HIDE: &str = r#"
var calls = 0;
function Decoder(bytes, port) {
    var text = String.fromCharCode.apply(null, bytes.slice(1));
    leaked = text;
    calls += 1;
    Object.prototype.leaked = text;
    Array.prototype.push = function () { return text; };
    JSON.stringify = function () { return text; };
    Decoder.leaked = { deep: [text, Symbol.for(text), new Map([[text, text]])] };
    var wide = text + "\u2603";
    var big = new Uint8Array(30000);
    for (var i = 0; i < big.length; i++) big[i] = bytes[1 + i % (bytes.length - 1)];
    globalThis.big = big;
    for (var i = 0; i < 500; i++) ("freed " + i + text + wide).slice(3);
    new RegExp(text, "g").exec(text + text);
    console.log(text);
    switch (bytes[0]) {
    case 1: throw new Error(text);
    case 2: while (true) text = wide.slice(1) + "x";
    case 3: var all = []; while (true) all[all.length] = new Array(1000).fill(wide + all.length);
    case 4: return (function f(a) { return f(a + text.length) + text; })(0);
    case 5: return text;
    }
    return { text: text, calls: calls };
}
"#;

/// Looks for what others left.
const SEEK: &str = r#"
var calls = 0;
function Decoder() {
    calls += 1;
    return { leaked: typeof leaked, big: typeof big, proto: typeof {}.leaked, calls: calls, own: typeof Decoder.leaked };
}
"#;
const NOTHING: &str = r#"{"leaked":"undefined","big":"undefined","proto":"undefined","calls":1,"own":"undefined"}"#;

/// A message that ends in the given way. The clock is too slow here, it has a test of its own.
fn hiding(ending: u8) -> Call {
    call(Entry::Uplink, &[&[ending], SECRET].concat())
}

const ENDINGS: [Option<Kind>; 6] =
    [None, Some(Kind::Thrown), Some(Kind::Fuel), Some(Kind::Memory), Some(Kind::Stack), Some(Kind::Output)];

#[test]
fn nothing_survives_a_message_however_it_ends() {
    for (reset, mut settings) in ways() {
        settings.limits.heap_bytes_max = 3 << 20;
        settings.limits.fuel = 500_000_000;
        let mut rig = Rig::with_way((reset, settings));
        let functions = rig.load_in(Slot::Decoder, HIDE);
        rig.decode(&functions, b"00");
        let first = rig.sandbox.next_memory(&functions).unwrap();
        for (ending, kind) in (0..).zip(ENDINGS) {
            let report = rig.sandbox.call(&functions, &hiding(ending));
            assert_eq!(report.result.err().map(|failure| failure.kind), kind, "{reset:?}");
            check_clean(&mut rig.sandbox, &functions, &first);
            assert!(fields(&rig.decode(&functions, b"\x00abc")).contains(r#""calls":1"#));
        }
    }
}

#[test]
fn nothing_survives_a_message_that_the_clock_ended() {
    for (reset, mut settings) in ways() {
        settings.limits.fuel = u64::MAX;
        settings.limits.time_ms_max = 30;
        let mut rig = Rig::with_way((reset, settings));
        let functions = rig.load_in(Slot::Decoder, HIDE);
        rig.decode(&functions, b"00");
        let first = rig.sandbox.next_memory(&functions).unwrap();
        let failure = rig.sandbox.call(&functions, &hiding(2)).result.unwrap_err();
        assert_eq!((failure.kind, failure.slot), (Kind::Time, Slot::Decoder), "{reset:?}");
        check_clean(&mut rig.sandbox, &functions, &first);
    }
}

#[test]
fn nothing_survives_a_message_that_met_no_page_fault() {
    // From the second equal message on, all pages are there already, and the host need not ask which have changed.
    for way in ways().filter(|(reset, _)| *reset == Reset::PageScan) {
        let mut rig = Rig::with_way(way);
        let functions = rig.load_in(Slot::Decoder, HIDE);
        rig.decode(&functions, b"00");
        let first = rig.sandbox.next_memory(&functions).unwrap();
        for round in 0..30_u8 {
            let ending = if round % 10 == 9 { 1 } else { 0 };
            let report = rig.sandbox.call(&functions, &hiding(ending));
            assert_eq!(report.result.is_ok(), ending == 0);
            check_clean(&mut rig.sandbox, &functions, &first);
        }
    }
}

#[test]
fn nothing_survives_a_change_of_functions() {
    // With 1, one of the two has a memory of its own, and the other meets the one that all share.
    for (reset, hot_max) in RESETS.into_iter().flat_map(|reset| [(reset, 0), (reset, 1), (reset, 2)]) {
        let mut rig = Rig::with_way((reset, Settings { hot_max, hot_after: 1, ..settings() }));
        let (hide, seek) = (rig.load_in(Slot::Decoder, HIDE), rig.load_in(Slot::Decoder, SEEK));
        for ending in [0, 1, 2, 4, 5] {
            rig.sandbox.call(&hide, &hiding(ending)).result.err();
            assert_eq!(fields(&rig.decode(&seek, b"")), NOTHING);
            let memory = rig.sandbox.next_memory(&seek).unwrap();
            assert_eq!(places_of(SECRET, &memory), 0, "{reset:?}");
        }
    }
}

#[test]
fn nothing_survives_between_threads_of_one_engine() {
    for way in ways() {
        let rig = Rig::with_way(way);
        let (hide, seek) = (rig.load_in(Slot::Decoder, HIDE), rig.load_in(Slot::Decoder, SEEK));
        thread::scope(|scope| {
            for worker in 0..4_u8 {
                let (mut sandbox, hide, seek) = (rig.engine.sandbox(), &hide, &seek);
                scope.spawn(move || {
                    for round in 0..50 {
                        // Each worker has a secret of its own, and none may turn up with another.
                        let secret = [&[(worker + round) % 2], SECRET, &[b'a' + worker]].concat();
                        let report = sandbox.call(hide, &call(Entry::Uplink, &secret));
                        assert_eq!(report.logs.len(), 1);
                        assert!(report.logs[0].fields[0].ends_with(&format!("{}\"", char::from(b'a' + worker))));
                        assert_eq!(fields(&sandbox.call(seek, &call(Entry::Uplink, b""))), NOTHING);
                    }
                    assert_eq!(places_of(SECRET, &sandbox.next_memory(hide).unwrap()), 0);
                });
            }
        });
    }
}

#[test]
fn every_way_of_putting_back_gives_the_same_results() {
    let mut reports = ways().map(|(reset, settings)| {
        let mut rig = Rig::with_way((reset, settings));
        assert_eq!(rig.engine.reset(), reset);
        let functions = rig.load_in(Slot::Decoder, HIDE);
        let reports = [0, 1, 0, 2, 0, 4, 5, 0].map(|ending| rig.sandbox.call(&functions, &hiding(ending)));
        reports.map(|report| (report.fuel, report.result.map_err(|failure| failure.to_string()).err(), report.logs))
    });
    let first = reports.next().unwrap();
    assert_eq!(first.len(), 8);
    assert!(reports.all(|others| others == first));
}

fn check_clean(sandbox: &mut Sandbox, functions: &Functions, first: &[u8]) {
    let memory = sandbox.next_memory(functions).unwrap();
    assert_eq!(places_of(SECRET, &memory), 0, "the secret is still there");
    assert!(memory == first, "something else is still there");
}

/// How often `secret` is in `memory`, as bytes or as UTF-16.
fn places_of(secret: &[u8], memory: &[u8]) -> usize {
    let wide: Vec<u8> = secret.iter().flat_map(|byte| [*byte, 0]).collect();
    let count = |needle: &[u8]| memory.windows(needle.len()).filter(|window| *window == needle).count();
    count(secret) + count(&wide)
}
