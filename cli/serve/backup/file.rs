//! The format of a backup: JSON objects in lines, with a checksum in the last one.

use std::{
    fs::File,
    io::{self, BufRead, BufReader, Read, Write},
    path::Path,
};

use anyhow::{Context, anyhow, bail, ensure};
use base64::{Engine, engine::general_purpose::STANDARD};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use store::{StoredEntry, Version};
use types::{Secret, Timestamp};
use zeroize::Zeroizing;

/// The format that this version writes without history and with it, which is the newest that it reads.
const FORMAT: u32 = 1;
const FORMAT_WITH_HISTORY: u32 = 2;
/// Maximum length of a line: the largest value in base64, with its key.
const LINE_BYTES_MAX: u64 = 8 << 20;

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    /// The first line.
    Backup(Header),
    KeyFile(KeyFile),
    Entry(StoredEntry),
    History(HistoryPart),
    /// The last line.
    End(End),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Header {
    format: u32,
    airlock: String,
    /// Time at which it was made.
    pub(crate) created: Timestamp,
    /// The last version that the store had assigned.
    pub(crate) last_version: Version,
    /// The key files that belong to the store, whether or not they are in the backup.
    pub(crate) key_files: Vec<KeyFileHash>,
}

/// A part of a file of history; the parts of a file follow each other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HistoryPart {
    /// The path below the directory of history.
    pub(crate) name: String,
    base64: String,
}

/// Name and hash by which a key file is recognized.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct KeyFileHash {
    pub(crate) name: String,
    pub(crate) sha256: String,
}

/// A key file of the data directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct KeyFile {
    pub(crate) name: String,
    base64: Secret,
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct End {
    entries: u64,
    /// Of everything before this line.
    sha256: String,
}

/// A line between the first one and the last one.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Item {
    KeyFile(KeyFile),
    Entry(StoredEntry),
    History(HistoryPart),
}

pub(crate) struct BackupWriter<W> {
    out: W,
    sha256: Sha256,
    entries: u64,
}

pub(crate) struct BackupReader<R> {
    lines: R,
    sha256: Sha256,
    entries: u64,
    number: u64,
    pub(crate) header: Header,
}

impl KeyFile {
    pub(crate) fn new(name: &str, contents: &[u8]) -> Self {
        Self { name: name.to_owned(), base64: Secret::new(STANDARD.encode(contents)) }
    }

    pub(crate) fn contents(&self) -> anyhow::Result<Zeroizing<Vec<u8>>> {
        let contents = STANDARD.decode(self.base64.expose());
        Ok(Zeroizing::new(contents.with_context(|| format!("{} in the backup is damaged", self.name))?))
    }
}

impl Header {
    pub(crate) fn new(created: Timestamp, last_version: Version, key_files: Vec<KeyFileHash>) -> Self {
        let airlock = env!("CARGO_PKG_VERSION").to_owned();
        Self { format: FORMAT, airlock, created, last_version, key_files }
    }

    /// That of a backup with history, which older versions cannot read.
    pub(crate) fn with_history(self) -> Self {
        Self { format: FORMAT_WITH_HISTORY, ..self }
    }

    pub(crate) fn has_history(&self) -> bool {
        self.format >= FORMAT_WITH_HISTORY
    }
}

impl HistoryPart {
    pub(crate) fn new(name: &str, contents: &[u8]) -> Self {
        Self { name: name.to_owned(), base64: STANDARD.encode(contents) }
    }

    pub(crate) fn contents(&self) -> anyhow::Result<Vec<u8>> {
        let contents = STANDARD.decode(&self.base64);
        contents.with_context(|| format!("{} of history in the backup is damaged", self.name))
    }
}

impl<W: Write> BackupWriter<W> {
    pub(crate) fn begin(out: W, header: Header) -> io::Result<Self> {
        let mut writer = Self { out, sha256: Sha256::new(), entries: 0 };
        writer.line(&Line::Backup(header))?;
        Ok(writer)
    }

    pub(crate) fn key_file(&mut self, key_file: KeyFile) -> io::Result<()> {
        self.line(&Line::KeyFile(key_file))
    }

    pub(crate) fn entry(&mut self, entry: StoredEntry) -> io::Result<()> {
        self.entries += 1;
        self.line(&Line::Entry(entry))
    }

    pub(crate) fn history(&mut self, part: HistoryPart) -> io::Result<()> {
        self.line(&Line::History(part))
    }

    /// Writes the last line, and returns the number of entries.
    pub(crate) fn finish(mut self) -> io::Result<u64> {
        let sha256 = hex::encode(self.sha256.finalize_reset());
        self.line(&Line::End(End { entries: self.entries, sha256 }))?;
        self.out.flush()?;
        Ok(self.entries)
    }

    fn line(&mut self, line: &Line) -> io::Result<()> {
        let mut text = serde_json::to_vec(line)?;
        text.push(b'\n');
        self.sha256.update(&text);
        self.out.write_all(&text)
    }
}

impl BackupReader<BufReader<File>> {
    /// Opens a file, and reads its first line.
    pub(crate) fn open(path: &Path) -> anyhow::Result<Self> {
        Self::begin(BufReader::new(File::open(path)?))
    }
}

