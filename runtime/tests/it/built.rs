//! Whether `guest.wasm` was built from the sources beside it.

use std::fs;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

/// The folder of this crate, from which all paths count.
fn home() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The files that the guest is built from, in the order of their paths.
fn sources() -> Vec<PathBuf> {
    let mut found = vec![PathBuf::from("src/contract/wire.rs"), PathBuf::from("src/contract/guest_limits.rs")];
    let mut folders = vec![PathBuf::from("guest")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(home().join(&folder)).unwrap() {
            let entry = entry.unwrap();
            let path = folder.join(entry.file_name());
            match entry.file_type().unwrap().is_dir() {
                true if path.ends_with("target") => {}
                true => folders.push(path),
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
        hasher.update(fs::read(home().join(file)).unwrap());
    }
    hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// That takes no Wasm toolchain, so it cannot tell whether the build was honest: `guest/build.sh --check` can.
#[test]
fn the_guest_was_built_from_its_sources() {
    let written = fs::read_to_string(home().join("guest.sums")).unwrap();
    let found = format!("{} guest.wasm\n{} sources\n", sum([&PathBuf::from("guest.wasm")]), sum(&sources()));
    assert!(sources().len() > 20, "there are more sources than that");
    assert_eq!(written, found, "the guest has changed since it was built: run guest/build.sh and commit what it gives");
}
