//! Passes the commit that a release is built from to the compiler. Development builds do without: they would be built
//! again for every commit.

#![expect(clippy::disallowed_methods, reason = "Cargo passes settings to build scripts in the environment")]

use std::{env, process::Command};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=AIRLOCK_COMMIT");
    let is_release = env::var("PROFILE").as_deref() == Ok("release");
    if is_release && let Some(head) = git(&["rev-parse", "--git-path", "logs/HEAD"]) {
        println!("cargo::rerun-if-changed={head}");
    }
    // Packages are built without the history, and say themselves what they are built from.
    let find = |name: &str, format: &str| {
        let value = env::var(name).ok().or_else(|| is_release.then(|| git(&["log", "-1", format])).flatten())?;
        println!("cargo::rustc-env={name}={value}");
        Some(value)
    };
    let mut version = env::var("CARGO_PKG_VERSION").unwrap_or_default();
    if let (Some(commit), Some(date)) =
        (find("AIRLOCK_COMMIT", "--format=%h"), find("AIRLOCK_COMMIT_DATE", "--format=%cs"))
    {
        version += &format!(" ({commit} {date})");
    }
    println!("cargo::rustc-env=AIRLOCK_VERSION={version}");
}

/// The output of Git; `None` without Git, or outside a repository.
fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned()).filter(|text| !text.is_empty())
}
