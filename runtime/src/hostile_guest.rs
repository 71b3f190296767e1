//! Guests that do not keep to what the host expects: each costs one message and nothing more.

use std::sync::Arc;

use crate::contract::call::Call;
use crate::contract::sources::Sources;
use crate::contract::wire::{EntryPoint, FailureKind};
use crate::engine::Engine;
use crate::limits::Limits;
use crate::memory::reset::Reset;
use crate::settings::Settings;

/// The port whose messages a wicked guest does its worst to.
const WICKED_PORT: u8 = 1;
/// Where the guest has a good reply to each request.
const LOADED: (i64, &[u8]) = (1024, &[0, 1, 0, 0, 0]);
const DECODED: (i64, &[u8]) = (2048, b"\0\x01\x02\0\0\0{}\0\0\0\0\0\0\0\0\0\0\0\0");

/// What a guest does to a message on the wicked port, and how that message fails.
const ACTS: &[(&str, &[u8], FailureKind)] = &[
    ("traps", &[0x00], FailureKind::Broken),
    ("reads outside of its memory", &[0x41, 0x70, 0x28, 2, 0, 0x1a], FailureKind::Broken),
    ("divides by zero", &[0x41, 1, 0x41, 0, 0x6d, 0x1a], FailureKind::Broken),
    ("points behind its memory", &[0x42, 0x84, 0x80, 0x80, 0x80, 0x80, 0x80, 0x04, 0x0f], FailureKind::Broken),
    ("points across the end of the address space", &[0x42, 0x70, 0x0f], FailureKind::Broken),
    ("replies with nothing", &[0x42, 0x00, 0x0f], FailureKind::Broken),
    ("replies with what is no reply", &[0x42, 0x8c, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01, 0x0f], FailureKind::Broken),
    ("calls itself for ever", &[0x20, 0, 0x20, 1, 0x10, 2, 0x0f], FailureKind::Stack),
    ("never ends", &[0x03, 0x40, 0x41, 0, 0x41, 0, 0x36, 2, 0, 0x0c, 0, 0x0b], FailureKind::Time),
    ("says that its fuel is used up", &[0x42, 0x7f, 0x24, 2, 0x00], FailureKind::Fuel),
    ("loses its stack", &[0x41, 0x7f, 0x24, 1, 0x00], FailureKind::Stack),
    ("grows beyond its limit", &[0x41, 0xff, 0xff, 0x00, 0x40, 0, 0x1a, 0x00], FailureKind::Memory),
];

#[test]
fn a_guest_that_traps_or_lies_fails_one_message() {
    for (what, act, kind) in ACTS {
        for reset in [Reset::PageScan, Reset::Remap, Reset::Copy] {
            let engine = engine(&guest(&[0x41, 0x80, 0x80, 0x01], act), reset);
            let functions = engine.load(&Sources::default(), engine.limits()).unwrap();
            let mut sandbox = engine.sandbox();
            for _ in 0..3 {
                let failure = sandbox.call(&functions, &call(WICKED_PORT)).result.expect_err(what);
                assert_eq!(failure.kind, kind.to_owned(), "a guest that {what}: {failure}");
                assert!(sandbox.call(&functions, &call(2)).result.is_ok(), "after a guest that {what}");
            }
        }
    }
}

#[test]
fn a_guest_that_makes_no_room_fails_what_it_is_asked() {
    for alloc in [&[0x41, 0x7f][..], &[0x00], &[0x41, 0x80, 0x80, 0x04], &[0x41, 0xff, 0xff, 0x03]] {
        let engine = engine(&guest(alloc, &[]), Reset::Copy);
        let failure = engine.load(&Sources::default(), engine.limits()).unwrap_err();
        assert_eq!(failure.kind, FailureKind::Broken, "{failure}");
    }
}

fn engine(guest: &[u8], reset: Reset) -> Arc<Engine> {
    let limits = Limits { time_ms_max: 20, ..Limits::default() };
    Arc::new(Engine::build(&Settings { limits, ..Settings::default() }, reset, guest).unwrap())
}

fn call(port: u8) -> Call {
    Call { entry_point: EntryPoint::Uplink, port, time_ms: 0, seed: 0, payload: vec![1], single_function: None }
}

/// A guest that answers well but for the messages on the wicked port; `alloc` is how it makes room.
fn guest(alloc: &[u8], act: &[u8]) -> Vec<u8> {
    let number = |(start, bytes): (i64, &[u8])| signed(start << 32 | bytes.len() as i64);
    let load = [&[0x42][..], &number(LOADED)].concat();
    // Reads the port out of the request.
    let is_wicked = [0x20, 0, 0x2d, 0, 1, 0x41, WICKED_PORT, 0x46, 0x04, 0x40];
    let call = [&is_wicked[..], act, &[0x0b, 0x42], &number(DECODED)].concat();
    let data =
        |(start, bytes): (i64, &[u8])| [&[0, 0x41][..], &signed(start), &[0x0b, bytes.len() as u8], bytes].concat();
    let sections = [
        (1, vec![3, 0x60, 1, 0x7f, 1, 0x7f, 0x60, 2, 0x7f, 0x7f, 1, 0x7e, 0x60, 0, 1, 0x7e]),
        (3, vec![4, 0, 1, 1, 2]),
        (5, vec![1, 0, 1]),
        (6, b"\x03\x7f\0\x41\x08\x0b\x7f\x01\x41\x80\xc0\0\x0b\x7e\x01\x42\0\x0b".to_vec()),
        (
            7,
            exports(&[
                ("memory", 2, 0),
                ("alloc", 0, 0),
                ("load", 0, 1),
                ("call", 0, 2),
                ("trap_report", 0, 3),
                ("running_slot", 3, 0),
                ("stack_pointer", 3, 1),
                ("fuel", 3, 2),
            ]),
        ),
        // Its last words lie outside of its memory.
        (10, [vec![4], body(alloc), body(&load), body(&call), body(&[0x42, 0x7f])].concat()),
        (11, [vec![2], data(LOADED), data(DECODED)].concat()),
    ];
    let mut module = b"\0asm\x01\0\0\0".to_vec();
    for (id, content) in sections {
        module.push(id);
        module.extend(unsigned(content.len()));
        module.extend(content);
    }
    module
}

fn exports(exports: &[(&str, u8, u8)]) -> Vec<u8> {
    let mut section = vec![exports.len() as u8];
    for (name, kind, index) in exports {
        section.push(name.len() as u8);
        section.extend(name.bytes().chain([*kind, *index]));
    }
    section
}

fn body(code: &[u8]) -> Vec<u8> {
    [unsigned(code.len() + 2), vec![0], code.to_vec(), vec![0x0b]].concat()
}

fn unsigned(mut number: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    while number > 0x7f {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
    bytes
}

fn signed(mut number: i64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while !(-64..64).contains(&number) {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8 & 0x7f);
    bytes
}
