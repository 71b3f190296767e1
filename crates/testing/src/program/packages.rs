//! Packages from PyPI and npm, for scripts that test Airlock from outside.

use std::{
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::Mutex,
    thread,
    time::Duration,
};

/// The file that lists the packages of a directory, written once all of them are installed.
const INSTALLED: &str = "installed";

/// Maximum time for a program to install packages, in seconds. A registry may accept a connection and then say nothing.
const INSTALL_SECONDS: &str = "180";
/// Maximum number of attempts to install.
const ATTEMPTS: u32 = 5;
/// Pause after a registry refused requests, times the number of the attempt.
const PAUSE: Duration = Duration::from_secs(10);

/// A Python virtual environment with packages from PyPI.
#[derive(Clone, Debug)]
pub struct Python {
    dir: PathBuf,
}

/// A directory with packages from npm.
#[derive(Clone, Debug)]
pub struct Node {
    dir: PathBuf,
}

impl Python {
    /// Installs packages into `dir` unless they are there; `None` when that fails and the test is skipped.
    pub fn install(dir: &Path, packages: &[&str]) -> Option<Self> {
        let python = Self { dir: dir.to_owned() };
        let install = || {
            let pip =
                ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--retries", "5", "--timeout", "30"];
            succeeds(bounded("python3").args(["-m", "venv"]).arg(dir))
                && succeeds(bounded(python.program("python")).args(pip).args(packages))
        };
        is_installed(dir, packages, "python3-venv", install).then_some(python)
    }

    /// The path of a program that came with a package, or of `python` itself.
    pub fn program(&self, name: &str) -> PathBuf {
        self.dir.join("bin").join(name)
    }

    /// Runs a script.
    pub fn command(&self, script: &Path) -> Command {
        let mut command = Command::new(self.program("python"));
        command.arg(script);
        command
    }
}

impl Node {
    /// Installs packages into `dir` unless they are there; `None` when that fails and the test is skipped.
    pub fn install(dir: &Path, packages: &[&str]) -> Option<Self> {
        let install = || {
            let npm = ["install", "--silent", "--no-audit", "--no-fund", "--no-update-notifier"];
            let patience = ["--fetch-retries=5", "--fetch-timeout=60000", "--prefix"];
            succeeds(bounded("npm").args(npm).args(patience).arg(dir).args(packages))
        };
        is_installed(dir, packages, "nodejs and npm", install).then(|| Self { dir: dir.to_owned() })
    }

    /// Runs a script.
    pub fn command(&self, script: &Path) -> Command {
        let mut command = Command::new("node");
        command.env("NODE_PATH", self.dir.join("node_modules")).arg(script);
        command
    }
}

#[expect(clippy::disallowed_methods, reason = "a registry does not announce when it is well again")]
fn is_installed(dir: &Path, packages: &[&str], needs: &str, install: impl Fn() -> bool) -> bool {
    if !crate::programs_may_run() {
        return false;
    }
    // Tests of one binary run at once and may want the same directory.
    static INSTALLING: Mutex<()> = Mutex::new(());
    let _only_one = INSTALLING.lock();
    let (list, packages) = (dir.join(INSTALLED), packages.join("\n"));
    if fs::read_to_string(&list).is_ok_and(|installed| installed == packages) {
        return true;
    }
    fs::create_dir_all(dir).unwrap();
    let try_install = |attempt| {
        thread::sleep(PAUSE * attempt);
        install()
    };
    if (0..ATTEMPTS).any(try_install) {
        fs::write(list, packages).unwrap();
        return true;
    }
    let missing = format!("{} cannot be installed", packages.replace('\n', ", "));
    crate::skip(&missing, &format!("install {needs}, and let it reach its registry"));
    false
}

/// A program that is ended after `INSTALL_SECONDS`.
fn bounded(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new("timeout");
    command.args(["--kill-after=5", INSTALL_SECONDS]).arg(program);
    command
}

fn succeeds(command: &mut Command) -> bool {
    command.output().is_ok_and(|output| output.status.success())
}
