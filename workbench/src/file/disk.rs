//! Files on disk.

use std::{
    fs::{self, File},
    io::{self, Read, Write as _},
    os::unix::fs::FileTypeExt as _,
    path::Path,
};

use rustix::{
    fs::{CWD, Mode, OFlags, openat},
    io::Errno,
};

use super::{Entry, Files, SCRIPT_BYTES_MAX, directory_of, is_stdin, read_text};

/// Opening does not follow symbolic links, and does not block on a pipe that has no writer.
const FLAGS: OFlags = OFlags::NONBLOCK.union(OFlags::NOFOLLOW).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

/// The files of this machine.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Disk;

impl Files for Disk {
    fn entries(&self, dir: &Path) -> io::Result<Vec<Entry>> {
        let mut entries = Vec::new();
        for entry in fs::read_dir(dir)? {
            let entry = entry?;
            let Ok(kind) = entry.file_type() else { continue };
            if kind.is_dir() || kind.is_file() {
                entries.push(Entry { name: entry.file_name(), is_dir: kind.is_dir() });
            }
        }
        Ok(entries)
    }

    fn is_dir(&self, path: &Path) -> bool {
        path.is_dir()
    }

    fn open_within(&self, directory: &Path, name: &Path) -> io::Result<Box<dyn Read>> {
        let (directory, path) = (directory.canonicalize()?, directory.join(name).canonicalize()?);
        let Ok(below) = path.strip_prefix(&directory) else {
            return Err(io::Error::other("it is outside the directory of the file that names it"));
        };
        let file = open_below(&directory, below)?;
        if file.metadata()?.is_file() { Ok(Box::new(file)) } else { Err(not_regular()) }
    }
}

/// Reads a script given on the command line; `-` is standard input.
pub fn read_script(path: &Path) -> io::Result<String> {
    match is_stdin(path) {
        true => read_text(io::stdin(), SCRIPT_BYTES_MAX),
        false => read_file(path, SCRIPT_BYTES_MAX),
    }
}

/// Reads a text file given on the command line, of at most `bytes_max`.
pub(crate) fn read_file(path: &Path, bytes_max: u64) -> io::Result<String> {
    File::open(path).and_then(|file| read_text(file, bytes_max))
}

/// Opens a file or pipe given on the command line; a device may never end.
pub(crate) fn open_stream(path: &Path) -> io::Result<File> {
    let file = File::open(path)?;
    let kind = file.metadata()?.file_type();
    match kind.is_file() || kind.is_fifo() {
        true => Ok(file),
        false => Err(io::Error::other("it is neither a file nor a pipe")),
    }
}

/// Writes a new file in place of the old one, so that nothing is lost if that fails; a link is replaced, not followed.
pub(crate) fn replace(path: &Path, text: &str) -> io::Result<()> {
    let mut file = tempfile::NamedTempFile::new_in(directory_of(path))?;
    file.write_all(text.as_bytes())?;
    fs::set_permissions(file.path(), fs::metadata(path)?.permissions())?;
    file.persist(path).map(drop).map_err(|error| error.error)
}

/// Opens `directory`, then each component of `below` relative to the one before. No symbolic link is followed, so a
/// component that was replaced by one after the path was resolved fails.
fn open_below(directory: &Path, below: &Path) -> io::Result<File> {
    let mut file = openat(CWD, directory, FLAGS, Mode::empty())?;
    for component in below.components() {
        file = openat(&file, component.as_os_str(), FLAGS, Mode::empty()).map_err(|error| match error {
            // The error for sockets.
            Errno::NXIO => not_regular(),
            error => error.into(),
        })?;
    }
    Ok(file.into())
}

fn not_regular() -> io::Error {
    io::Error::other("it is not a regular file")
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        os::unix::{fs::symlink, net::UnixListener},
    };

    use rustix::fs::mkfifoat;

    use super::*;

    #[test]
    fn reads_only_regular_files_within_the_directory() {
        let outside = tempfile::tempdir().unwrap();
        let dir = outside.path().join("codecs");
        fs::create_dir_all(dir.join("vendor")).unwrap();
        for name in ["codecs/near.js", "codecs/vendor/below.js", "secret.js"] {
            fs::write(outside.path().join(name), name).unwrap();
        }
        symlink("vendor/below.js", dir.join("inward.js")).unwrap();
        symlink("../secret.js", dir.join("outward.js")).unwrap();
        symlink("..", dir.join("up")).unwrap();
        let _socket = UnixListener::bind(dir.join("socket.js")).unwrap();
        mkfifoat(CWD, dir.join("pipe.js"), Mode::RUSR).unwrap();
        let absolute = outside.path().join("secret.js");
        for name in ["near.js", "./near.js", "vendor/below.js", "vendor/../near.js", "inward.js"] {
            assert!(Disk.read_within(&dir, Path::new(name), SCRIPT_BYTES_MAX).unwrap().ends_with(".js"), "{name}");
        }
        for (name, reason) in [
            ("../secret.js", "outside the directory"),
            ("../../../../../../../../etc/passwd", "outside the directory"),
            ("outward.js", "outside the directory"),
            ("up/secret.js", "outside the directory"),
            (absolute.to_str().unwrap(), "outside the directory"),
            ("/dev/zero", "outside the directory"),
            ("socket.js", "not a regular file"),
            ("pipe.js", "not a regular file"),
            ("vendor", "not a regular file"),
            (".", "not a regular file"),
            ("missing.js", "No such file"),
        ] {
            let error = Disk.read_within(&dir, Path::new(name), SCRIPT_BYTES_MAX).unwrap_err().to_string();
            assert!(error.contains(reason), "{name}: {error}");
        }
    }

    #[test]
    fn follows_no_link_that_appears_after_the_path_was_resolved() {
        let outside = tempfile::tempdir().unwrap();
        let dir = outside.path().join("codecs");
        fs::create_dir_all(dir.join("vendor")).unwrap();
        fs::write(dir.join("vendor/below.js"), "below").unwrap();
        fs::write(outside.path().join("below.js"), "secret").unwrap();
        let opened =
            |below: &str| open_below(&dir, Path::new(below)).and_then(|file| read_text(file, SCRIPT_BYTES_MAX));
        assert_eq!(opened("vendor/below.js").unwrap(), "below");
        symlink("..", dir.join("up")).unwrap();
        symlink("../below.js", dir.join("below.js")).unwrap();
        for below in ["up/below.js", "below.js"] {
            assert!(fs::read_to_string(dir.join(below)).unwrap() == "secret");
            opened(below).unwrap_err();
        }
    }

    #[test]
    fn limits_scripts_to_utf_8_and_one_mebibyte() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.js");
        let (blanks, too_long) = (SCRIPT_BYTES_MAX as usize, "it has more than 1048576 bytes");
        for (blanks, end, reason) in [
            (blanks, "", None),
            (blanks, " ", Some(too_long)),
            (blanks - 2, "é", None),
            (blanks - 1, "é", Some(too_long)),
            (blanks, "é", Some(too_long)),
        ] {
            fs::write(&path, " ".repeat(blanks) + end).unwrap();
            let told = read_script(&path).err().map(|error| error.to_string());
            assert_eq!(told.as_deref(), reason, "{blanks} {end}");
        }
        fs::write(&path, [0xff, 0xfe]).unwrap();
        assert_eq!(read_script(&path).unwrap_err().to_string(), "it is not UTF-8");
    }
}
