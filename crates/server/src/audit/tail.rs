//! The end of the audit file, for those who look at it.

use std::{
    fs::{self, File},
    io::{self, Read, Seek, SeekFrom},
    path::Path,
};

use crate::Error;

/// Maximum number of bytes read.
const BYTES_MAX: u64 = 256 * 1024;

/// Returns the last lines of an audit file, the newest first. Blocks its thread while the disk is slow.
pub fn last_lines(path: &Path, lines_max: usize) -> Result<Vec<String>, Error> {
    let end = read_end(path).map_err(|source| Error::File { action: "read", path: path.to_owned(), source })?;
    Ok(end.lines().rev().take(lines_max).map(str::to_owned).collect())
}

/// The end of a file, from the beginning of a line.
fn read_end(path: &Path) -> io::Result<String> {
    // Reading a pipe would take the lines from whoever they are for.
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut file = File::open(path)?;
    let start = file.metadata()?.len().saturating_sub(BYTES_MAX);
    file.seek(SeekFrom::Start(start))?;
    let mut bytes = Vec::new();
    file.take(BYTES_MAX).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    let whole = if start == 0 { &*text } else { text.split_once('\n').map_or("", |(_, rest)| rest) };
    Ok(whole.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(content: &str) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), content).unwrap();
        file
    }

    #[test]
    fn the_newest_lines_come_first() {
        let file = file("one\ntwo\nthree\n");
        assert_eq!(last_lines(file.path(), 2).unwrap(), ["three", "two"]);
        assert_eq!(last_lines(file.path(), 9).unwrap(), ["three", "two", "one"]);
    }

    #[test]
    fn of_a_large_file_only_whole_lines_at_its_end_are_read() {
        let line = "x".repeat(1000);
        let file = file(&format!("{line}\n").repeat(1000));
        let lines = last_lines(file.path(), usize::MAX).unwrap();
        assert_eq!(lines.len(), 261);
        assert!(lines.iter().all(|read| *read == line));
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let dir = tempfile::tempdir().unwrap();
        for path in [dir.path().to_owned(), dir.path().join("none")] {
            let error = last_lines(&path, 1).unwrap_err().to_string();
            assert!(error.starts_with(&format!("cannot read `{}`", path.display())), "{error}");
        }
    }
}
