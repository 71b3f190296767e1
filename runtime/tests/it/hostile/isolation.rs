//! Functions that change their globals, or try to escape.

use airlock_runtime::FailureKind::{Fuel, Output, Syntax, Thrown};
use airlock_runtime::{Call, EntryPoint, Failure, Slot, Sources};

use super::{Act, DECODER, Fails, Gives, HostileHarness, MAKERS};
use crate::harness::{call, fields};

/// Globals that must not exist: files, networks, timers, clocks, threads, engine internals.
const ABSENT: &str = "\
    process require fetch XMLHttpRequest WebSocket WebAssembly Javy std os bjson setTimeout setInterval setImmediate \
    performance SharedArrayBuffer Atomics Worker print gc load read scriptArgs navigator Deno crypto global self";

/// Attempts to gain capabilities; all of them fail and use fuel.
const CLIMBING: &[Act] = &[
    ("SBX-060", DECODER, "import('fs'); return { n: 1 };", Gives(r#"{"n":1}"#)),
    (
        "SBX-060",
        DECODER,
        "return { t: typeof (function () {}).constructor.constructor('return this')().process };",
        Gives(r#"{"t":"undefined"}"#),
    ),
    ("SBX-060", DECODER, "return { n: new Function('return 1')() };", Gives(r#"{"n":1}"#)),
    ("SBX-060", DECODER, "return { n: (0, eval)('1') };", Gives(r#"{"n":1}"#)),
    ("SBX-060", DECODER, "(0, eval)('for (;;);');", Fails(Fuel)),
    ("SBX-060", DECODER, "[].constructor.constructor('while (true);')();", Fails(Fuel)),
    ("SBX-060", DECODER, "eval('import.meta');", Fails(Thrown)),
    (
        "SBX-060",
        DECODER,
        "var stack; Error.prepareStackTrace = function (e, s) { stack = s; return ''; }; new Error('x').stack; return { n: stack ? typeof stack[0].getThis : 1 };",
        Gives(r#"{"n":"undefined"}"#),
    ),
    (
        "SBX-066",
        DECODER,
        "var t = Date.now(), i = 0; while (Date.now() === t && i < 1e5) i++; return { n: i === 1e5 ? 1 : 0 };",
        Gives(r#"{"n":1}"#),
    ),
    (
        "SBX-066",
        DECODER,
        "var t = new Date().getTime(); for (var i = 0; i < 1e4; i++); return { n: new Date() - t };",
        Gives(r#"{"n":0}"#),
    ),
];

/// Changes to globals that the guest and the next function use; the result must still be correct.
const SPOILING: &[Act] = &[
    (
        "SBX-053",
        MAKERS,
        "Object.prototype.n = 9; Object.prototype.toJSON = function () { return 9; }; return { a: 1 };",
        Fails(Output),
    ),
    (
        "SBX-053",
        MAKERS,
        "JSON.stringify = JSON.parse = function () { throw 1; }; return { n: 1 };",
        Gives(r#"{"n":1}"#),
    ),
    (
        "SBX-053",
        MAKERS,
        "Object.keys = Array.isArray = Number = String = function () { throw 1; }; return { n: 1 };",
        Gives(r#"{"n":1}"#),
    ),
    (
        "SBX-053",
        MAKERS,
        "Object.defineProperty(Object.prototype, 'data', { get: function () { throw 1; } }); return { n: 1 };",
        Gives(r#"{"n":1}"#),
    ),
    (
        "SBX-053",
        MAKERS,
        "Array.prototype.push = function () { throw 1; }; Object.prototype.length = 5; return { a: [1] };",
        Gives(r#"{"a":[1]}"#),
    ),
    (
        "SBX-053",
        MAKERS,
        "for (var k of Object.getOwnPropertyNames(globalThis)) try { delete globalThis[k]; } catch (e) {} return { n: 1 };",
        Gives(r#"{"n":1}"#),
    ),
    ("SBX-053", MAKERS, "Object.freeze(globalThis); return { n: 1 };", Gives(r#"{"n":1}"#)),
    ("SBX-054", MAKERS, "globalThis.x = 1; y = 2; this.z = 3; return { n: 1 };", Gives(r#"{"n":1}"#)),
];

#[test]
fn no_function_gains_capabilities() {
    HostileHarness::new().judge(CLIMBING);
}

#[test]
fn changed_globals_affect_only_their_own_function() {
    HostileHarness::new().judge(SPOILING);
}

/// SBX-059
#[test]
fn only_the_language_is_available() {
    let mut hostile = HostileHarness::new();
    for name in ABSENT.split(' ') {
        let outcome = hostile.decode(&format!("return {{ t: typeof {name} }};"));
        assert_eq!(fields(&outcome), r#"{"t":"undefined"}"#, "{name}");
    }
}

/// SBX-059: also notices new globals.
#[test]
fn the_globals_are_those_that_are_listed() {
    let outcome = HostileHarness::new().decode("return { all: Object.getOwnPropertyNames(globalThis).sort() };");
    let found: serde_json::Value = serde_json::from_str(fields(&outcome)).unwrap();
    let found: Vec<&str> = found["all"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
    let is_listed = |name: &str| super::list::GLOBALS.split(' ').any(|listed| listed == name);
    let unknown: Vec<&str> = found.into_iter().filter(|name| !is_listed(name)).collect();
    assert!(unknown.is_empty(), "{unknown:?}: may functions have them?");
}

/// SBX-060
#[test]
fn a_module_can_import_nothing_but_buffer_and_learns_nothing() {
    let mut hostile = HostileHarness::new();
    for name in ["fs", "node:buffer", "./decoder.js", "https://example.org/a.js", ""] {
        let text = format!("import * as x from '{name}';\nfunction Decoder() {{ return {{}}; }}");
        let failure = load_failure(&hostile, &text);
        assert!(super::is(&failure, Slot::Decoder, Syntax), "{failure} in {text}");
        assert!(failure.message.contains("only 'buffer' can be imported"), "{failure} in {text}");
    }
    let text = "const meta = Reflect.ownKeys(import.meta);\nfunction Decoder() { return { meta }; }";
    hostile.harness.check_decodes(text, b"x", r#"{"meta":[]}"#);
}

fn load_failure(hostile: &HostileHarness, text: &str) -> Failure {
    let sources = Sources { decoder: text.to_owned(), ..Sources::default() };
    hostile.harness.engine.load(&sources, hostile.harness.engine.limits()).expect_err(text)
}

/// SBX-053: each function has its own built-ins.
#[test]
fn built_ins_changed_by_one_function_are_intact_in_the_next() {
    let mut hostile = HostileHarness::new();
    let sources = Sources {
        decoder: "function Decoder(bytes) {
            Object.prototype.spoilt = 1; Array.prototype.map = null; JSON = null; Math.max = null; leaked = 1;
            return { list: [1, 2] };
        }"
        .to_owned(),
        converter: "function Converter(fields) {
            return { list: fields.list, spoilt: typeof {}.spoilt, map: typeof [].map, json: typeof JSON,
                     max: typeof Math.max, leaked: typeof leaked };
        }"
        .to_owned(),
        validator: "function Validator() { return typeof leaked === 'undefined' && typeof {}.spoilt === 'undefined'; }"
            .to_owned(),
        ..Sources::default()
    };
    let functions = hostile.harness.load(&sources);
    let outcome = hostile.harness.decode(&functions, b"");
    let expected = r#""spoilt":"undefined","map":"function","json":"object","max":"function","leaked":"undefined"}"#;
    assert!(fields(&outcome).ends_with(expected), "{}", fields(&outcome));
    hostile.check_innocent("spoilt prototypes");
}

/// SBX-058
#[test]
fn old_sloppy_mode_codecs_work() {
    let mut hostile = HostileHarness::new();
    for (body, expected) in [
        ("undeclared = 010; return { n: undeclared };", r#"{"n":8}"#),
        ("return { n: arguments.callee.length, l: arguments.length };", r#"{"n":2,"l":2}"#),
        ("with ({ n: 1 }) { return { n: n }; }", r#"{"n":1}"#),
        ("var undefined = 1; var bytes; return { n: bytes.length };", r#"{"n":1}"#),
        ("delete bytes; return { n: '\\01'.charCodeAt(0) };", r#"{"n":1}"#),
        ("function eval() { return 1; } return { n: eval() };", r#"{"n":1}"#),
        ("return { n: (function (a, a) { return a; })(0, 1), t: typeof this };", r#"{"n":1,"t":"object"}"#),
    ] {
        let outcome = hostile.decode(body);
        assert_eq!(fields(&outcome), expected, "{body}");
    }
}

/// SBX-064
#[test]
fn time_and_random_numbers_come_with_the_message() {
    let mut hostile = HostileHarness::new();
    let body = "return { a: Date.now(), b: +new Date(), c: new Date().toString(), d: Date(), r: [Math.random(), Math.random()] };";
    let functions = hostile.harness.load(&super::sources(Slot::Decoder, body));
    let message = |time_ms, seed| Call { time_ms, seed, ..call(EntryPoint::Uplink, &[1]) };
    let mut run = |message: &Call| fields(&hostile.harness.sandbox.call(&functions, message)).to_owned();
    let first = run(&message(1_700_000_000_123, 42));
    assert!(
        first.starts_with(r#"{"a":1700000000123,"b":1700000000123,"c":"Tue Nov 14 2023 22:13:20 GMT+0000"#),
        "{first}"
    );
    assert_eq!(run(&message(1_700_000_000_123, 42)), first);
    let chances = |fields: &str| fields.split_once(r#""r":"#).unwrap().1.to_owned();
    let other = run(&message(1_700_000_000_123, 43));
    assert_ne!(chances(&other), chances(&first));
    let later = run(&message(1_700_000_000_124, 42));
    assert!(later.starts_with(r#"{"a":1700000000124"#) && chances(&later) == chances(&first), "{later}");
    assert_eq!(HostileHarness::new().harness.engine.reset(), hostile.harness.engine.reset());
}

/// SBX-074
#[test]
fn a_thousand_failures_do_not_disable_a_function() {
    let mut hostile = HostileHarness::with_limits(|limits| limits.fuel = 3_000_000);
    let text = "if (port === 1) throw 1; if (port === 2) for (;;); if (port === 3) (function f() { f(); })();";
    let functions = hostile.harness.load(&super::sources(Slot::Decoder, text));
    for round in 0..1000_u32 {
        let failing = Call { port: (round % 3 + 1) as u8, ..call(EntryPoint::Uplink, &[1]) };
        assert!(hostile.harness.sandbox.call(&functions, &failing).result.is_err());
        if round % 100 == 0 {
            hostile.check_next("many failures", Slot::Decoder, &functions);
        }
    }
    hostile.check_next("a thousand failures", Slot::Decoder, &functions);
    hostile.check_innocent("a thousand failures");
}
