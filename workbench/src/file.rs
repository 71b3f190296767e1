//! The source of functions, and files with examples: where they are, and what their bytes say.

#[cfg(unix)]
pub(crate) mod disk;
#[cfg(unix)]
pub(crate) mod pending_file;

use std::{
    ffi::OsString,
    io::{self, Read},
    path::{Component, Path, PathBuf},
};

/// Maximum size of a script file, in bytes. The sandbox accepts less.
pub(crate) const SCRIPT_BYTES_MAX: u64 = 1 << 20;
/// Some editors write it before the first line.
pub(crate) const BYTE_ORDER_MARK: char = '\u{feff}';

/// The files of trees: those of a disk, or those that somebody has opened in a page.
pub(crate) trait Files {
    /// The regular files of a directory, and its directories. Symbolic links are left out.
    fn entries(&self, dir: &Path) -> io::Result<Vec<Entry>>;

    /// Returns true if there is a directory.
    fn is_dir(&self, path: &Path) -> bool;

    /// Opens a regular file in `directory` or below. What names it may not be trustworthy, so no other file is opened.
    fn open_within(&self, directory: &Path, name: &Path) -> io::Result<Box<dyn Read>>;

    /// Reads such a file, of at most `bytes_max`.
    fn read_within(&self, directory: &Path, name: &Path, bytes_max: u64) -> io::Result<String> {
        read_text(self.open_within(directory, name)?, bytes_max)
    }

    /// The same for a script, which must not be blank.
    fn read_script_within(&self, directory: &Path, name: &Path) -> io::Result<String> {
        let script = self.read_within(directory, name, SCRIPT_BYTES_MAX)?;
        not_blank(&script).map_err(io::Error::other)?;
        Ok(script)
    }
}

/// A file or directory of a directory.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) name: OsString,
    pub(crate) is_dir: bool,
}

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

/// Refuses a blank script: it would pass every test that it has no examples for.
pub(crate) fn not_blank(script: &str) -> Result<(), &'static str> {
    if script.trim().is_empty() { Err("the script is empty") } else { Ok(()) }
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
