//! A disk that a test can fill.

use std::{fs, io::Write, path::Path, process::Command};

/// A small disk in memory.
pub struct SmallDisk {
    dir: tempfile::TempDir,
    bytes: usize,
}

impl SmallDisk {
    /// Mounts an empty disk of 1 MiB; `None` when this user may not mount disks, and the test is skipped.
    pub fn mount() -> Option<Self> {
        Self::of_size(1 << 20)
    }

    /// The same with a disk of this many bytes.
    pub fn of_size(bytes: usize) -> Option<Self> {
        let dir = tempfile::tempdir().unwrap();
        let mut mount = Command::new("mount");
        let size = format!("size={bytes}");
        let mount = mount.args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(dir.path()).output();
        if mount.is_ok_and(|output| output.status.success()) {
            return Some(Self { dir, bytes });
        }
        // Even where no other test may be skipped: containers seldom permit it. Written past the runner's capture.
        let text = b"skipped: no disk to fill; run the test as root where `mount` is permitted\n";
        std::io::stderr().write_all(text).unwrap();
        None
    }

    /// Where it is mounted.
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
        _ = Command::new("umount").arg("-l").arg(self.path()).status();
    }
}
