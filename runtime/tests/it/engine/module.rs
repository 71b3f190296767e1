//! Loaded functions as data-only Wasm modules: any tool can read them, and only authentic and intact ones are used.

use std::sync::Arc;

use airlock_runtime::{Engine, Limits, ModuleError, Settings, Slot, check_module};
use proptest::prelude::*;
use wasmparser::{Parser, Payload, Validator};

use crate::harness::{Harness, fields, settings};

const TEXT: &str = "var table = [1, 2, 3].map(String); function Decoder(bytes) { return { t: table[bytes[0]] }; }";

fn module() -> Vec<u8> {
    Harness::new().load_in(Slot::Decoder, TEXT).module_bytes().to_vec()
}

/// An engine that shares its key with others through the cache directory.
fn sharing(dir: &tempfile::TempDir) -> Harness {
    Harness::of(
        Engine::new(&Settings { cache_dir: Some(dir.path().into()), cache_bytes_max: 1 << 20, ..settings() }).unwrap(),
    )
}

#[test]
fn a_module_is_valid_and_contains_only_data() {
    let module = module();
    Validator::new().validate_all(&module).unwrap();
    let sections: Vec<String> = Parser::new(0)
        .parse_all(&module)
        .filter_map(|payload| match payload.unwrap() {
            Payload::MemorySection(_) => Some("memory".into()),
            Payload::DataSection(data) => {
                assert!(data.count() > 50);
                Some("data".into())
            }
            Payload::CustomSection(custom) => Some(custom.name().into()),
            Payload::Version { .. } | Payload::End(_) => None,
            other => Some(format!("{other:?}")),
        })
        .collect();
    assert_eq!(sections, ["memory", "data", "airlock", "airlock.mac"]);
}

#[test]
fn a_module_read_back_behaves_like_the_original() {
    let dir = tempfile::tempdir().unwrap();
    let (mut one, mut other) = (sharing(&dir), sharing(&dir));
    let written = one.load_in(Slot::Decoder, TEXT);
    let read = other.engine.read(written.module_bytes(), other.engine.limits()).unwrap();
    assert!(read.module_bytes() == written.module_bytes());
    assert_eq!((read.hash(), read.load_fuel()), (written.hash(), written.load_fuel()));
    assert!(Slot::ALL.iter().all(|slot| read.dialect(*slot) == written.dialect(*slot)));
    let (one, other) = (one.decode(&written, &[2]), other.decode(&read, &[2]));
    assert_eq!(fields(&one), r#"{"t":"3"}"#);
    assert_eq!((fields(&one), one.fuel), (fields(&other), other.fuel));
    assert_eq!(sharing(&dir).sandbox.next_memory(&written), sharing(&dir).sandbox.next_memory(&read));
}

#[test]
fn equal_sources_and_limits_give_equal_modules() {
    let dir = tempfile::tempdir().unwrap();
    let load = |limits: &Arc<Limits>| {
        let sources = crate::harness::sources(Slot::Decoder, TEXT);
        sharing(&dir).engine.load(&sources, limits).unwrap()
    };
    let limits = Arc::new(settings().limits);
    let first = load(&limits);
    assert!(first.module_bytes() == load(&limits).module_bytes());
    let others = Arc::new(Limits { heap_bytes_max: 5 << 20, ..settings().limits });
    assert_ne!(first.hash(), load(&others).hash());
}

#[test]
fn refuses_a_module_with_another_key() {
    let harness = Harness::new();
    assert_eq!(harness.engine.read(&module(), harness.engine.limits()).unwrap_err(), ModuleError::Unauthentic);
}

#[test]
fn refuses_a_module_beyond_the_limits() {
    let harness = Harness::new();
    let module = harness.load_in(Slot::Decoder, TEXT).module_bytes().to_vec();
    let refused = |change: fn(&mut Limits)| {
        let mut limits = settings().limits;
        change(&mut limits);
        harness.engine.read(&module, &Arc::new(limits)).unwrap_err()
    };
    assert!(harness.engine.read(&module, harness.engine.limits()).is_ok());
    for (change, bytes_max) in [
        ((|limits| limits.kept_bytes_max = 500) as fn(&mut Limits), 1000),
        (|limits| limits.kept_bytes_max = 20_000, 20_000),
        (|limits| limits.memory_bytes_max = 1 << 20, 1 << 20),
    ] {
        let error = refused(change);
        assert!(matches!(error, ModuleError::TooLarge { bytes_max: max, .. } if max == bytes_max), "{error}");
    }
}

/// Asserts why a changed module is refused; does not verify the seal.
fn check_damaged(change: impl FnOnce(&mut Vec<u8>), reason: &str) {
    let mut module = module();
    change(&mut module);
    let error = check_module(&module).unwrap_err().to_string();
    assert!(error.contains(reason), "{error}, expected {reason}");
}

/// The offset of the data section: after the header and a memory of up to 127 Wasm pages.
const DATA: usize = 8 + 5;

#[test]
fn refuses_a_damaged_module_even_with_a_valid_seal() {
    assert!(check_module(&module()).is_ok());
    assert_eq!(module()[DATA], 11);
    check_damaged(Vec::clear, "does not end in a seal");
    check_damaged(|module| module.truncate(60), "does not end in a seal");
    check_damaged(|module| _ = module.pop(), "does not end in a seal");
    check_damaged(|module| module[0] = 1, "no Wasm module");
    check_damaged(|module| module[DATA + 1] ^= 1, "damaged");
    check_damaged(|module| drop(module.drain(8..DATA)), "data before its memory");
    check_damaged(|module| module[DATA - 1] = 1, "out of bounds");
    check_damaged(|module| module[DATA - 2] = 4, "another kind");
    check_damaged(
        |module| {
            let memory = module[8..DATA].to_vec();
            module.splice(DATA..DATA, memory);
        },
        "no Wasm module",
    );
    check_damaged(|module| replace(module, b"\x07airlock", b"\x07airloc_"), "must not have");
    check_damaged(|module| replace(module, b"\x07airlock\x01", b"\x07airlock\x02"), "metadata is malformed");
}

fn replace(module: &mut [u8], old: &[u8], new: &[u8]) {
    let place = module.windows(old.len()).position(|window| window == old).unwrap();
    module[place..place + new.len()].copy_from_slice(new);
}

#[test]
fn every_flipped_bit_breaks_the_seal() {
    let harness = Harness::new();
    let module = harness.load_in(Slot::Decoder, TEXT).module_bytes().to_vec();
    for place in (0..module.len()).step_by(module.len() / 97).chain([module.len() - 1]) {
        let mut flipped = module.clone();
        flipped[place] ^= 1;
        let error = harness.engine.read(&flipped, harness.engine.limits()).unwrap_err();
        assert!(matches!(error, ModuleError::Unauthentic | ModuleError::Damaged(_)), "{place}: {error}");
    }
}

proptest! {
    #[test]
    fn reading_arbitrary_bytes_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = check_module(&bytes);
    }
}

#[test]
fn reading_a_corrupted_module_never_panics() {
    let good = module();
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    runner
        .run(&(0..good.len(), any::<u8>(), 0..good.len()), |(place, byte, cut)| {
            let mut bytes = good.clone();
            bytes[place] = byte;
            let _ = check_module(&bytes);
            let _ = check_module(&bytes[..cut]);
            Ok(())
        })
        .unwrap();
}
