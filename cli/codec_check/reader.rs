//! Reads codecs from files with one JSON object per line. All are read before any is run.

use std::{
    fs::File,
    io::{self, BufRead, BufReader, Read},
    path::{Path, PathBuf},
};

use super::{
    codec::Codec,
    jsonl::CodecLine,
    memory_size::memory_bytes,
    surrogates::{mark, to_text},
};
use crate::{script, terminal::sanitize};

/// Maximum length of a line, in bytes without the line break: enough for the largest script with a thousand examples.
const LINE_BYTES_MAX: u64 = 2 << 20;
/// Maximum memory of all codecs together, in bytes.
const MEMORY_BYTES_MAX: u64 = 512 << 20;
/// Some editors write it before the first line.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// Why codecs could not be read.
#[derive(Debug, thiserror::Error)]
pub enum BadInput {
    /// A file cannot be read.
    #[error("cannot read {file}")]
    File {
        /// The file, as given.
        file: String,
        /// The cause.
        source: io::Error,
    },
    /// A line is not a valid codec.
    #[error("{file}, line {line}: {reason}")]
    Line {
        /// The file, as given.
        file: String,
        /// The line, from 1.
        line: u64,
        /// What is wrong with it, without control characters.
        reason: String,
    },
    /// Standard input is named twice.
    #[error("`-` appears more than once: standard input can be read only once")]
    InputTwice,
    /// The codecs take too much memory.
    #[error("these files and their scripts take more than {} MiB of memory: check them in several runs", MEMORY_BYTES_MAX >> 20)]
    TooLarge,
    /// There is nothing to check.
    #[error("{0}")]
    Nothing(String),
}

/// Reads the codecs in `files`, where `-` is standard input; with `id`, only those whose id contains it.
///
/// A `script_file` must be in the directory of the file that names it, or below; for standard input, in the current
/// directory.
pub fn read(files: &[PathBuf], id: Option<&str>) -> Result<Vec<Codec>, BadInput> {
    if files.iter().filter(|file| script::is_stdin(file)).count() > 1 {
        return Err(BadInput::InputTwice);
    }
    let mut codecs = read_all(files, MEMORY_BYTES_MAX)?;
    if codecs.is_empty() {
        return Err(BadInput::Nothing("these files contain no codecs".to_owned()));
    }
    if let Some(id) = id {
        codecs.retain(|codec| codec.id.contains(id));
        if codecs.is_empty() {
            return Err(BadInput::Nothing(format!("no codec id contains `{id}`")));
        }
    }
    Ok(codecs)
}

/// Reads all files; their codecs may take `left` bytes of memory.
fn read_all(files: &[PathBuf], mut left: u64) -> Result<Vec<Codec>, BadInput> {
    let mut codecs = Vec::new();
    for path in files {
        let file = path.display().to_string();
        let source = |source| BadInput::File { file: file.clone(), source };
        let (reader, dir): (Box<dyn Read>, _) = match script::is_stdin(path) {
            true => (Box::new(io::stdin()), Path::new("")),
            false => (Box::new(File::open(path).map_err(source)?), path.parent().unwrap_or(Path::new(""))),
        };
        let dir = if dir.as_os_str().is_empty() { Path::new(".") } else { dir };
        FileReader { file: &file, dir, left: &mut left }.read(BufReader::new(reader), &mut codecs)?;
    }
    Ok(codecs)
}

struct FileReader<'a> {
    file: &'a str,
    dir: &'a Path,
    /// How much memory further codecs may take, in bytes.
    left: &'a mut u64,
}

