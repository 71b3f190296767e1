//! Limits of functions in a file beside those of the records, where other programs find them.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::File,
    io::Read,
    path::Path,
};

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::{
    Error,
    bucket::Bucket,
    directory::{if_there, write_whole},
    tail::disk::Disk,
};

/// The name of the file.
const FILE: &str = "limits.jsonl";
/// Maximum number of lines that were there before and are kept.
const KEPT_MAX: usize = 1000;

/// Maximum length of what is read of the file, in bytes: ours are far shorter.
const BYTES_MAX: u64 = 4 << 20;
/// The text before the checksum, which is the last member of a line: the CRC-32 of the line without it.
const CHECKSUM: &str = ",\"checksum\":\"";

/// The limits of a line, by their names.
#[derive(Deserialize)]
struct Line {
    /// The first bytes of their hash.
    limits: String,
    #[serde(flatten)]
    by_name: BTreeMap<String, u64>,
}

/// Writes a line for each of these limits, by the first bytes of their hashes. Lines of others stay: earlier processes had
/// other limits, and several can have the same directory.
pub(super) fn write(
    disk: &Disk,
    bucket: Option<&Bucket>,
    limits: &BTreeMap<[u8; 8], BTreeMap<String, u64>>,
) -> Result<(), Error> {
    let lines = {
        let _change = disk.change()?;
        let path = disk.root().join(FILE);
        let others = others(&text(&path)?, limits, &path);
        let lines: String = limits.iter().map(|(hash, by_name)| line(*hash, by_name)).chain(others).collect();
        write_whole(&path, &lines)?;
        lines
    };
    bucket.map_or(Ok(()), |bucket| bucket.put_text(FILE, lines))
}

/// The lines with other limits, each once. What is no such line is left out.
fn others(before: &str, limits: &BTreeMap<[u8; 8], BTreeMap<String, u64>>, path: &Path) -> Vec<String> {
    let mut known: BTreeSet<String> = limits.keys().map(hex::encode).collect();
    let (mut lines, mut changed) = (Vec::new(), 0_usize);
    for line in before.lines() {
        let Some(Line { limits, .. }) = parse(line) else {
            changed += 1;
            continue;
        };
        if known.insert(limits) {
            lines.push(format!("{line}\n"));
        }
    }
    if changed > 0 {
        tracing::warn!(path = %path.display(), lines = changed, "lines with limits have changed, and are left out");
    }
    lines.truncate(KEPT_MAX);
    lines
}

/// The limits with this hash in the file of a directory; empty if it does not have them. An error if they may be in a
/// line that has changed.
pub(super) fn read(root: &Path, hash: [u8; 8]) -> Result<BTreeMap<String, u64>, Error> {
    let path = root.join(FILE);
    let (text, hash) = (text(&path)?, hex::encode(hash));
    let mut changed: Option<usize> = None;
    for (number, line) in (1..).zip(text.lines()) {
        match parse(line) {
            Some(Line { limits, by_name }) if limits == hash => return Ok(by_name),
            Some(_) => {}
            None => _ = changed.get_or_insert(number),
        }
    }
    changed.map_or(Ok(BTreeMap::new()), |number| Err(Error::damaged(&path, format!("line {number} has changed"))))
}

/// The limits of a line; none if it has changed. Lines of earlier versions have no checksum.
fn parse(line: &str) -> Option<Line> {
    let Some((members, checksum)) = line.strip_suffix("\"}").and_then(|line| line.rsplit_once(CHECKSUM)) else {
        return serde_json::from_str(line).ok();
    };
    let line = format!("{members}}}");
    (self::checksum(&line) == checksum).then(|| serde_json::from_str(&line).ok())?
}

fn checksum(line: &str) -> String {
    format!("{:08x}", crc32fast::hash(line.as_bytes()))
}

