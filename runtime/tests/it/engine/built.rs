//! Checks that `guest.wasm` was built from its sources.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use airlock_runtime::{Engine, GUEST};
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

/// Compiling gives the same bytes on every x86-64 machine.
#[test]
#[cfg_attr(not(target_arch = "x86_64"), ignore = "the compiler is that of this processor")]
fn the_machine_code_is_that_of_the_guest() {
    let names = ["guest-x86_64.bin", "counting-guest-x86_64.bin"];
    for (name, compiled) in names.into_iter().zip(Engine::built_in_files(GUEST).unwrap()) {
        let committed = fs::read(crate_dir().join(name)).unwrap();
        assert!(
            committed == compiled,
            "{name} is not what the guest gives: run guest/build.sh and commit what it gives"
        );
    }
}

/// Runs `build.sh` where no compiler is found.
fn build_sh(argument: &str, target: &Path) -> Output {
    let tools = target.join("tools");
    fs::create_dir_all(&tools).unwrap();
    for tool in ["dirname", "sha256sum", "cut", "find", "sort", "xargs", "cat"] {
        let found = ["/usr/bin", "/bin"].map(|dir| Path::new(dir).join(tool)).into_iter().find(|path| path.exists());
        // It is there from the call before.
        _ = symlink(found.unwrap(), tools.join(tool));
    }
    let mut command = Command::new(crate_dir().join("guest/build.sh"));
    command.arg(argument).env("CARGO_TARGET_DIR", target).env("PATH", tools);
    command.output().unwrap()
}

/// `guest.wasm` and `guest.sums` can be changed together; what was built on this machine cannot be changed with them.
#[test]
fn a_guest_that_was_not_built_here_is_built_again() {
    let target = tempfile::tempdir().unwrap();
    assert!(!build_sh("--check-changed", target.path()).status.success(), "it has to be built");
    fs::copy(crate_dir().join("guest.sums"), target.path().join("checked")).unwrap();
    let checked = build_sh("--check-changed", target.path());
    assert!(checked.status.success(), "{checked:?}");
    let changed = fs::read_to_string(target.path().join("checked")).unwrap().replacen(['0', '1', '2', '3'], "4", 1);
    fs::write(target.path().join("checked"), changed).unwrap();
    assert!(!build_sh("--check-changed", target.path()).status.success(), "it has changed since");
    let check = fs::read_to_string(crate_dir().join("../check")).unwrap();
    let asks = |line: &str| line.trim_start().starts_with("step ") && line.contains("guest/build.sh --check-changed");
    assert!(check.lines().any(asks), "`check` asks for it");
}

#[test]
fn the_packages_that_build_the_guest_have_versions() {
    let packages = fs::read_to_string(crate_dir().join("guest/packages")).unwrap();
    let names: Vec<_> = packages.lines().filter_map(|line| line.split_once('=')).map(|(name, _)| name).collect();
    for name in ["rustc-web", "cargo-web", "rust-web-src", "clang-19", "lld-19", "llvm-19", "wasi-libc", "binaryen"] {
        assert!(names.contains(&name), "{name}");
    }
    assert!(packages.lines().all(|line| line.split_once('=').is_some_and(|(_, version)| !version.is_empty())));
}
