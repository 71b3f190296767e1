//! Reads function texts: from a file that somebody typed, or from one that a record names.

use std::{
    fs::File,
    io::{self, Read},
    path::Path,
};

use anyhow::Context;
use rustix::{
    fs::{CWD, Mode, OFlags, openat},
    io::Errno,
};

/// Longest script in a file of its own, in bytes; what the sandbox accepts is less.
const SCRIPT_BYTES_MAX: u64 = 1 << 20;
/// Opening waits for nobody, as it would for a pipe that nobody writes into, and follows no link.
const FLAGS: OFlags = OFlags::NONBLOCK.union(OFlags::NOFOLLOW).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

/// Whether somebody who types `path` means standard input.
pub(crate) fn is_input(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Reads a script from the file that somebody typed; `-` is standard input.
pub(crate) fn read(path: &Path) -> anyhow::Result<String> {
    match is_input(path) {
        true => text(io::stdin()).context("cannot read standard input"),
        false => File::open(path).and_then(text).with_context(|| format!("cannot read {}", path.display())),
    }
}

/// Reads a script from a file in `folder` or below, and from no other: whoever wrote the record may be a stranger.
pub(crate) fn read_within(folder: &Path, name: &Path) -> io::Result<String> {
    let (folder, path) = (folder.canonicalize()?, folder.join(name).canonicalize()?);
    let Ok(below) = path.strip_prefix(&folder) else {
        return Err(io::Error::other("it is outside the folder of the file that names it"));
    };
    let file = open_below(&folder, below)?;
    match file.metadata()?.is_file() {
        true => text(file),
        false => Err(not_regular()),
    }
}

/// Opens `folder`, then each component of `below` in what was opened before. No link is followed, so what became one
/// since the path was looked at leads nowhere.
fn open_below(folder: &Path, below: &Path) -> io::Result<File> {
    let mut file = openat(CWD, folder, FLAGS, Mode::empty())?;
    for component in below.components() {
        file = openat(&file, component.as_os_str(), FLAGS, Mode::empty()).map_err(|error| match error {
            // A socket, which cannot be opened at all.
            Errno::NXIO => not_regular(),
            error => error.into(),
        })?;
    }
    Ok(file.into())
}

fn not_regular() -> io::Error {
    io::Error::other("it is not a regular file")
}

fn text(file: impl Read) -> io::Result<String> {
    let mut bytes = Vec::new();
    file.take(SCRIPT_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    // First, because the bound may lie inside a character.
    if bytes.len() as u64 > SCRIPT_BYTES_MAX {
        return Err(io::Error::other(format!("it has more than {SCRIPT_BYTES_MAX} bytes")));
    }
    String::from_utf8(bytes).map_err(|_| io::Error::other("it is not UTF-8"))
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
    fn records_read_regular_files_of_their_folder_and_nothing_else() {
        let outside = tempfile::tempdir().unwrap();
        let folder = outside.path().join("codecs");
        fs::create_dir_all(folder.join("vendor")).unwrap();
        for name in ["codecs/near.js", "codecs/vendor/below.js", "secret.js"] {
            fs::write(outside.path().join(name), name).unwrap();
        }
        symlink("vendor/below.js", folder.join("inward.js")).unwrap();
        symlink("../secret.js", folder.join("outward.js")).unwrap();
        symlink("..", folder.join("up")).unwrap();
        let _socket = UnixListener::bind(folder.join("socket.js")).unwrap();
        mkfifoat(CWD, folder.join("pipe.js"), Mode::RUSR).unwrap();
        let absolute = outside.path().join("secret.js");
        for name in ["near.js", "./near.js", "vendor/below.js", "vendor/../near.js", "inward.js"] {
            assert!(read_within(&folder, Path::new(name)).unwrap().ends_with(".js"), "{name}");
        }
        for (name, reason) in [
            ("../secret.js", "outside the folder"),
            ("../../../../../../../../etc/passwd", "outside the folder"),
            ("outward.js", "outside the folder"),
            ("up/secret.js", "outside the folder"),
            (absolute.to_str().unwrap(), "outside the folder"),
            ("/dev/zero", "outside the folder"),
            ("socket.js", "not a regular file"),
            ("pipe.js", "not a regular file"),
            ("vendor", "not a regular file"),
            (".", "not a regular file"),
            ("missing.js", "No such file"),
        ] {
            let error = read_within(&folder, Path::new(name)).unwrap_err().to_string();
            assert!(error.contains(reason), "{name}: {error}");
        }
    }

    #[test]
    fn what_became_a_link_after_it_was_looked_at_is_not_followed() {
        let outside = tempfile::tempdir().unwrap();
        let folder = outside.path().join("codecs");
        fs::create_dir_all(folder.join("vendor")).unwrap();
        fs::write(folder.join("vendor/below.js"), "below").unwrap();
        fs::write(outside.path().join("below.js"), "secret").unwrap();
        let opened = |below: &str| open_below(&folder, Path::new(below)).and_then(text);
        assert_eq!(opened("vendor/below.js").unwrap(), "below");
        symlink("..", folder.join("up")).unwrap();
        symlink("../below.js", folder.join("below.js")).unwrap();
        for below in ["up/below.js", "below.js"] {
            assert!(fs::read_to_string(folder.join(below)).unwrap() == "secret");
            opened(below).unwrap_err();
        }
    }

    #[test]
    fn scripts_are_utf_8_and_have_a_largest_size() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.js");
        let (blanks, too_long) = (SCRIPT_BYTES_MAX as usize, "it has more than 1048576 bytes");
        for (blanks, end, reason) in [
            (blanks, "", None),
            (blanks, " ", Some(too_long)),
            (blanks - 2, "é", None),
            (blanks - 1, "é", Some(too_long)),
            (blanks, "é", Some(too_long)),
        ] {
            fs::write(&path, " ".repeat(blanks) + end).unwrap();
            let told = read(&path).err().map(|error| error.root_cause().to_string());
            assert_eq!(told.as_deref(), reason, "{blanks} {end}");
        }
        fs::write(&path, [0xff, 0xfe]).unwrap();
        assert_eq!(read(&path).unwrap_err().root_cause().to_string(), "it is not UTF-8");
    }
}
