//! Reads the source of functions, from a file given on the command line or named in a list of codecs.

pub(crate) mod pending_file;

use std::{
    fs::File,
    io::{self, Read},
    path::{Component, Path, PathBuf},
};

use rustix::{
    fs::{CWD, Mode, OFlags, openat},
    io::Errno,
};

/// Maximum size of a script file, in bytes. The sandbox accepts less.
pub(crate) const SCRIPT_BYTES_MAX: u64 = 1 << 20;
/// Some editors write it before the first line.
pub(crate) const BYTE_ORDER_MARK: char = '\u{feff}';
/// Opening does not follow symbolic links, and does not block on a pipe that has no writer.
const FLAGS: OFlags = OFlags::NONBLOCK.union(OFlags::NOFOLLOW).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

/// Returns true if `path` is `-`, which stands for standard input, or for standard output where something is written.
pub fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// The directory of a file; that of a bare name is `.`, because an empty path cannot be opened.
pub(crate) fn directory_of(file: &Path) -> &Path {
    file.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// A path without `.` and `..` in it, so that the same file has one path. Links are not followed anywhere.
pub(crate) fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if matches!(normal.components().next_back(), Some(Component::Normal(_))) => {
                normal.pop();
            }
            part => normal.push(part),
        }
    }
    normal
}

/// Reads a script given on the command line; `-` is standard input.
pub fn read_script(path: &Path) -> io::Result<String> {
    match is_stdin(path) {
        true => read_text(io::stdin(), SCRIPT_BYTES_MAX),
        false => File::open(path).and_then(|file| read_text(file, SCRIPT_BYTES_MAX)),
    }
}

/// Reads a text file given on the command line, of at most `bytes_max`.
pub(crate) fn read_file(path: &Path, bytes_max: u64) -> io::Result<String> {
    File::open(path).and_then(|file| read_text(file, bytes_max))
}

/// Reads a file of at most `bytes_max` in `directory` or below. What names it may not be trustworthy, so no other file
/// is read.
pub(crate) fn read_within(directory: &Path, name: &Path, bytes_max: u64) -> io::Result<String> {
    read_text(open_within(directory, name)?, bytes_max)
}

/// The same for a script, which must not be blank.
pub(crate) fn read_script_within(directory: &Path, name: &Path) -> io::Result<String> {
    let script = read_within(directory, name, SCRIPT_BYTES_MAX)?;
    not_blank(&script).map_err(io::Error::other)?;
    Ok(script)
}

/// Refuses a blank script: it would pass every test that it has no examples for.
pub(crate) fn not_blank(script: &str) -> Result<(), &'static str> {
    if script.trim().is_empty() { Err("the script is empty") } else { Ok(()) }
}

/// Opens a regular file in `directory` or below.
pub(crate) fn open_within(directory: &Path, name: &Path) -> io::Result<File> {
    let (directory, path) = (directory.canonicalize()?, directory.join(name).canonicalize()?);
    let Ok(below) = path.strip_prefix(&directory) else {
        return Err(io::Error::other("it is outside the directory of the file that names it"));
    };
    let file = open_below(&directory, below)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(not_regular()) }
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

fn read_text(file: impl Read, bytes_max: u64) -> io::Result<String> {
    let mut bytes = Vec::new();
    file.take(bytes_max + 1).read_to_end(&mut bytes)?;
    // Checked before UTF-8, because the limit may split a character.
    if bytes.len() as u64 > bytes_max {
        return Err(io::Error::other(format!("it has more than {bytes_max} bytes")));
    }
    decode(bytes)
}

/// The text of a file in UTF-8, or in UTF-16 as editors on Windows write it, without its byte order mark.
pub(crate) fn decode(bytes: Vec<u8>) -> io::Result<String> {
    if let Some(units) = utf_16(&bytes) {
        let text = String::from_utf16(&units).ok().filter(|_| bytes.len().is_multiple_of(2));
        return text.ok_or_else(|| io::Error::other("it is not UTF-16, which its first bytes say"));
    }
    let text = String::from_utf8(bytes).map_err(|_| io::Error::other("it is not UTF-8"))?;
    Ok(text.strip_prefix(BYTE_ORDER_MARK).map(str::to_owned).unwrap_or(text))
}

/// Decodes the first bytes of a file, which may end within a character.
pub(crate) fn decode_start(bytes: &[u8]) -> String {
    match utf_16(bytes) {
        Some(units) => String::from_utf16_lossy(&units),
        None => String::from_utf8_lossy(bytes).trim_start_matches(BYTE_ORDER_MARK).to_owned(),
    }
}

/// Returns true if a file with these first bytes is UTF-16.
pub(crate) fn is_utf_16(start: &[u8]) -> bool {
    utf_16(start).is_some()
}

/// The code units after the mark if the bytes are UTF-16. All formats that are read begin with ASCII, so a zero in one
/// of the first two bytes tells it where the mark is missing.
fn utf_16(bytes: &[u8]) -> Option<Vec<u16>> {
    let (to_unit, rest): (fn([u8; 2]) -> u16, _) = match bytes {
        [0xff, 0xfe, rest @ ..] if rest.len() > 1 => (u16::from_le_bytes, rest),
        [0xfe, 0xff, rest @ ..] if rest.len() > 1 => (u16::from_be_bytes, rest),
        [1..=127, 0, 1..=127, 0, ..] => (u16::from_le_bytes, bytes),
        [0, 1..=127, 0, 1..=127, ..] => (u16::from_be_bytes, bytes),
        _ => return None,
    };
    Some(rest.as_chunks::<2>().0.iter().map(|pair| to_unit(*pair)).collect())
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
            assert!(read_within(&dir, Path::new(name), SCRIPT_BYTES_MAX).unwrap().ends_with(".js"), "{name}");
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
            let error = read_within(&dir, Path::new(name), SCRIPT_BYTES_MAX).unwrap_err().to_string();
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
