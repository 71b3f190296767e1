//! Reads codecs from files with one JSON object per line. A bad line does not keep the others from being read.

#[cfg(unix)]
pub(crate) mod named;
pub(super) mod record;
#[cfg(unix)]
pub(super) mod stdin;

use std::{
    io::{self, BufRead, BufReader, Read as _},
    path::Path,
    sync::Arc,
};

use runtime::sanitize;
use serde::de::IgnoredAny;
use serde_json::error::Category;

use self::record::CodecLine;
use super::{BadInput, Found, dir::Dir};
use crate::{
    codec::Codec,
    file::{BYTE_ORDER_MARK, Files, directory_of, is_utf_16, not_blank},
    text::{
        json_problem::json_problem,
        place::Place,
        surrogates::{mark, to_text},
    },
};

/// Maximum length of a line, in bytes without the line break: enough for the largest script with a thousand examples.
const LINE_BYTES_MAX: u64 = 2 << 20;
/// Maximum number of bad lines of a file, which is then taken for something else.
const BAD_LINES_MAX: usize = 100;

/// Reads the files of JSON lines in a directory. A repository may have others of that name.
pub(super) fn read_dir(dir: &Dir<'_>, found: &mut Found) {
    for name in dir.names.iter().filter(|name| name.ends_with(".jsonl")) {
        let is_ours =
            |start: &str| ["\"script\"", "\"script_file\"", "\"examples\""].iter().any(|member| start.contains(member));
        let start = match dir.start(name) {
            Ok(start) if is_ours(&start) => dir.open(name).map(Some),
            Ok(start) if is_json(&start) => Ok(None),
            Ok(_) => {
                let reason = "it has no JSON lines: give it another name, if it has no codecs either";
                found.problem(dir.bad(name, 1, reason));
                Ok(None)
            }
            Err(source) => Err(source),
        };
        match start {
            Ok(Some(file)) => {
                let path = dir.path(name);
                read_lines(dir.files, &path, BufReader::new(file), found);
            }
            Ok(None) => {}
            Err(source) => found.problem(dir.unreadable(name, source)),
        }
    }
}

/// Returns true if a file that begins like this may be another program's. The start may end within a line.
fn is_json(start: &str) -> bool {
    let line = start.trim_start().lines().next().unwrap_or_default();
    let is_container = line.starts_with(['{', '[']) && !start.contains(['\0', char::REPLACEMENT_CHARACTER]);
    line.is_empty() || is_container || serde_json::from_str::<IgnoredAny>(line).is_ok()
}

/// Reads JSON lines, which `path` stands for in reports.
fn read_lines(files: &dyn Files, path: &Path, reader: impl BufRead, found: &mut Found) {
    FileReader { files, file: path, dir: directory_of(path), found, bad_lines: 0 }.read(reader);
}

struct FileReader<'a> {
    files: &'a dyn Files,
    file: &'a Path,
    dir: &'a Path,
    found: &'a mut Found,
    bad_lines: usize,
}

