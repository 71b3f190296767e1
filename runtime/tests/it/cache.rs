//! The compiled guest and loaded functions on disk.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use airlock_runtime::{Engine, Functions, Settings, Slot};

use crate::rig::{Rig, fields, settings, sources};

const TEXT: &str = "function Decoder(bytes) { return { sum: bytes[0] + bytes[1] }; }";

fn start(dir: &Path) -> Rig {
    let rig = Rig::of(Engine::new(&Settings { cache_dir: Some(dir.to_owned()), ..settings() }).unwrap());
    rig.load_in(Slot::Decoder, "function Decoder() { return {}; }");
    rig
}

/// The compiled guest in `dir`, and the number that tells it from another of the same name.
fn kept(dir: &Path) -> (PathBuf, u64) {
    let files: Vec<_> =
        fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_file()).collect();
    let [file] = files.as_slice() else { panic!("expected one file, got {files:?}") };
    (file.clone(), fs::metadata(file).unwrap().ino())
}

#[test]
fn the_compiled_guest_is_kept_and_trusted_only_unharmed() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().join("new/folder");
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
fn a_folder_that_cannot_be_written_stops_nothing() {
    let file = tempfile::NamedTempFile::new().unwrap();
    start(&file.path().join("below a file"));
}

#[test]
fn what_is_only_tried_is_read_from_disk_and_not_written_there() {
    let dir = tempfile::tempdir().unwrap();
    let (rig, _) = load(dir.path(), 1 << 20);
    let files = || fs::read_dir(dir.path().join("functions")).unwrap().count();
    let before = files();
    let once = |text: &str| rig.engine.load_uncached(&sources(Slot::Decoder, text), rig.engine.limits()).unwrap();
    assert_eq!(once(TEXT).fuel_spent(), 0);
    assert!(once("function Decoder() { return { only: 'tried' }; }").fuel_spent() > 0);
    assert_eq!(files(), before);
}

/// An engine that keeps functions in `dir`, and what it makes of `TEXT`.
fn load(dir: &Path, bytes_max: u64) -> (Rig, Functions) {
    let settings = Settings { cache_dir: Some(dir.to_owned()), cache_bytes_max: bytes_max, ..settings() };
    let rig = Rig::of(Engine::new(&settings).unwrap());
    let functions = rig.load_in(Slot::Decoder, TEXT);
    (rig, functions)
}

/// The kept function sets, with the number that tells each from another of the same name.
fn modules(dir: &Path) -> Vec<(PathBuf, u64)> {
    let paths = fs::read_dir(dir.join("functions")).unwrap().map(|entry| entry.unwrap().path());
    let modules = paths.filter(|path| path.extension().is_some_and(|extension| extension == "wasm"));
    modules.map(|path| (path.clone(), fs::metadata(path).unwrap().ino())).collect()
}

#[test]
fn loaded_functions_outlive_the_engine() {
    let dir = tempfile::tempdir().unwrap();
    let (_, first) = load(dir.path(), 1 << 20);
    let kept = modules(dir.path());
    assert_eq!(kept.len(), 1);
    assert_eq!(fs::read(&kept[0].0).unwrap(), first.module_bytes());
    assert_eq!(fs::metadata(&kept[0].0).unwrap().permissions().mode() & 0o777, 0o600);
    let (mut rig, second) = load(dir.path(), 1 << 20);
    assert_eq!(modules(dir.path()), kept, "it is read, not written again");
    assert_eq!(second.module_bytes(), first.module_bytes());
    assert!(first.fuel_spent() > 0 && first.fuel_spent() == second.load_fuel());
    assert_eq!(second.fuel_spent(), 0, "nothing was evaluated");
    assert_eq!(fields(&rig.decode(&second, &[2, 3])), r#"{"sum":5}"#);
}

/// What is done to the file of a function set.
type Harm = fn(&Path);

#[test]
fn kept_functions_that_were_harmed_are_loaded_anew() {
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
        // Longer than memory: it is not read to find that out.
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
        let (mut rig, functions) = load(dir.path(), 1 << 20);
        assert_eq!(fields(&rig.decode(&functions, &[2, 3])), r#"{"sum":5}"#, "{harm}");
        assert_eq!(fs::read(&kept[0].0).unwrap(), functions.module_bytes(), "{harm}");
    }
}

#[test]
fn functions_under_the_name_of_others_are_not_taken_for_them() {
    let dir = tempfile::tempdir().unwrap();
    let (rig, functions) = load(dir.path(), 1 << 20);
    let (place, _) = modules(dir.path())[0].clone();
    let evil = rig.load_in(Slot::Decoder, "function Decoder() { return { evil: true }; }");
    fs::write(&place, evil.module_bytes()).unwrap();
    let (mut rig, again) = load(dir.path(), 1 << 20);
    assert_eq!(fields(&rig.decode(&again, &[2, 3])), r#"{"sum":5}"#);
    assert_eq!(fs::read(&place).unwrap(), functions.module_bytes());
}

#[test]
fn kept_functions_have_a_bound_and_the_oldest_go_first() {
    let dir = tempfile::tempdir().unwrap();
    let (rig, first) = load(dir.path(), 40_000);
    let bytes = || modules(dir.path()).iter().map(|(path, _)| fs::metadata(path).unwrap().len()).sum::<u64>();
    let oldest = modules(dir.path())[0].0.clone();
    assert!(bytes() == first.module_bytes().len() as u64);
    for number in 0..40 {
        rig.load_in(Slot::Decoder, &format!("{TEXT} var n = {number};"));
        assert!(bytes() <= 40_000, "{} after {number}", bytes());
    }
    assert!(!oldest.exists() && modules(dir.path()).len() > 2);
}

#[test]
fn what_a_process_was_writing_when_it_ended_is_removed_at_the_next_start() {
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
fn what_is_being_written_counts_towards_the_bound() {
    let dir = tempfile::tempdir().unwrap();
    load(dir.path(), 1 << 20);
    let held = dir.path().join("functions/.airlock-aaaaaa.new");
    let writer = File::create(&held).unwrap();
    writer.lock().unwrap();
    writer.set_len(1 << 20).unwrap();
    let (rig, _) = load(dir.path(), 1 << 20);
    rig.load_in(Slot::Decoder, "function Decoder() { return {}; }");
    assert_eq!(modules(dir.path()).len(), 1, "the one before had to go");
}
