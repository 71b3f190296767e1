//! Every limit, obeyed and violated, and the failure that names it; `hostile` has more ways to violate them.

mod of_output;

use std::fs;
use std::process::Command;

use airlock_runtime::{FailureKind, Slot};

use crate::harness::{Harness, fields, sources};

/// A source whose function for `slot` runs `body`.
fn function(slot: Slot, body: &str) -> String {
    let name = ["Decoder", "Converter", "Validator", "Encoder"][slot as usize];
    format!("function {name}(input, port) {{\n{body}\n}}")
}

const COUNT: &str =
    "function Decoder(bytes) { var n = 0; for (var i = 0; i < 1000 * bytes[0]; i++) n += i; return {n: n}; }";

#[test]
fn fuel_ends_an_endless_loop_while_loading() {
    let mut harness = Harness::with_limits(|limits| limits.load_fuel = 20_000_000);
    for slot in Slot::ALL {
        harness.check_fails(slot, FailureKind::Fuel, &format!("while (true) {{}}\n{}", function(slot, "")));
    }
}

#[test]
fn fuel_is_the_same_for_the_same_message() {
    let mut harness = Harness::new();
    let functions = harness.load_in(Slot::Decoder, COUNT);
    let other = harness.load_in(Slot::Decoder, "function Decoder() { return { a: [1, 2, 3] }; }");
    let fuel = harness.decode(&functions, &[3]).fuel;
    for round in 0..100 {
        assert_eq!(harness.decode(&functions, &[3]).fuel, fuel, "round {round}");
        harness.decode(&other, &[round]);
        harness.decode(&functions, &[round]);
    }
    assert_eq!(Harness::new().decode(&functions, &[3]).fuel, fuel, "on another engine");
}

