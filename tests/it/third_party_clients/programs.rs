//! Scripts of this folder, with the packages that they need: from PyPI in a virtual environment, or from npm.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

/// A script that can be run.
pub(super) struct Program {
    interpreter: PathBuf,
    script: PathBuf,
    modules: PathBuf,
}

impl Program {
    /// A script in Python; none when it cannot be run here and nobody insists on it.
    pub(super) fn python(script: &str, packages: &[&str]) -> Option<Self> {
        let folder = folder(script);
        let interpreter = folder.join("bin/python");
        let install = |folder: &Path| {
            runs(Command::new("python3").args(["-m", "venv"]).arg(folder))
                && runs(Command::new(&interpreter).args(["-m", "pip", "install", "--quiet"]).args(packages))
        };
        prepared(script, &folder, "python3-venv", install).then(|| Self::new(interpreter.clone(), script, &folder))
    }

    /// A script for Node.js; none when it cannot be run here and nobody insists on it.
    pub(super) fn node(script: &str, packages: &[&str]) -> Option<Self> {
        let folder = folder(script);
        let install = |folder: &Path| {
            runs(Command::new("npm").args(["install", "--silent", "--prefix"]).arg(folder).args(packages))
        };
        prepared(script, &folder, "nodejs and npm", install).then(|| Self::new("node".into(), script, &folder))
    }

    pub(super) fn command(&self) -> Command {
        let mut command = Command::new(&self.interpreter);
        // Authlib refuses plain HTTP, even on this machine, unless it is told.
        command.env("NODE_PATH", &self.modules).env("AUTHLIB_INSECURE_TRANSPORT", "1").arg(&self.script);
        command
    }

    fn new(interpreter: PathBuf, script: &str, folder: &Path) -> Self {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/third_party_clients").join(script);
        Self { interpreter, script, modules: folder.join("node_modules") }
    }
}

/// Where the packages of a script are.
fn folder(script: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("strangers").join(script)
}

/// Installs the packages unless that was done; a mark says so only when it was done to the end.
fn prepared(script: &str, folder: &Path, needs: &str, install: impl Fn(&Path) -> bool) -> bool {
    let mark = folder.join("installed");
    if mark.exists() {
        return true;
    }
    std::fs::create_dir_all(folder).unwrap();
    if install(folder) {
        std::fs::write(mark, "").unwrap();
        return true;
    }
    let required = std::env::var_os("REQUIRE_SERVICES").is_some_and(|value| value == "1");
    assert!(!required, "{script} cannot be run: install {needs}, and let it reach its registry");
    println!("skipped: {script} cannot be run; install {needs} to test with it");
    false
}

fn runs(command: &mut Command) -> bool {
    command.output().is_ok_and(|output| output.status.success())
}
