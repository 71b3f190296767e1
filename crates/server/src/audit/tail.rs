//! The lines of the audit files, for those who look at them: the newest first, with a search.

use std::{
    ffi::OsString,
    fmt,
    fs::{self, File},
    io::{self, Read, Seek, SeekFrom},
    os::unix::fs::MetadataExt,
    path::Path,
};

use crate::Error;

/// Number of bytes that are read at once, from the end of a file on.
const BLOCK_BYTES: u64 = 256 << 10;
/// Maximum number of blocks that one query reads.
const BLOCKS_MAX: usize = 16;
/// Maximum number of files that one query looks for.
const FILES_MAX: u32 = 100;

/// Lines that somebody looks for.
#[derive(Clone, Debug)]
pub struct AuditQuery {
    /// A text that each has, in letters of either case; all if it is empty.
    pub text: String,
    /// The place before which they are; the end of the newest file if unset, or if its file is gone.
    pub before: Option<AuditPlace>,
    /// Maximum number of lines to return.
    pub lines_max: usize,
}

/// Lines that were found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FoundLines {
    /// The newest first.
    pub lines: Vec<String>,
    /// The place from which the search can go on; none if everything was looked at.
    pub next: Option<AuditPlace>,
}

/// A place in an audit file. It stays the same when the file is rotated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuditPlace {
    inode: u64,
    offset: u64,
}

/// An open file up to the place where the search begins. It stays the same one when it is rotated meanwhile.
struct Part {
    file: File,
    place: AuditPlace,
}

impl AuditPlace {
    /// Reads a place that was shown; none if the text is none.
    pub fn read(text: &str) -> Option<Self> {
        let (inode, offset) = text.split_once('-')?;
        Some(Self { inode: inode.parse().ok()?, offset: offset.parse().ok()? })
    }
}

/// Returns the lines of an audit file, and of those that were rotated before it. Blocks its thread while the disk is slow.
pub fn find_lines(path: &Path, query: &AuditQuery) -> Result<FoundLines, Error> {
    search(path, query).map_err(|source| Error::File { action: "read", path: path.to_owned(), source })
}

fn search(path: &Path, query: &AuditQuery) -> io::Result<FoundLines> {
    let text = query.text.to_lowercase();
    let (mut found, mut blocks_left) = (FoundLines::default(), BLOCKS_MAX);
    for Part { mut file, place: AuditPlace { inode, offset: mut end } } in parts(path, query.before)? {
        while end > 0 {
            if blocks_left == 0 {
                found.next = Some(AuditPlace { inode, offset: end });
                return Ok(found);
            }
            blocks_left -= 1;
            let start = end.saturating_sub(BLOCK_BYTES);
            let bytes = read(&mut file, start, end)?;
            end = start + bytes.len() as u64;
            for line in whole_lines(&bytes, start == 0).rev() {
                end -= line.len() as u64;
                let line = String::from_utf8_lossy(line);
                let line = line.trim_end_matches('\n');
                if line.is_empty() || !(text.is_empty() || line.to_lowercase().contains(&text)) {
                    continue;
                }
                found.lines.push(line.to_owned());
                if found.lines.len() >= query.lines_max {
                    found.next = Some(AuditPlace { inode, offset: end });
                    return Ok(found);
                }
            }
        }
    }
    Ok(found)
}

/// The lines of a block, with their ends. A line of which it has only the end is in the block before, unless none could
/// have all of it.
fn whole_lines(bytes: &[u8], is_first: bool) -> impl DoubleEndedIterator<Item = &[u8]> {
    let cut = match bytes.iter().position(|byte| *byte == b'\n') {
        Some(at) if !is_first && at + 1 < bytes.len() => at + 1,
        _ => 0,
    };
    bytes[cut..].split_inclusive(|byte| *byte == b'\n')
}

/// The files, the newest first, from the one in which a place is.
fn parts(path: &Path, before: Option<AuditPlace>) -> io::Result<Vec<Part>> {
    let mut parts = vec![part(path)?];
    for number in 1..FILES_MAX {
        let mut rotated = OsString::from(path);
        rotated.push(format!(".{number}"));
        match part(Path::new(&rotated)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => break,
            rotated => {
                let rotated = rotated?;
                // It was rotated after it was opened under its name before.
                if parts.iter().all(|part: &Part| part.place.inode != rotated.place.inode) {
                    parts.push(rotated);
                }
            }
        }
    }
    let from = before.and_then(|before| {
        let file = parts.iter().position(|part| part.place.inode == before.inode)?;
        Some((file, before.offset))
    });
    if let Some((newer, offset)) = from {
        parts.drain(..newer);
        if let Some(first) = parts.first_mut() {
            first.place.offset = first.place.offset.min(offset);
        }
    }
    Ok(parts)
}

