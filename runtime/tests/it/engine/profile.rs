//! Costs of the lines of a script: the same fuel in total as in a live message, at the lines that use it.

use std::collections::BTreeMap;
use std::sync::Arc;

use airlock_runtime::{Engine, FailureKind, Recording, Settings, Slot, Sources};

use crate::harness::{Harness, call, settings, sources};
use airlock_runtime::EntryPoint;

/// An engine that counts steps.
fn profiler(settings: &Settings) -> Harness {
    Harness::of(Engine::profiling(settings).unwrap())
}

/// Records one message of `sources`, which may fail; checks that it is charged what a live message is.
fn record(sources: &Sources, payload: &[u8]) -> Recording {
    let mut plain = Harness::new();
    let functions = plain.load(sources);
    let expected = plain.sandbox.call(&functions, &call(EntryPoint::Uplink, payload));
    let mut harness = profiler(&settings());
    let functions = harness.load(sources);
    let steps = harness.sandbox.steps(&functions).unwrap();
    let message = call(EntryPoint::Uplink, payload);
    let (outcome, recording) = harness.sandbox.call_recorded(&functions, &message, Recording::new(&steps));
    let recording = recording.unwrap();
    assert_eq!((outcome.fuel, outcome.result.is_ok()), (expected.fuel, expected.result.is_ok()));
    assert_eq!(recording.fuel(), expected.fuel);
    assert_eq!(recording.chains.iter().map(|chain| chain.fuel).sum::<u64>() + recording.outside, expected.fuel);
    recording
}

fn decoder(text: &str) -> Recording {
    record(&sources(Slot::Decoder, text), &[3, 4, 5])
}

/// The fuel of each line.
fn lines(recording: &Recording) -> BTreeMap<u32, u64> {
    let mut lines = BTreeMap::new();
    for (step, cost) in recording.steps.all().iter().zip(&recording.costs) {
        *lines.entry(step.line).or_default() += cost.fuel;
    }
    lines
}

/// The names of the functions of each chain, and whether it used any fuel.
fn chains(recording: &Recording) -> Vec<String> {
    let name = |index: usize| recording.steps.functions()[recording.chains[index].function].name.clone();
    let path = |index: usize| {
        let callers = std::iter::successors(Some(index), |index| recording.chains[*index].caller);
        let mut names: Vec<String> = callers.map(name).collect();
        names.reverse();
        names.join(";")
    };
    (0..recording.chains.len()).map(path).collect()
}

#[test]
fn a_profile_has_the_fuel_of_a_live_message() {
    for text in [
        "function Decoder(b) { return { n: b.length }; }",
        "function Decoder(b) { return { a: b.map(function (x) { return x * 2; }), s: b.slice().sort() }; }",
        "function f(n) { return n < 2 ? n : f(n - 1) + f(n - 2); }\nfunction Decoder(b) { return { n: f(12) }; }",
        "function* g() { yield 1; yield* [2, 3]; }\nfunction Decoder() { return { all: [...g()] }; }",
        "class A { #x = 1; get x() { return this.#x; } }\nfunction Decoder() { return { n: new A().x }; }",
        "function Decoder(b) { try { b.x.y; } catch (e) { return { m: e.message, s: '' + e.stack.length }; } }",
        "function Decoder(b) { return { b: Buffer.from(b).toString('hex'), t: new TextDecoder().decode(new Uint8Array(b)) }; }",
        "function Decoder(b) { return JSON.parse('{\"a\":[1,2,{\"b\":3}]}', function (k, v) { return v; }); }",
        "function Decoder(b) { return { s: 'a-b-c'.replace(/-/g, function () { return '+'; }) }; }",
        "function Decoder(b) { throw new Error('no'); }",
        "function Decoder(b) { return Decoder(b); }",
        "function Decoder(b) { return { big: 'x'.repeat(20000) }; }",
        "function Decoder(b) { var a = []; for (var i = 0; i < 20000; i++) a.push([i]); return { n: a.length }; }",
        "function Decoder(b) { return eval('(' + 'function () { return {n: 1}; }' + ')')(); }",
    ] {
        decoder(text);
    }
}

