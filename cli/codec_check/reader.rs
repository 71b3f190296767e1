//! Reads codecs from files: one JSON object per line, everything before anything is run.

use std::{
    fs::File,
    io::{self, BufRead, BufReader, Read},
    path::{Path, PathBuf},
};

use super::{codec::Codec, jsonl::Record, memory_size::memory_bytes, surrogates::mended};
use crate::{script, terminal::inert};

/// Longest line, in bytes and without its end: a script of the largest size with a thousand examples.
const LINE_BYTES_MAX: u64 = 2 << 20;
/// What all codecs take in memory, where they are all at once, in bytes.
const INPUT_BYTES_MAX: u64 = 512 << 20;
/// What some editors put before the first line.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// Why codecs cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum BadInput {
    /// A file cannot be read.
    #[error("cannot read {file}")]
    File {
        /// The file, as it was given.
        file: String,
        /// Why not.
        source: io::Error,
    },
    /// A line is not what it must be.
    #[error("{file}, line {line}: {reason}")]
    Line {
        /// The file, as it was given.
        file: String,
        /// The line, from 1.
        line: u64,
        /// What is wrong with it.
        reason: String,
    },
    /// Standard input is named twice.
    #[error("`-` is named more than once: standard input can be read only once")]
    InputTwice,
    /// There is too much of it.
    #[error("these files, with the scripts that they name, take more than {} MiB: check them in parts", INPUT_BYTES_MAX >> 20)]
    TooLarge,
    /// Nothing is left to check.
    #[error("{0}")]
    Nothing(String),
}

/// Reads the codecs of `files`, where `-` is standard input; only those with `id` in their id, if one is given.
///
/// A `script_file` is looked for in the folder of the file that names it and below, and nowhere else; for standard input
/// in the current folder.
pub fn read(files: &[PathBuf], id: Option<&str>) -> Result<Vec<Codec>, BadInput> {
    if files.iter().filter(|file| script::is_input(file)).count() > 1 {
        return Err(BadInput::InputTwice);
    }
    let mut codecs = all(files, INPUT_BYTES_MAX)?;
    if codecs.is_empty() {
        return Err(BadInput::Nothing("there are no codecs in these files".to_owned()));
    }
    if let Some(id) = id {
        codecs.retain(|codec| codec.id.contains(id));
        if codecs.is_empty() {
            return Err(BadInput::Nothing(format!("no codec has `{id}` in its id")));
        }
    }
    Ok(codecs)
}

/// The codecs of all files, which must not take more than `left` bytes.
fn all(files: &[PathBuf], mut left: u64) -> Result<Vec<Codec>, BadInput> {
    let mut codecs = Vec::new();
    for path in files {
        let file = path.display().to_string();
        let source = |source| BadInput::File { file: file.clone(), source };
        let (reader, folder): (Box<dyn Read>, _) = match script::is_input(path) {
            true => (Box::new(io::stdin()), Path::new("")),
            false => (Box::new(File::open(path).map_err(source)?), path.parent().unwrap_or(Path::new(""))),
        };
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        Lines { file: &file, folder, left: &mut left }.read(BufReader::new(reader), &mut codecs)?;
    }
    Ok(codecs)
}

/// One file on its way.
struct Lines<'a> {
    file: &'a str,
    folder: &'a Path,
    /// How many bytes may still come.
    left: &'a mut u64,
}

