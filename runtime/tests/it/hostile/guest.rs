//! Properties of the guest module.

use std::path::Path;

use airlock_runtime::{Engine, Slot};
use wasmparser::{Parser, Payload};

use super::HostileHarness;

fn sections(visit: impl FnMut(Payload<'_>)) {
    let wasm = std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("guest.wasm")).unwrap();
    Parser::new(0).parse_all(&wasm).map(Result::unwrap).for_each(visit);
}

/// SBX-061
#[test]
fn the_guest_has_no_imports_and_the_expected_exports() {
    let mut exported = Vec::new();
    sections(|payload| match payload {
        Payload::ImportSection(imports) => assert_eq!(imports.count(), 0, "the guest imports something"),
        Payload::StartSection { .. } => panic!("the guest has a start function"),
        Payload::ExportSection(exports) => {
            exported.extend(exports.into_iter().map(|export| export.unwrap().name.to_owned()));
        }
        _ => {}
    });
    exported.sort();
    assert_eq!(
        exported,
        ["alloc", "call", "fuel", "list_steps", "load", "memory", "running_slot", "stack_pointer", "trap_report"]
    );
}

/// SBX-061: one memory, and one table that cannot grow.
#[test]
fn the_guest_has_one_memory_and_a_fixed_table() {
    let (mut memories, mut tables) = (0, 0);
    sections(|payload| match payload {
        Payload::MemorySection(section) => memories += section.count(),
        Payload::TableSection(section) => {
            for table in section {
                let table = table.unwrap().ty;
                assert!(table.maximum == Some(table.initial) && table.initial <= 10_000, "{table:?}");
                tables += 1;
            }
        }
        _ => {}
    });
    assert_eq!((memories, tables), (1, 1));
}

/// SBX-052: the guest contains no paths of the build machine.
#[test]
fn the_guest_holds_no_paths() {
    let wasm = std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("guest.wasm")).unwrap();
    for needle in [&b"/home/"[..], b"/root/", b"/tmp/"] {
        assert!(!wasm.windows(needle.len()).any(|window| window == needle), "{}", String::from_utf8_lossy(needle));
    }
}

/// SBX-005: the same on another engine.
#[test]
fn fuel_is_the_same_on_every_engine() {
    let text =
        "var s = 0; for (var i = 0; i < 1000; i++) s += Math.sqrt(i); return { s: s, t: [1, 2, 3].map(String) };";
    let fuels = [(); 3].map(|()| {
        let mut hostile = HostileHarness::new();
        let functions = hostile.harness.load(&super::sources(Slot::Decoder, text));
        (functions.load_fuel(), hostile.run(Slot::Decoder, &functions, 1).fuel)
    });
    assert!(fuels.iter().all(|fuel| *fuel == fuels[0]), "{fuels:?}");
    let _: &Engine = &HostileHarness::new().harness.engine;
}