#[test]
fn running_out_of_fuel_has_the_fuel_of_a_live_message() {
    let limited = || {
        let mut settings = settings();
        settings.limits.fuel = 3_000_000;
        settings
    };
    let text = "function Decoder() {\n  var n = 0;\n  while (true) n++;\n}";
    let mut plain = Harness::with_limits(|limits| limits.fuel = 3_000_000);
    let functions = plain.load_in(Slot::Decoder, text);
    let expected = plain.decode(&functions, b"x");
    let mut harness = profiler(&limited());
    let functions = harness.load_in(Slot::Decoder, text);
    let steps = harness.sandbox.steps(&functions).unwrap();
    let message = call(EntryPoint::Uplink, b"x");
    let (outcome, recording) = harness.sandbox.call_recorded(&functions, &message, Recording::new(&steps));
    assert_eq!(outcome.result.unwrap_err().kind, FailureKind::Fuel);
    let recording = recording.unwrap();
    assert_eq!(recording.fuel(), expected.fuel);
    assert!(lines(&recording)[&3] > expected.fuel * 8 / 10, "{:?}", lines(&recording));
}

#[test]
fn fuel_is_at_the_line_that_uses_it() {
    let recording = decoder(
        "function Decoder(b) {\n  var n = 0;\n  for (var i = 0; i < 1000; i++) {\n    n += i;\n  }\n\
           \x20 var s = 'x'.repeat(1e5).split('');\n  return { n: n };\n}",
    );
    let lines = lines(&recording);
    assert_eq!(lines.keys().copied().collect::<Vec<_>>(), [2, 3, 4, 6, 7]);
    assert!(lines[&3] > 10 * lines[&2] && lines[&4] > 10 * lines[&2], "{lines:?}");
    assert!(lines[&6] > 10 * lines[&4], "what a built-in function uses counts for the line that calls it: {lines:?}");
}

#[test]
fn callbacks_and_what_calls_them_are_told_apart() {
    let recording = decoder(
        "function twice(x) {\n  return 2 * x;\n}\nfunction Decoder(b) {\n  var all = new Array(500).fill(1);\n\
           \x20 return { n: all.map(twice).length };\n}",
    );
    assert_eq!(chains(&recording), ["Decoder", "Decoder;twice"]);
    let runs = |line: u32| {
        let steps = recording.steps.all().iter().zip(&recording.costs);
        steps.filter(|(step, _)| step.line == line).map(|(_, cost)| cost.runs).max()
    };
    assert_eq!((runs(2), runs(6)), (Some(500), Some(1)));
    let lines = lines(&recording);
    assert!(lines[&6] > lines[&2], "`map` itself uses more than what it calls: {lines:?}");
}

/// Calls of a function, and the fuel of its chain.
fn function(recording: &Recording, name: &str) -> (u64, u64) {
    let functions = recording.steps.functions();
    let index = functions.iter().position(|function| function.name == name).unwrap();
    let fuel = recording.chains.iter().filter(|chain| chain.function == index).map(|chain| chain.fuel).sum();
    (recording.calls[index], fuel)
}

#[test]
fn a_loop_at_the_start_of_a_function_is_one_call() {
    let spin = |before: &str, after: &str| {
        let text = format!(
            "function spin(n) {{ {before}while (n--) {{}} {after} }}\nfunction Decoder(b) {{\n  spin(100);\n  return {{}};\n}}"
        );
        decoder(&text)
    };
    let with = spin("var q = 0; ", "return 7;");
    for after in ["return 7;", "", &format!("var s = ''; {} return s;", "s += n + s;".repeat(60))] {
        let recording = spin("", after);
        let (calls, fuel) = function(&recording, "spin");
        assert_eq!(calls, 1, "{after}");
        let caller = lines(&recording)[&3];
        assert!(fuel > 1000 && caller.abs_diff(lines(&with)[&3]) < 100, "{after}: {fuel}, {caller}");
        let branches = recording.steps.all().iter().zip(&recording.costs).filter(|(step, _)| step.is_branch);
        let jumps: Vec<_> = branches.map(|(_, cost)| (cost.runs, cost.jumps)).collect();
        assert!(matches!(jumps[..], [(101, 1 | 100)]), "both ways: {jumps:?}");
    }
    assert_eq!(chains(&spin("", "")), ["Decoder", "Decoder;spin"]);
    // Calls from the same place are told from loops, also those that throw.
    let text = "function f(x) { while (x--) {} }\nfunction Decoder(b) { [3, 3, 3].forEach(f); return {}; }";
    let recording = decoder(text);
    assert_eq!(function(&recording, "f").0, 3);
    let (fuel, once) = (function(&recording, "f").1, function(&decoder(&text.replace("3, 3, 3", "3")), "f").1);
    assert!((3 * once - 20..=3 * once + 20).contains(&fuel), "{fuel} and {once}");
}