impl Lines<'_> {
    fn read(&mut self, mut reader: impl BufRead, codecs: &mut Vec<Codec>) -> Result<(), BadInput> {
        let mut text = Vec::new();
        for line in 1.. {
            text.clear();
            // What is wrong may be told in the words of whoever wrote it.
            let wrong = |reason: String| BadInput::Line { file: self.file.to_owned(), line, reason: inert(&reason) };
            let read = reader.by_ref().take(LINE_BYTES_MAX + 1).read_until(b'\n', &mut text);
            if read.map_err(|source| BadInput::File { file: self.file.to_owned(), source })? == 0 {
                break;
            }
            if text.strip_suffix(b"\n").unwrap_or(&text).len() as u64 > LINE_BYTES_MAX {
                return Err(wrong(format!("it has more than {LINE_BYTES_MAX} bytes")));
            }
            let mark = if line == 1 { BYTE_ORDER_MARK } else { b"" };
            let text = text.strip_prefix(mark).unwrap_or(&text);
            if !text.trim_ascii().is_empty() {
                let codec = self.codec(text, line).map_err(wrong)?;
                *self.left = self.left.checked_sub(memory_bytes(&codec)).ok_or(BadInput::TooLarge)?;
                codecs.push(codec);
            }
        }
        Ok(())
    }

    fn codec(&self, text: &[u8], line: u64) -> Result<Codec, String> {
        let text = std::str::from_utf8(text).map_err(|error| format!("not UTF-8: {error}"))?;
        let record: Record = serde_json::from_str(&mended(text)).map_err(|error| reason(&error))?;
        let others = record.others()?;
        let name = record.script_file.as_ref().map(|path| path.display().to_string());
        let id = record.id.clone().or(name).unwrap_or_else(|| format!("{}:{line}", self.file));
        let script = match (&record.script, &record.script_file) {
            (Some(script), None) => script.clone(),
            (None, Some(path)) => self.script(path)?,
            (Some(_), Some(_)) => return Err("it has both `script` and `script_file`".to_owned()),
            (None, None) => return Err("`script` or `script_file` is missing".to_owned()),
        };
        record.codec(id, script, others)
    }

    fn script(&self, path: &Path) -> Result<String, String> {
        script::read_within(self.folder, path).map_err(|error| format!("cannot read {}: {error}", path.display()))
    }
}

/// What the parser says, without the line, which is always 1.
fn reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let text = text.split(" at line ").next().unwrap_or_default();
    match error.classify() {
        serde_json::error::Category::Data => format!("not valid: {text} (column {})", error.column()),
        _ => format!(
            "no JSON object in one line: {text} (column {}); `functions check --help` shows one",
            error.column()
        ),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn read_line(line: &str, left: u64) -> Result<usize, String> {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("long.js"), " ".repeat(100_000)).unwrap();
        let file = folder.path().join("codecs.jsonl");
        fs::write(&file, line).unwrap();
        all(&[file], left).map(|codecs| codecs.len()).map_err(|error| error.to_string())
    }

    #[test]
    fn scripts_in_files_of_their_own_count_as_often_as_they_are_named() {
        let lines = "{\"script_file\": \"long.js\"}\n".repeat(10);
        assert_eq!(read_line(&lines, 1_100_000), Ok(10));
        assert!(read_line(&lines, 1_000_000).unwrap_err().contains("take more than"));
    }

    #[test]
    fn values_count_by_what_they_take_in_memory() {
        let zeros = format!("[0{}]", ",0".repeat(9_999));
        let line = format!(r#"{{"script": "", "examples": [{{"bytes_hex": "", "expected": {zeros}}}]}}"#);
        assert_eq!(read_line(&line, 1_000_000), Ok(1));
        assert!(read_line(&line, 500_000).unwrap_err().contains("take more than"));
    }

    #[test]
    fn a_line_may_have_all_of_its_length_and_an_end() {
        let record = r#"{"script": ""}"#;
        let line = |length: usize| record.to_owned() + &" ".repeat(length - record.len());
        let longest = LINE_BYTES_MAX as usize;
        for end in ["", "\n", "\n{\"script\": \"\"}"] {
            assert!(read_line(&(line(longest) + end), INPUT_BYTES_MAX).is_ok(), "{end:?}");
            let error = read_line(&(line(longest + 1) + end), INPUT_BYTES_MAX).unwrap_err();
            assert!(error.ends_with("line 1: it has more than 2097152 bytes"), "{end:?}: {error}");
        }
    }
}