impl FileReader<'_> {
    fn read(&mut self, mut reader: impl BufRead) {
        match reader.fill_buf().map(is_utf_16) {
            Ok(true) => return self.bad(1, "it is UTF-16: save it as UTF-8"),
            Ok(false) => {}
            Err(source) => return self.unreadable(source),
        }
        let mut text = Vec::new();
        for line in 1.. {
            if self.bad_lines >= BAD_LINES_MAX {
                return self.bad(line, &format!("{BAD_LINES_MAX} lines before are not valid: the rest is not read"));
            }
            text.clear();
            match reader.by_ref().take(LINE_BYTES_MAX + 1).read_until(b'\n', &mut text) {
                Ok(0) => break,
                Ok(_) => {}
                Err(source) => return self.unreadable(source),
            }
            if text.strip_suffix(b"\n").unwrap_or(&text).len() as u64 > LINE_BYTES_MAX {
                self.bad(line, &format!("it has more than {LINE_BYTES_MAX} bytes"));
                if reader.skip_until(b'\n').is_err() {
                    return;
                }
                continue;
            }
            let prefix = if line == 1 { BYTE_ORDER_MARK.to_string() } else { String::new() };
            let text = text.strip_prefix(prefix.as_bytes()).unwrap_or(&text);
            if !text.trim_ascii().is_empty() {
                match self.codec(text, line) {
                    Ok(codec) => self.found.codec(codec),
                    Err(reason) => self.bad(line, &reason),
                }
            }
        }
    }

    fn unreadable(&mut self, source: io::Error) {
        self.found.problem(BadInput::File { file: self.file.display().to_string(), source });
    }

    fn bad(&mut self, line: u64, reason: &str) {
        self.bad_lines += 1;
        // The reason may quote the file.
        let (file, reason) = (self.file.display().to_string(), sanitize(reason));
        self.found.problem(BadInput::Line { file, line, reason });
    }

    fn codec(&self, text: &[u8], line: u64) -> Result<Codec, String> {
        let text = std::str::from_utf8(text).map_err(|error| format!("not UTF-8: {error}"))?;
        let marked = mark(text);
        let codec: CodecLine = serde_json::from_str(&marked).map_err(|error| reason(&error, &marked))?;
        let unknown_members = codec.unknown_members()?;
        let name = codec.script_file.as_ref().map(|path| path.display().to_string());
        let id = codec.id.clone().or(name).unwrap_or_else(|| format!("{}:{line}", self.file.display()));
        let script = match (&codec.script, &codec.script_file) {
            (Some(script), None) => to_text(script),
            (None, Some(path)) => self.script(path)?,
            (Some(_), Some(_)) => return Err("it has both `script` and `script_file`".to_owned()),
            (None, None) => return Err("`script` or `script_file` is missing".to_owned()),
        };
        let script_file = codec.script_file.as_ref().map(|path| self.dir.join(path));
        let place = Place { file: Arc::new(self.file.to_owned()), line: line as usize, expectation: None };
        let codec = codec.into_codec(Codec { unknown_members, ..Codec::new(id, script, script_file) }, &place)?;
        not_blank(&codec.script)?;
        Ok(codec)
    }

    fn script(&self, path: &Path) -> Result<String, String> {
        let script = self.files.read_script_within(self.dir, path);
        script.map_err(|error| format!("cannot read {}: {error}", path.display()))
    }
}

/// Describes the problem of a line, without its number.
fn reason(error: &serde_json::Error, line: &str) -> String {
    let problem = json_problem(error, line);
    match error.classify() {
        Category::Data => format!("not valid: {problem}"),
        _ => format!("not a JSON object in one line: {problem}; `airlock functions test --help` shows an example"),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{named::read_file, *};
    use crate::layout::MEMORY_BYTES_MAX;

    fn read_line(line: &str, left: u64) -> Result<usize, String> {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("long.js"), "x".repeat(100_000)).unwrap();
        let file = dir.path().join("codecs.jsonl");
        fs::write(&file, line).unwrap();
        let mut found = Found::new(None, left);
        read_file(&file, &mut found);
        found.problems.first().map_or(Ok(found.codecs.len()), |problem| Err(problem.to_string()))
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
        let line = format!(r#"{{"script": ";", "examples": [{{"bytes_hex": "", "expected": {zeros}}}]}}"#);
        assert_eq!(read_line(&line, 1_000_000), Ok(1));
        assert!(read_line(&line, 500_000).unwrap_err().contains("take more than"));
    }

    #[test]
    fn limits_the_length_of_a_line_without_its_line_break() {
        let record = r#"{"script": ";"}"#;
        let line = |length: usize| record.to_owned() + &" ".repeat(length - record.len());
        let longest = LINE_BYTES_MAX as usize;
        for end in ["", "\n", "\n{\"script\": \";\"}"] {
            assert!(read_line(&(line(longest) + end), MEMORY_BYTES_MAX).is_ok(), "{end:?}");
            let error = read_line(&(line(longest + 1) + end), MEMORY_BYTES_MAX).unwrap_err();
            assert!(error.ends_with("line 1: it has more than 2097152 bytes"), "{end:?}: {error}");
        }
    }
}
