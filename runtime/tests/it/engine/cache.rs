//! The cache of the compiled guest and of loaded functions.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use airlock_runtime::{Engine, Functions, GUEST, Settings, Slot};

use crate::harness::{Harness, fields, settings, sources};

const TEXT: &str = "function Decoder(bytes) { return { sum: bytes[0] + bytes[1] }; }";

/// A section of a name alone, which changes nothing but the guest's hash.
const CUSTOM_SECTION: &[u8] = &[0, 2, 1, b'x'];

/// Starts an engine whose guest has no machine code that is built in.
fn start(dir: &Path) {
    let settings = Settings { cache_dir: Some(dir.to_owned()), ..settings() };
    let harness = Harness::of(Engine::with_guest(&settings, &[GUEST, CUSTOM_SECTION].concat()).unwrap());
    harness.load_in(Slot::Decoder, "function Decoder() { return {}; }");
}

/// The compiled guest in `dir`, and its inode number.
fn kept(dir: &Path) -> (PathBuf, u64) {
    let files: Vec<_> =
        fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_file()).collect();
    let [file] = files.as_slice() else { panic!("expected one file, got {files:?}") };
    (file.clone(), fs::metadata(file).unwrap().ino())
}

#[test]
fn the_compiled_guest_is_cached_and_used_only_if_intact() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().join("new/dir");
    start(&dir);
    let (file, first) = kept(&dir);
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);

    start(&dir);
    assert_eq!(kept(&dir), (file.clone(), first), "it is used, not written again");

    let good = fs::read(&file).unwrap();
    let mut bad = good.clone();
    bad[good.len() / 2] ^= 1;
    fs::write(&file, &bad).unwrap();
    start(&dir);
    assert_eq!(fs::read(&file).unwrap().len(), good.len());
    assert_ne!(fs::read(&file).unwrap(), bad, "a damaged one is replaced");

    fs::set_permissions(&file, Permissions::from_mode(0o620)).unwrap();
    let (_, writable) = kept(&dir);
    start(&dir);
    assert_ne!(kept(&dir).1, writable, "one that others could have written is replaced");
}

#[test]
#[cfg_attr(not(target_arch = "x86_64"), ignore = "no machine code is built in")]
fn no_start_compiles_the_built_in_guests() {
    let dir = tempfile::tempdir().unwrap();
    let settings = Settings { cache_dir: Some(dir.path().to_owned()), ..settings() };
    for engine in [Engine::new(&settings).unwrap(), Engine::profiling(&settings).unwrap()] {
        Harness::of(engine).load_in(Slot::Decoder, "function Decoder() { return {}; }");
    }
    let is_compiled = |path: &Path| path.extension().is_some_and(|extension| extension == "compiled");
    for dir in [dir.path(), &dir.path().join("profiling")] {
        assert!(fs::read_dir(dir).into_iter().flatten().all(|entry| !is_compiled(&entry.unwrap().path())), "{dir:?}");
    }
}

#[test]
fn works_without_a_writable_cache_directory() {
    let file = tempfile::NamedTempFile::new().unwrap();
    start(&file.path().join("below a file"));
}

#[test]
fn uncached_loads_read_the_cache_but_do_not_write_it() {
    let dir = tempfile::tempdir().unwrap();
    let (harness, _) = load(dir.path(), 1 << 20);
    let files = || fs::read_dir(dir.path().join("functions")).unwrap().count();
    let before = files();
    let once =
        |text: &str| harness.engine.load_uncached(&sources(Slot::Decoder, text), harness.engine.limits()).unwrap();
    assert_eq!(once(TEXT).fuel_spent(), 0);
    assert!(once("function Decoder() { return { only: 'tried' }; }").fuel_spent() > 0);
    assert_eq!(files(), before);
}

/// An engine that caches functions in `dir`, and the functions of `TEXT`.
fn load(dir: &Path, bytes_max: u64) -> (Harness, Functions) {
    let settings = Settings { cache_dir: Some(dir.to_owned()), cache_bytes_max: bytes_max, ..settings() };
    let harness = Harness::of(Engine::new(&settings).unwrap());
    let functions = harness.load_in(Slot::Decoder, TEXT);
    (harness, functions)
}

fn modules(dir: &Path) -> Vec<(PathBuf, u64)> {
    let paths = fs::read_dir(dir.join("functions")).unwrap().map(|entry| entry.unwrap().path());
    let modules = paths.filter(|path| path.extension().is_some_and(|extension| extension == "wasm"));
    modules.map(|path| (path.clone(), fs::metadata(path).unwrap().ino())).collect()
}

