//! A disk that a test can fill.

use std::{fs, path::Path, process::Command};

/// A small disk in memory.
pub struct SmallDisk {
    dir: tempfile::TempDir,
    bytes: usize,
    /// Prefix of the commands for this disk.
    prefix: &'static [&'static str],
}

/// As root, or as a user who may become root without a password.
const PREFIXES: [&[&str]; 2] = [&[], &["sudo", "-n"]];

impl SmallDisk {
    /// Mounts an empty disk of 1 MiB; `None` when this user may not mount disks, and the test is skipped.
    pub fn mount() -> Option<Self> {
        Self::of_size(1 << 20)
    }

    /// Like [`Self::mount`], with a disk of this many bytes.
    pub fn of_size(bytes: usize) -> Option<Self> {
        let dir = tempfile::tempdir().unwrap();
        let options = format!("size={bytes},mode=1777");
        let is_mounted = |prefix: &&[&str]| run(prefix, &["mount", "-t", "tmpfs", "-o", &options, "tmpfs"], dir.path());
        let Some(prefix) = PREFIXES.into_iter().find(is_mounted) else {
            // Containers often forbid it, whatever is installed.
            crate::report_skipped("no disk to fill", "run the test as root where `mount` is permitted");
            return None;
        };
        Some(Self { dir, bytes, prefix })
    }

    /// Returns the directory at which it is mounted.
    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Leaves no free space.
    pub fn fill(&self) {
        // The disk is smaller, and full when this fails.
        fs::write(self.path().join("filler"), vec![0; self.bytes + 1]).unwrap_err();
    }

    /// Frees the space again.
    pub fn empty(&self) {
        fs::remove_file(self.path().join("filler")).unwrap();
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Lazily, because a file may still be open.
        run(self.prefix, &["umount", "-l"], self.path());
    }
}

/// Returns true if a command succeeds.
fn run(prefix: &[&str], command: &[&str], path: &Path) -> bool {
    let words = [prefix, command].concat();
    Command::new(words[0]).args(&words[1..]).arg(path).output().is_ok_and(|output| output.status.success())
}
