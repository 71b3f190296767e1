//! Checks that `guest.wasm` was built from its sources.

use std::fs;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

fn crate_dir() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The source files of the guest, ordered by path.
fn sources() -> Vec<PathBuf> {
    let mut found = vec![PathBuf::from("src/contract/wire.rs"), PathBuf::from("src/contract/guest_limits.rs")];
    let mut dirs = vec![PathBuf::from("guest")];
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(crate_dir().join(&dir)).unwrap() {
            let entry = entry.unwrap();
            let path = dir.join(entry.file_name());
            match entry.file_type().unwrap().is_dir() {
                true if path.ends_with("target") => {}
                true => dirs.push(path),
                false if path.extension().is_some_and(|extension| extension == "md") => {}
                false => found.push(path),
            }
        }
    }
    found.sort_by(|a, b| a.as_os_str().cmp(b.as_os_str()));
    found
}

fn sum<'a>(files: impl IntoIterator<Item = &'a PathBuf>) -> String {
    let mut hasher = Sha256::new();
    for file in files {
        hasher.update(fs::read(crate_dir().join(file)).unwrap());
    }
    hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// This needs no Wasm toolchain, so it only compares hashes; `guest/build.sh --check` compares the bytes.
#[test]
fn the_committed_guest_matches_its_sources() {
    let written = fs::read_to_string(crate_dir().join("guest.sums")).unwrap();
    let found = format!("{} guest.wasm\n{} sources\n", sum([&PathBuf::from("guest.wasm")]), sum(&sources()));
    assert!(sources().len() > 20, "there are more sources than that");
    assert_eq!(written, found, "the guest has changed since it was built: run guest/build.sh and commit what it gives");
}
