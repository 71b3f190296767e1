//! The compiled guest on disk.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use airlock_runtime::{Engine, Settings, Slot};

use crate::rig::{Rig, settings};

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
