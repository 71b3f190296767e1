//! Tests with hostile guests: each breaks one rule of the host and costs only one message.

use std::sync::Arc;

use crate::contract::call::Call;
use crate::contract::sources::Sources;
use crate::contract::wire::{EntryPoint, FailureKind};
use crate::engine::Engine;
use crate::limits::Limits;
use crate::memory::reset::Reset;
use crate::settings::Settings;

/// The guest misbehaves on messages with this port.
const HOSTILE_PORT: u8 = 1;

/// Acts of a guest: the name, the code in WebAssembly text, and the failure of the message.
const ACTS: &[(&str, &str, FailureKind)] = &[
    ("traps", "unreachable", FailureKind::Broken),
    ("reads outside of its memory", "(drop (i32.load (i32.const -16)))", FailureKind::Broken),
    ("divides by zero", "(drop (i32.div_s (i32.const 1) (i32.const 0)))", FailureKind::Broken),
    ("replies from outside of its memory", "(return (i64.const 0x1_0000_0000_0004))", FailureKind::Broken),
    ("replies from beyond the end of the address space", "(return (i64.const -16))", FailureKind::Broken),
    ("replies with nothing", "(return (i64.const 0))", FailureKind::Broken),
    ("replies with garbage", "(return (i64.const 0x400_0000_000c))", FailureKind::Broken),
    ("recurses endlessly", "(return (call $call (local.get 0) (local.get 1)))", FailureKind::Stack),
    ("loops endlessly", "(loop (i32.store (i32.const 0) (i32.const 0)) (br 0))", FailureKind::Time),
    ("claims to be out of fuel", "(global.set $fuel (i64.const -1)) unreachable", FailureKind::Fuel),
    ("corrupts its stack pointer", "(global.set $stack (i32.const -1)) unreachable", FailureKind::Stack),
    ("grows beyond its limit", "(drop (memory.grow (i32.const 16383))) unreachable", FailureKind::Memory),
];

#[test]
fn a_guest_that_traps_or_lies_fails_one_message() {
    for (what, act, kind) in ACTS {
        for reset in [Reset::PageScan, Reset::Remap, Reset::Copy] {
            let engine = engine(&guest("i32.const 16384", act), reset);
            let functions = engine.load(&Sources::default(), engine.limits()).unwrap();
            let mut sandbox = engine.sandbox();
            for _ in 0..3 {
                let failure = sandbox.call(&functions, &call(HOSTILE_PORT)).result.expect_err(what);
                assert_eq!(failure.kind, kind.to_owned(), "a guest that {what}: {failure}");
                assert!(sandbox.call(&functions, &call(2)).result.is_ok(), "after a guest that {what}");
            }
        }
    }
}

#[test]
fn a_message_that_a_protected_memory_stops_runs_again_and_is_charged_twice() {
    let act = "(global.set $fuel (i64.sub (global.get $fuel) (i64.const 5)))
        (i32.store (i32.const 32768) (i32.const 1))";
    let engine = engine(&guest("i32.const 16384", act), Reset::PageScan);
    let functions = engine.load(&Sources::default(), engine.limits()).unwrap();
    // The host itself must not write a request that is longer than the page of the others.
    let large = Call { extra: format!("{{\"a\":\"{}\"}}", "b".repeat(5000)), ..call(2) };
    for (message, fuel) in [(call(HOSTILE_PORT), 5), (large, 0)] {
        let mut sandbox = engine.sandbox();
        let is_protected = (0..10_000).any(|_| {
            assert!(sandbox.call(&functions, &call(2)).result.is_ok());
            sandbox.messages_protected() > 0
        });
        assert!(is_protected, "the memory was never protected");
        assert_eq!(sandbox.take_stopped_fuel(), 0);
        let protected = sandbox.messages_protected();
        let outcome = sandbox.call(&functions, &message);
        assert!(outcome.result.is_ok(), "{outcome:?}");
        assert_eq!((outcome.fuel, sandbox.take_stopped_fuel()), (fuel, fuel));
        assert_eq!(sandbox.messages_protected(), protected + 1);
        assert!(sandbox.call(&functions, &call(2)).result.is_ok());
        assert_eq!(sandbox.messages_protected(), protected + 1, "it runs without protection now");
    }
}

#[test]
fn a_guest_that_allocates_no_request_buffer_fails_the_load() {
    for alloc in ["i32.const -1", "unreachable", "i32.const 65536", "i32.const 65535"] {
        let engine = engine(&guest(alloc, ""), Reset::Copy);
        let failure = engine.load(&Sources::default(), engine.limits()).unwrap_err();
        assert_eq!(failure.kind, FailureKind::Broken, "{failure}");
    }
}

fn engine(guest: &[u8], reset: Reset) -> Arc<Engine> {
    let limits = Limits { time_ms_max: 20, ..Limits::default() };
    Arc::new(Engine::build(&Settings { limits, ..Settings::default() }, reset, guest).unwrap())
}

fn call(port: u8) -> Call {
    Call {
        entry_point: EntryPoint::Uplink,
        port,
        time_ms: 0,
        seed: 0,
        payload: vec![1],
        extra: String::new(),
        single_function: None,
    }
}

/// A guest that replies correctly except to messages on the hostile port; `alloc` is the body of its `alloc`.
fn guest(alloc: &str, act: &str) -> Vec<u8> {
    let module = format!(
        r#"(module
            (memory (export "memory") 1)
            (global (export "running_slot") i32 (i32.const 8))
            (global $stack (export "stack_pointer") (mut i32) (i32.const 8192))
            (global $fuel (export "fuel") (mut i64) (i64.const 0))
            (func (export "alloc") (param i32) (result i32) {alloc})
            (func (export "load") (param i32 i32) (result i64) (i64.const 0x400_0000_0005))
            (func $call (export "call") (param i32 i32) (result i64)
                (if (i32.eq (i32.load8_u offset=1 (local.get 0)) (i32.const {HOSTILE_PORT})) (then {act}))
                (i64.const 0x800_0000_0014))
            ;; Its trap report is outside of its memory.
            (func (export "trap_report") (result i64) (i64.const -1))
            (data (i32.const 1024) "\00\01\00\00\00")
            (data (i32.const 2048) "\00\01\02\00\00\00{{}}\00\00\00\00\00\00\00\00\00\00\00\00"))"#
    );
    wat::parse_str(module).unwrap()
}