impl FileReader<'_> {
    fn read(&mut self, mut reader: impl BufRead, codecs: &mut Vec<Codec>) -> Result<(), BadInput> {
        let mut text = Vec::new();
        for line in 1.. {
            text.clear();
            // The reason may quote the file.
            let invalid =
                |reason: String| BadInput::Line { file: self.file.to_owned(), line, reason: sanitize(&reason) };
            let read = reader.by_ref().take(LINE_BYTES_MAX + 1).read_until(b'\n', &mut text);
            if read.map_err(|source| BadInput::File { file: self.file.to_owned(), source })? == 0 {
                break;
            }
            if text.strip_suffix(b"\n").unwrap_or(&text).len() as u64 > LINE_BYTES_MAX {
                return Err(invalid(format!("it has more than {LINE_BYTES_MAX} bytes")));
            }
            let prefix = if line == 1 { BYTE_ORDER_MARK } else { b"" };
            let text = text.strip_prefix(prefix).unwrap_or(&text);
            if !text.trim_ascii().is_empty() {
                let codec = self.codec(text, line).map_err(invalid)?;
                *self.left = self.left.checked_sub(memory_bytes(&codec)).ok_or(BadInput::TooLarge)?;
                codecs.push(codec);
            }
        }
        Ok(())
    }

    fn codec(&self, text: &[u8], line: u64) -> Result<Codec, String> {
        let text = std::str::from_utf8(text).map_err(|error| format!("not UTF-8: {error}"))?;
        let parsed = serde_json::from_str(&mark(text));
        let codec: CodecLine = parsed.map_err(|error| reason(&error))?;
        let unknown_members = codec.unknown_members()?;
        let name = codec.script_file.as_ref().map(|path| path.display().to_string());
        let id = codec.id.clone().or(name).unwrap_or_else(|| format!("{}:{line}", self.file));
        let script = match (&codec.script, &codec.script_file) {
            (Some(script), None) => to_text(script),
            (None, Some(path)) => self.script(path)?,
            (Some(_), Some(_)) => return Err("it has both `script` and `script_file`".to_owned()),
            (None, None) => return Err("`script` or `script_file` is missing".to_owned()),
        };
        codec.into_codec(id, script, unknown_members)
    }

    fn script(&self, path: &Path) -> Result<String, String> {
        script::read_within(self.dir, path).map_err(|error| format!("cannot read {}: {error}", path.display()))
    }
}

/// The parser's message, without its line number: that is always 1.
fn reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let text = text.split(" at line ").next().unwrap_or_default();
    match error.classify() {
        serde_json::error::Category::Data => format!("not valid: {text} (column {})", error.column()),
        _ => format!(
            "not a JSON object in one line: {text} (column {}); `airlock functions check --help` shows an example",
            error.column()
        ),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn read_line(line: &str, left: u64) -> Result<usize, String> {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("long.js"), " ".repeat(100_000)).unwrap();
        let file = dir.path().join("codecs.jsonl");
        fs::write(&file, line).unwrap();
        read_all(&[file], left).map(|codecs| codecs.len()).map_err(|error| error.to_string())
    }

    #[test]
    fn a_script_file_counts_as_often_as_it_is_named() {
        let lines = "{\"script_file\": \"long.js\"}\n".repeat(10);
        assert_eq!(read_line(&lines, 1_100_000), Ok(10));
        assert!(read_line(&lines, 1_000_000).unwrap_err().contains("take more than"));
    }

    #[test]
    fn limits_the_memory_that_values_take() {
        let zeros = format!("[0{}]", ",0".repeat(9_999));
        let line = format!(r#"{{"script": "", "examples": [{{"bytes_hex": "", "expected": {zeros}}}]}}"#);
        assert_eq!(read_line(&line, 1_000_000), Ok(1));
        assert!(read_line(&line, 500_000).unwrap_err().contains("take more than"));
    }

    #[test]
    fn limits_the_length_of_a_line_without_its_line_break() {
        let record = r#"{"script": ""}"#;
        let line = |length: usize| record.to_owned() + &" ".repeat(length - record.len());
        let longest = LINE_BYTES_MAX as usize;
        for end in ["", "\n", "\n{\"script\": \"\"}"] {
            assert!(read_line(&(line(longest) + end), MEMORY_BYTES_MAX).is_ok(), "{end:?}");
            let error = read_line(&(line(longest + 1) + end), MEMORY_BYTES_MAX).unwrap_err();
            assert!(error.ends_with("line 1: it has more than 2097152 bytes"), "{end:?}: {error}");
        }
    }
}