fn part(path: &Path) -> io::Result<Part> {
    // Reading a pipe would take the lines from whoever they are for, and opening it may wait for them.
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let file = File::open(path)?;
    let metadata = file.metadata()?;
    Ok(Part { file, place: AuditPlace { inode: metadata.ino(), offset: metadata.len() } })
}

fn read(file: &mut File, start: u64, end: u64) -> io::Result<Vec<u8>> {
    file.seek(SeekFrom::Start(start))?;
    let mut bytes = Vec::new();
    file.take(end - start).read_to_end(&mut bytes)?;
    Ok(bytes)
}

impl fmt::Display for AuditPlace {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}-{}", self.inode, self.offset)
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn query(text: &str, lines_max: usize, before: Option<AuditPlace>) -> AuditQuery {
        AuditQuery { text: text.to_owned(), before, lines_max }
    }

    /// An audit file with a rotated one.
    fn files(newest: &str, rotated: &str) -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("audit.log");
        fs::write(&path, newest).unwrap();
        fs::write(dir.path().join("audit.log.1"), rotated).unwrap();
        (dir, path)
    }

    #[test]
    fn the_newest_lines_come_first_and_rotated_files_follow() {
        let (_dir, path) = files("three\nfour\n", "one\ntwo\n");
        let all = find_lines(&path, &query("", 9, None)).unwrap();
        assert_eq!((all.lines.join(" ").as_str(), all.next), ("four three two one", None));
        let found = find_lines(&path, &query("O", 9, None)).unwrap();
        assert_eq!(found.lines, ["four", "two", "one"]);
    }

    #[test]
    fn a_search_goes_on_where_it_ended_also_after_a_rotation() {
        let (dir, path) = files("three\nfour\n", "one\ntwo\n");
        let first = find_lines(&path, &query("", 1, None)).unwrap();
        assert_eq!(first.lines, ["four"]);
        let next = AuditPlace::read(&first.next.unwrap().to_string()).unwrap();
        fs::rename(dir.path().join("audit.log.1"), dir.path().join("audit.log.2")).unwrap();
        fs::rename(&path, dir.path().join("audit.log.1")).unwrap();
        fs::write(&path, "five\n").unwrap();
        let second = find_lines(&path, &query("", 2, Some(next))).unwrap();
        assert_eq!(second.lines, ["three", "two"]);
        let third = find_lines(&path, &query("", 2, second.next)).unwrap();
        assert_eq!((third.lines.join(" ").as_str(), third.next), ("one", None));
        assert_eq!(["", "x", "1", "1-x"].map(AuditPlace::read), [None; 4]);
    }

    #[test]
    fn a_file_that_is_rotated_meanwhile_is_read_once() {
        let (dir, path) = files("two\n", "one\n");
        fs::rename(dir.path().join("audit.log.1"), dir.path().join("audit.log.2")).unwrap();
        fs::hard_link(&path, dir.path().join("audit.log.1")).unwrap();
        assert_eq!(find_lines(&path, &query("", 9, None)).unwrap().lines, ["two", "one"]);
    }

    #[test]
    fn of_large_files_only_a_part_is_read_at_once_and_no_line_is_lost() {
        let line = format!("{}\n", "x".repeat(999));
        let (_dir, path) = files(&line.repeat(6000), "the oldest\n");
        let (mut lines, mut before, mut queries) = (0, None, 0);
        loop {
            let found = find_lines(&path, &query("", usize::MAX, before)).unwrap();
            assert!(found.lines.iter().all(|found| found.len() == 999 || found == "the oldest"));
            (lines, before, queries) = (lines + found.lines.len(), found.next, queries + 1);
            if before.is_none() {
                break;
            }
        }
        assert_eq!((lines, queries), (6001, 2));
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let dir = tempfile::tempdir().unwrap();
        for path in [dir.path().to_owned(), dir.path().join("none")] {
            let error = find_lines(&path, &query("", 1, None)).unwrap_err().to_string();
            assert!(error.starts_with(&format!("cannot read `{}`", path.display())), "{error}");
        }
    }
}