/// The text of the file; empty if it does not exist.
fn text(path: &Path) -> Result<String, Error> {
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(BYTES_MAX).read_to_end(&mut bytes));
    if_there(read.map_err(Error::file("read", path)))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn line(hash: [u8; 8], by_name: &BTreeMap<String, u64>) -> String {
    let mut members: Map<String, Value> = by_name.iter().map(|(name, value)| (name.clone(), (*value).into())).collect();
    // As the column of that name has them.
    members.insert("limits".to_owned(), hex::encode(hash).into());
    let line = Value::Object(members).to_string();
    let members = line.strip_suffix('}').unwrap_or_default();
    format!("{members}{CHECKSUM}{}\"}}\n", checksum(&line))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn lines_of_others_stay_and_each_limits_have_one() {
        let dir = tempfile::tempdir().unwrap();
        let disk = Disk::new(dir.path().to_owned(), None);
        let of = |byte: u8, fuel: u64| BTreeMap::from([([byte; 8], BTreeMap::from([("fuel".to_owned(), fuel)]))]);
        write(&disk, None, &of(1, 10)).unwrap();
        write(&disk, None, &of(2, 20)).unwrap();
        write(&disk, None, &of(1, 10)).unwrap();
        let text = fs::read_to_string(dir.path().join(FILE)).unwrap();
        let lines = [(1, 10, "c99d1b9d"), (2, 20, "f1f9fb0d")].map(|(byte, fuel, checksum)| {
            let id = hex::encode([byte; 8]);
            format!("{{\"fuel\":{fuel},\"limits\":\"{id}\",\"checksum\":\"{checksum}\"}}\n")
        });
        assert_eq!(text, lines.concat());
        assert_eq!(read(dir.path(), [2; 8]).unwrap(), of(2, 20).into_values().next().unwrap());
        assert!(read(dir.path(), [4; 8]).unwrap().is_empty());
        fs::write(dir.path().join(FILE), format!("no line\n{text}")).unwrap();
        write(&disk, None, &of(3, 30)).unwrap();
        assert_eq!(fs::read_to_string(dir.path().join(FILE)).unwrap().lines().count(), 3);
        let long = format!("{{\"limits\":\"{}\"}}", "9".repeat(BYTES_MAX as usize));
        fs::write(dir.path().join(FILE), format!("{text}{long}")).unwrap();
        write(&disk, None, &of(3, 30)).unwrap();
        assert_eq!(fs::read_to_string(dir.path().join(FILE)).unwrap().lines().count(), 3);
    }

    #[test]
    fn a_line_that_has_changed_is_named_and_never_read_as_other_limits() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(FILE);
        let by_name = BTreeMap::from([("fuel".to_owned(), 1234), ("memory_bytes".to_owned(), 5678)]);
        let (first, second) = (line([1; 8], &by_name), line([2; 8], &by_name));
        for place in 0..second.len() - 1 {
            for bit in 0..7 {
                let mut changed = second.clone().into_bytes();
                changed[place] ^= 1 << bit;
                fs::write(&path, [first.as_bytes(), &changed].concat()).unwrap();
                assert_eq!(read(dir.path(), [1; 8]).unwrap(), by_name);
                match read(dir.path(), [2; 8]) {
                    Err(Error::Damaged { source, .. }) => assert!(source.to_string().starts_with("line "), "{source}"),
                    read => panic!("{place} {bit}: {read:?}"),
                }
            }
        }
        // Nobody else's line has changed, so that these limits are not known.
        fs::write(&path, &first).unwrap();
        assert!(read(dir.path(), [2; 8]).unwrap().is_empty());
        // Earlier versions wrote none.
        let earlier = format!("{{\"fuel\":7,\"limits\":\"{}\"}}\n", hex::encode([3; 8]));
        fs::write(&path, &earlier).unwrap();
        assert_eq!(read(dir.path(), [3; 8]).unwrap()["fuel"], 7);
        write(&Disk::new(dir.path().to_owned(), None), None, &BTreeMap::from([([1; 8], by_name)])).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), [first, earlier].concat());
    }
}