#[test]
fn cached_functions_outlive_the_engine() {
    let dir = tempfile::tempdir().unwrap();
    let (_, first) = load(dir.path(), 1 << 20);
    let kept = modules(dir.path());
    assert_eq!(kept.len(), 1);
    assert_eq!(fs::read(&kept[0].0).unwrap(), first.module_bytes());
    assert_eq!(fs::metadata(&kept[0].0).unwrap().permissions().mode() & 0o777, 0o600);
    let (mut harness, second) = load(dir.path(), 1 << 20);
    assert_eq!(modules(dir.path()), kept, "it is read, not written again");
    assert_eq!(second.module_bytes(), first.module_bytes());
    assert!(first.fuel_spent() > 0 && first.fuel_spent() == second.load_fuel());
    assert_eq!(second.fuel_spent(), 0, "nothing was evaluated");
    assert_eq!(fields(&harness.decode(&second, &[2, 3])), r#"{"sum":5}"#);
}

/// Ways to damage a cached file.
type Harm = fn(&Path);

#[test]
fn damaged_cached_functions_are_loaded_again() {
    let harms: [(&str, Harm); 6] = [
        ("a flipped bit", |file| {
            let mut bytes = fs::read(file).unwrap();
            bytes[100] ^= 1;
            fs::write(file, bytes).unwrap();
        }),
        ("cut off", |file| {
            let bytes = fs::read(file).unwrap();
            fs::write(file, &bytes[..bytes.len() / 2]).unwrap();
        }),
        ("empty", |file| fs::write(file, b"").unwrap()),
        // Longer than memory; must be refused without reading it.
        ("far too long", |file| File::create(file).unwrap().set_len(1 << 42).unwrap()),
        ("a new key", |file| fs::remove_file(file.with_file_name("key")).unwrap()),
        ("a key that others can read", |file| {
            fs::set_permissions(file.with_file_name("key"), Permissions::from_mode(0o640)).unwrap();
        }),
    ];
    let dir = tempfile::tempdir().unwrap();
    load(dir.path(), 1 << 20);
    for (harm, apply) in harms {
        let kept = modules(dir.path());
        apply(&kept[0].0);
        let (mut harness, functions) = load(dir.path(), 1 << 20);
        assert_eq!(fields(&harness.decode(&functions, &[2, 3])), r#"{"sum":5}"#, "{harm}");
        assert_eq!(fs::read(&kept[0].0).unwrap(), functions.module_bytes(), "{harm}");
    }
}

#[test]
fn refuses_cached_functions_under_another_name() {
    let dir = tempfile::tempdir().unwrap();
    let (harness, functions) = load(dir.path(), 1 << 20);
    let (place, _) = modules(dir.path())[0].clone();
    let evil = harness.load_in(Slot::Decoder, "function Decoder() { return { evil: true }; }");
    fs::write(&place, evil.module_bytes()).unwrap();
    let (mut harness, again) = load(dir.path(), 1 << 20);
    assert_eq!(fields(&harness.decode(&again, &[2, 3])), r#"{"sum":5}"#);
    assert_eq!(fs::read(&place).unwrap(), functions.module_bytes());
}

#[test]
fn the_cache_is_bounded_and_evicts_the_oldest() {
    let dir = tempfile::tempdir().unwrap();
    let (harness, first) = load(dir.path(), 40_000);
    let bytes = || modules(dir.path()).iter().map(|(path, _)| fs::metadata(path).unwrap().len()).sum::<u64>();
    let oldest = modules(dir.path())[0].0.clone();
    assert!(bytes() == first.module_bytes().len() as u64);
    for number in 0..40 {
        harness.load_in(Slot::Decoder, &format!("{TEXT} var n = {number};"));
        assert!(bytes() <= 40_000, "{} after {number}", bytes());
    }
    assert!(!oldest.exists() && modules(dir.path()).len() > 2);
}

#[test]
fn abandoned_temporary_files_are_removed_at_the_next_start() {
    let dir = tempfile::tempdir().unwrap();
    load(dir.path(), 1 << 20);
    let [abandoned, held] =
        [".airlock-aaaaaa.new", ".airlock-bbbbbb.new"].map(|name| dir.path().join("functions").join(name));
    fs::write(&abandoned, b"half").unwrap();
    let writer = File::create(&held).unwrap();
    writer.lock().unwrap();
    load(dir.path(), 1 << 20);
    assert!(!abandoned.exists() && held.exists(), "what a living process writes is left to it");
    drop(writer);
    load(dir.path(), 1 << 20);
    assert!(!held.exists());
    assert_eq!(modules(dir.path()).len(), 1);
}

#[test]
fn temporary_files_count_towards_the_cache_limit() {
    let dir = tempfile::tempdir().unwrap();
    load(dir.path(), 1 << 20);
    let held = dir.path().join("functions/.airlock-aaaaaa.new");
    let writer = File::create(&held).unwrap();
    writer.lock().unwrap();
    writer.set_len(1 << 20).unwrap();
    let (harness, _) = load(dir.path(), 1 << 20);
    harness.load_in(Slot::Decoder, "function Decoder() { return {}; }");
    assert_eq!(modules(dir.path()).len(), 1, "the one before had to go");
}