impl<R: BufRead> BackupReader<R> {
    fn begin(mut lines: R) -> anyhow::Result<Self> {
        let text = read_line(&mut lines)?.unwrap_or_default();
        let format = serde_json::from_slice::<serde_json::Value>(&text).ok();
        let format = format.and_then(|line| line.get("backup")?.get("format")?.as_u64());
        let format = format.context("it is no backup of Airlock")?;
        let newest = FORMAT_WITH_HISTORY;
        ensure!(format <= newest.into(), "it has format {format}, this version reads up to {newest}: use a newer one");
        let Ok(Line::Backup(header)) = serde_json::from_slice(&text) else { bail!(damaged(1)) };
        Ok(Self { lines, sha256: Sha256::new_with_prefix(&text), entries: 0, number: 1, header })
    }

    /// The next item; `None` at the end, after the checksum was compared.
    pub(crate) fn next(&mut self) -> anyhow::Result<Option<Item>> {
        self.number += 1;
        let text = read_line(&mut self.lines)?.context("it is incomplete: its end is missing")?;
        let before = self.sha256.clone();
        self.sha256.update(&text);
        match serde_json::from_slice(&text).map_err(|_| damaged(self.number))? {
            Line::KeyFile(key_file) => Ok(Some(Item::KeyFile(key_file))),
            Line::History(part) => Ok(Some(Item::History(part))),
            Line::Entry(entry) => {
                self.entries += 1;
                Ok(Some(Item::Entry(entry)))
            }
            Line::End(end) => {
                let expected = End { entries: self.entries, sha256: hex::encode(before.finalize()) };
                ensure!(end == expected, "it is damaged: its checksum is another one");
                ensure!(read_line(&mut self.lines)?.is_none(), "it is damaged: something follows its end");
                Ok(None)
            }
            Line::Backup(_) => Err(damaged(self.number)),
        }
    }

    /// Returns the number of entries read so far.
    pub(crate) fn entries(&self) -> u64 {
        self.entries
    }
}

/// A line with its end; `None` at the end of the file.
fn read_line(lines: &mut impl BufRead) -> anyhow::Result<Option<Vec<u8>>> {
    let mut text = Vec::new();
    lines.take(LINE_BYTES_MAX).read_until(b'\n', &mut text)?;
    ensure!(text.ends_with(b"\n") || text.len() < LINE_BYTES_MAX as usize, "it is no backup of Airlock");
    Ok((!text.is_empty()).then_some(text))
}

fn damaged(line: u64) -> anyhow::Error {
    anyhow!("it is damaged: line {line} is not what Airlock writes")
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    fn written() -> Vec<u8> {
        let key_files = vec![KeyFileHash { name: "account.key".to_owned(), sha256: "00".to_owned() }];
        let version = serde_json::from_str("7").unwrap();
        let header = Header::new(Timestamp::from_millis(1), version, key_files).with_history();
        let mut bytes = Vec::new();
        let mut writer = BackupWriter::begin(&mut bytes, header).unwrap();
        writer.key_file(KeyFile::new("account.key", b"\xffhush")).unwrap();
        for item in read(&[r#"{"key":"{a:x}b","version":3,"expires":9,"value":"AQI="}"#]) {
            writer.entry(item).unwrap();
        }
        writer.history(HistoryPart::new("tail/a", b"\xfe")).unwrap();
        assert_eq!(writer.finish().unwrap(), 1);
        bytes
    }

    fn read(entries: &[&str]) -> Vec<StoredEntry> {
        entries.iter().map(|text| serde_json::from_str(text).unwrap()).collect()
    }

    fn items(bytes: Vec<u8>) -> anyhow::Result<Vec<Item>> {
        let mut reader = BackupReader::begin(Cursor::new(bytes))?;
        let mut items = Vec::new();
        while let Some(item) = reader.next()? {
            items.push(item);
        }
        Ok(items)
    }

    #[test]
    fn what_was_written_is_read() {
        let items = items(written()).unwrap();
        assert!(matches!(&items[0], Item::KeyFile(file) if **file.contents().unwrap() == *b"\xffhush"));
        assert!(matches!(&items[1], Item::Entry(entry) if entry.value == [1, 2][..] && entry.expires == Some(9)));
        assert!(
            matches!(&items[2], Item::History(part) if part.name == "tail/a" && part.contents().unwrap() == b"\xfe")
        );
        assert_eq!(items.len(), 3);
    }

    #[test]
    fn every_change_of_a_byte_is_noticed() {
        let original = written();
        for at in 0..original.len() {
            let mut bytes = original.clone();
            bytes[at] ^= 1;
            assert!(items(bytes).is_err(), "byte {at}");
        }
    }

    #[test]
    fn every_missing_end_is_noticed() {
        let original = written();
        for length in 0..original.len() - 1 {
            assert!(items(original[..length].to_vec()).is_err(), "{length} bytes");
        }
        assert!(items([original.as_slice(), b"x"].concat()).is_err());
    }

    #[test]
    fn a_newer_format_is_named() {
        let newer = String::from_utf8(written()).unwrap().replace(r#""format":2"#, r#""format":3"#);
        assert!(items(newer.into()).unwrap_err().to_string().contains("format 3"));
    }
}
