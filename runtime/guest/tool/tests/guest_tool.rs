//! The guest as committed passes the tool's own checks. `build.sh` names this target, so that the tool is built with the
//! features that the tests turn on, and shares what they are built on.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::process::Command;

fn check(guest: &str) -> std::process::Output {
    Command::new(env!("CARGO_BIN_EXE_airlock-guest-tool")).args(["check", guest]).output().unwrap()
}

#[test]
fn the_committed_guest_is_fit_to_be_run() {
    let checked = check(concat!(env!("CARGO_MANIFEST_DIR"), "/../../guest.wasm"));
    assert!(checked.status.success(), "{checked:?}");
}

#[test]
fn what_is_no_guest_is_refused() {
    let checked = check(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"));
    assert!(!checked.status.success(), "{checked:?}");
    assert!(String::from_utf8_lossy(&checked.stderr).contains("is not fit to be run"), "{checked:?}");
}
