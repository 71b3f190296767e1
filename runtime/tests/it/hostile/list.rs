//! Checks the cases in `README.md` against the tests, and lists the globals of functions.

use std::path::Path;

/// All names on the global object of a decoder, separated by spaces.
pub(super) const GLOBALS: &str = "\
    AggregateError Array ArrayBuffer AsyncDisposableStack BigInt BigInt64Array BigUint64Array Boolean DataView Date \
    Decoder DisposableStack Error EvalError FinalizationRegistry Float16Array Float32Array Float64Array Function \
    Infinity Int16Array Int32Array Int8Array InternalError Iterator JSON Map Math NaN Number Object Promise Proxy \
    RangeError ReferenceError Reflect RegExp Set String SuppressedError Symbol SyntaxError TypeError URIError \
    Uint16Array Uint32Array Uint8Array Uint8ClampedArray WeakMap WeakRef WeakSet console decodeURI decodeURIComponent \
    encodeURI encodeURIComponent escape eval exports fields globalThis isFinite isNaN module parseFloat parseInt \
    payload port queueMicrotask undefined unescape Buffer TextDecoder TextEncoder atob btoa";

const LIST: &str = include_str!("README.md");

/// Reads the file `name`, relative to this directory, the tests, the crate or the workspace.
fn file(name: &str) -> String {
    let crate_dir = Path::new(env!("CARGO_MANIFEST_DIR"));
    let dirs = ["tests/it/hostile", "tests/it", ".", ".."];
    let paths = dirs.iter().map(|dir| crate_dir.join(dir).join(name));
    paths.into_iter().find_map(|path| std::fs::read_to_string(path).ok()).unwrap_or_else(|| panic!("no file {name}"))
}

#[test]
fn every_listed_case_names_existing_tests() {
    let rows: Vec<&str> = LIST.lines().filter(|line| line.starts_with("| SBX-")).collect();
    assert!(rows.len() >= 50, "{} cases", rows.len());
    for row in rows {
        let tested = row.trim_end_matches('|').rsplit('|').next().unwrap();
        for place in tested.split(';') {
            let (name, tests) = place.trim().trim_start_matches('`').split_once('`').unwrap();
            let source = file(name);
            for test in tests.split(',').map(str::trim).filter(|test| !test.contains(' ')) {
                let definition = format!("fn {test}(");
                assert!(!test.is_empty() && source.contains(&definition), "{name} has no test {test}");
            }
        }
    }
}

#[test]
fn every_case_named_by_a_test_is_listed() {
    for name in [
        "cpu.rs",
        "inputs.rs",
        "isolation.rs",
        "logs.rs",
        "memory.rs",
        "outputs.rs",
        "tests/it/messages/hostile_functions.rs",
    ] {
        for (_, rest) in file(name).match_indices("SBX-").map(|(at, _)| (at, file(name)[at..at + 7].to_owned())) {
            assert!(LIST.contains(&format!("| {rest} |")), "{name} names {rest}");
        }
    }
}