#[test]
fn what_a_limit_cuts_off_counts_for_the_line_that_ran() {
    for (text, line) in [
        ("function Decoder(b) {\n  while (1) {}\n}", 2),
        ("function Decoder(b) {\n  var s = 'a'.repeat(40);\n  return /^(a+)+$/.test(s + 'b');\n}", 3),
        ("function Decoder(b) {\n  while (1) b.indexOf(-1);\n}", 2),
        ("function f() {}\nfunction Decoder(b) {\n  var a = new Array(1e5).fill(0);\n  while (1) a.forEach(f);\n}", 4),
    ] {
        let recording = decoder(text);
        let (fuel, lines) = (recording.fuel(), lines(&recording));
        assert!(lines[&line] > fuel / 2 && recording.outside < fuel / 10, "{text}: {lines:?}, {}", recording.outside);
    }
}

#[test]
fn branches_count_both_ways() {
    let recording = decoder(
        "function Decoder(b) {\n  for (var i = 0; i < 10; i++) {\n    if (i == 3) b = i;\n  }\n  return {};\n}",
    );
    let branches = recording.steps.all().iter().zip(&recording.costs).filter(|(step, _)| step.is_branch);
    let counts: Vec<_> = branches.map(|(step, cost)| (step.line, cost.runs, cost.jumps)).collect();
    assert!(counts.contains(&(3, 10, 9)), "{counts:?}");
    assert!(
        counts.iter().any(|(line, runs, jumps)| (*line, *runs) == (2, 11) && (*jumps == 1 || *jumps == 10)),
        "{counts:?}"
    );
}

#[test]
fn every_source_has_its_own_lines() {
    let sources = Sources {
        decoder: "function Decoder(b) {\n  return { n: b[0] };\n}".to_owned(),
        converter: "\n\nfunction Converter(d) {\n  d.m = 1;\n  return d;\n}".to_owned(),
        validator: "function Validator(c) { return c.m === 1; }".to_owned(),
        ..Sources::default()
    };
    let recording = record(&sources, &[1]);
    let functions = recording.steps.functions();
    let mut names: Vec<_> =
        functions.iter().map(|function| (function.slot, &function.name[..], function.line)).collect();
    names.sort_by_key(|(slot, ..)| *slot as u8);
    assert_eq!(
        names.iter().map(|(slot, name, _)| (*slot, *name)).collect::<Vec<_>>(),
        [(Slot::Decoder, "Decoder"), (Slot::Converter, "Converter"), (Slot::Validator, "Validator")]
    );
    assert_eq!(chains(&recording), ["Decoder", "Converter", "Validator"]);
}

#[test]
fn recordings_of_several_messages_add_up() {
    let mut harness = profiler(&settings());
    let functions = harness.load_in(Slot::Decoder, "function Decoder(b) { return { n: b.length }; }");
    let steps = harness.sandbox.steps(&functions).unwrap();
    let message = call(EntryPoint::Uplink, &[1, 2]);
    let mut recording = Recording::new(&steps);
    let mut fuel = 0;
    for _ in 0..20 {
        let (outcome, recorded) = harness.sandbox.call_recorded(&functions, &message, recording);
        (recording, fuel) = (recorded.unwrap(), fuel + outcome.fuel);
    }
    assert_eq!((recording.fuel(), recording.chains.len()), (fuel, 1));
    assert_eq!(recording.costs[0].runs, 20);
    assert!(Arc::ptr_eq(&recording.steps, &steps));
}

#[test]
fn other_engines_count_no_steps() {
    let mut harness = Harness::new();
    let functions = harness.load_in(Slot::Decoder, "function Decoder(b) { return {}; }");
    let steps = harness.sandbox.steps(&functions).unwrap();
    let message = call(EntryPoint::Uplink, &[1]);
    let (outcome, recording) = harness.sandbox.call_recorded(&functions, &message, Recording::new(&steps));
    let recording = recording.unwrap();
    assert_eq!((recording.outside, recording.chains.len()), (outcome.fuel, 0));
}