#[test]
fn a_function_just_below_its_fuel_always_passes() {
    let mut harness = Harness::new();
    let functions = harness.load_in(Slot::Decoder, COUNT);
    let fuel = harness.decode(&functions, &[50]).fuel;
    let mut just_enough = Harness::with_limits(|limits| limits.fuel = fuel + fuel / 9);
    let mut too_little = Harness::with_limits(|limits| limits.fuel = fuel - fuel / 9);
    let (passing, failing) = (just_enough.load_in(Slot::Decoder, COUNT), too_little.load_in(Slot::Decoder, COUNT));
    for _ in 0..1000 {
        assert_eq!(fields(&just_enough.decode(&passing, &[50])), r#"{"n":1249975000}"#);
        assert_eq!(too_little.decode(&failing, &[50]).result.unwrap_err().kind, FailureKind::Fuel);
    }
}

#[test]
fn small_values_that_use_up_the_heap_have_a_line() {
    let mut harness = Harness::with_limits(|limits| limits.fuel = u64::MAX);
    for grow in ["all.push([all.length])", "all.push({ n: all.length })", "all.push('text ' + all.length)"] {
        let failure =
            harness.fail(Slot::Decoder, &format!("function Decoder() {{\n var all = [];\n while (true) {grow};\n}}"));
        assert_eq!((failure.kind, failure.line), (FailureKind::Memory, Some(3)), "{failure} in {grow}");
    }
}

/// The memory kept back for the error is there wherever the rest ends, between two objects or at any field of one.
#[test]
fn objects_that_use_up_the_heap_end_in_an_error_that_says_so() {
    let mut harness = Harness::with_limits(|limits| limits.heap_bytes_max = 700_000);
    let text = "function Decoder(bytes) {
        var all = [new Array(bytes[0] * 40).fill(0)];
        try {
            for (;;) all.push({ a: 1, b: 2, c: 3, d: 4, e: 5, f: 6, g: 7, h: 8, i: 9, j: 10, k: 11, l: 12 });
        } catch (error) {
            all = null;
            return { caught: String(error) };
        }
    }";
    let functions = harness.load_in(Slot::Decoder, text);
    for padding in 0..40 {
        let outcome = harness.decode(&functions, &[padding]);
        assert_eq!(fields(&outcome), r#"{"caught":"InternalError: out of memory"}"#, "after {padding}");
    }
}

#[test]
fn the_memory_limit_ends_a_growing_heap() {
    let mut harness = Harness::with_limits(|limits| {
        limits.fuel = u64::MAX;
        limits.memory_bytes_max = 4 << 20;
        limits.heap_bytes_max = 64 << 20;
    });
    let text = function(Slot::Decoder, "var a = []; while (true) a.push([a.length]);");
    harness.check_fails(Slot::Decoder, FailureKind::Memory, &text);
    harness.check_decodes("function Decoder() { return { a: 1 }; }", b"", r#"{"a":1}"#);
}

#[test]
fn the_memory_kept_after_loading_is_limited() {
    let mut harness = Harness::with_limits(|limits| limits.kept_bytes_max = 1 << 20);
    let text = |bytes: usize| format!("var table = 'x'.repeat({bytes});\nfunction Decoder() {{ return {{}}; }}");
    harness.load_in(Slot::Decoder, &text(200_000));
    harness.check_fails(Slot::Decoder, FailureKind::Memory, &text(3_000_000));
}

#[test]
fn a_memory_failure_does_not_affect_the_next_failure() {
    let mut harness = Harness::with_limits(|limits| limits.heap_bytes_max = 64 << 20);
    let text = "function Decoder(bytes) {
        if (bytes[0] === 0) throw new Error('mine');
        try { return { n: 'x'.repeat(1 << 25).length }; } catch (error) { return { n: -1 }; }
    }";
    let functions = harness.load_in(Slot::Decoder, text);
    assert_eq!(fields(&harness.decode(&functions, &[1])), r#"{"n":-1}"#);
    let failure = harness.decode(&functions, &[0]).result.unwrap_err();
    assert!(failure.kind == FailureKind::Thrown && failure.message.contains("mine"), "{failure}");
}

#[test]
fn ten_thousand_memory_bombs_do_not_grow_the_process() {
    // In a separate process, because other tests grow this one meanwhile.
    let me = std::env::current_exe().unwrap();
    let name = "limits::memory_bombs_in_a_process_of_their_own";
    let status = Command::new(me).args(["--exact", name, "--ignored", "--nocapture"]).status().unwrap();
    assert!(status.success());
}

#[test]
#[ignore = "started by the test above"]
fn memory_bombs_in_a_process_of_their_own() {
    let mut harness = Harness::with_limits(|limits| {
        limits.fuel = u64::MAX;
        limits.heap_bytes_max = 1 << 20;
    });
    let text = "function Decoder() { var a = []; while (true) a.push(new ArrayBuffer(65536)); }";
    let bomb = harness.load_in(Slot::Decoder, text);
    let mut explode = |times: usize| {
        for _ in 0..times {
            assert_eq!(harness.decode(&bomb, b"").result.unwrap_err().kind, FailureKind::Memory);
        }
        resident_bytes()
    };
    let before = explode(100);
    let after = explode(10_000);
    assert!(after < before + before / 20, "{before} bytes before, {after} after");
}

fn resident_bytes() -> usize {
    let statm = fs::read_to_string("/proc/self/statm").unwrap();
    statm.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
}

#[test]
fn the_stack_ends_endless_recursion_while_loading() {
    let mut harness = Harness::new();
    for slot in Slot::ALL {
        harness.check_fails(slot, FailureKind::Stack, &format!("(function f() {{ f(); }})();\n{}", function(slot, "")));
    }
    let sum = "return { n: (function f(n) { return n ? n + f(n - 1) : 0; })(200) };";
    harness.check_decodes(&function(Slot::Decoder, sum), b"", r#"{"n":20100}"#);
}

#[test]
fn the_time_limit_ends_what_fuel_does_not() {
    let mut harness = Harness::with_limits(|limits| {
        limits.fuel = u64::MAX;
        limits.time_ms_max = 30;
    });
    for slot in Slot::ALL {
        harness.check_fails(slot, FailureKind::Time, &function(slot, "while (true) {}"));
    }
}

#[test]
fn the_time_limit_ends_loading_that_fuel_does_not() {
    let mut harness = Harness::with_limits(|limits| {
        limits.load_fuel = u64::MAX;
        limits.load_time_ms_max = 30;
    });
    harness.check_fails(Slot::Converter, FailureKind::Time, "while (true) {}");
}

#[test]
fn a_text_may_be_as_long_as_its_limit_in_bytes() {
    let mut harness = Harness::with_limits(|limits| limits.source_bytes_max = 1000);
    let head = "function Decoder() { return {}; } //";
    let longest = format!("{head}{}{}", "é".repeat(400), "x".repeat(1000 - head.len() - 800));
    harness.load_in(Slot::Decoder, &longest);
    for slot in Slot::ALL {
        let failure = harness.fail(slot, &format!("{longest}x"));
        assert_eq!((failure.slot, failure.kind), (slot, FailureKind::Syntax));
        assert!(failure.message.contains("1001") && failure.message.contains("1000"), "{failure}");
    }
}

#[test]
fn memory_growth_is_undone_after_the_message() {
    let mut harness = Harness::new();
    let text = "function Decoder(b) { var a = new Uint8Array(b[0] * 65536).fill(7); return { n: a.length }; }";
    let functions = harness.load_in(Slot::Decoder, text);
    for pages in [0, 60, 0, 1, 100, 3] {
        let outcome = harness.decode(&functions, &[pages]);
        assert_eq!(fields(&outcome), format!(r#"{{"n":{}}}"#, usize::from(pages) * 65536));
        let first = harness.sandbox.next_memory(&functions).unwrap();
        assert_eq!(harness.decode(&functions, &[pages]).fuel, outcome.fuel);
        assert_eq!(harness.sandbox.next_memory(&functions).unwrap(), first);
    }
}

#[test]
fn a_message_never_overwrites_loaded_data() {
    let mut harness = Harness::new();
    let mut outcomes = [0; 2];
    for blocks in 80..=96 {
        // Puts the end of the memory anywhere in the last MiB below its limit.
        let text = format!(
            "[2080000, 2500000, 3000000, 3600000].forEach(function (size) {{ 'x'.repeat(size); }});
             var hold = []; for (var i = 0; i < {blocks}; i++) hold.push('y'.repeat(33000)); hold = null;
             var keep = []; for (var i = 0; i < 1500; i++) keep.push('item number ' + i);
             function Decoder() {{
                 var fresh = []; for (var n = 0; n < 400; n++) fresh.push(new Uint8Array(1000).fill(65));
                 return {{ right: keep.every(function (item, i) {{ return item === 'item number ' + i; }}) }};
             }}"
        );
        let Ok(functions) = harness.engine.load(&sources(Slot::Decoder, &text), harness.engine.limits()) else {
            continue;
        };
        match harness.decode(&functions, &[1]).result {
            Ok(value) => {
                assert!(format!("{value:?}").contains("true"), "{blocks}: {value:?}");
                outcomes[0] += 1;
            }
            Err(failure) => {
                assert_eq!(failure.kind, FailureKind::Memory, "{blocks}: {failure}");
                outcomes[1] += 1;
            }
        }
    }
    assert!(outcomes.into_iter().all(|count| count > 0), "not both with and without room: {outcomes:?}");
}
