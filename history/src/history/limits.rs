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
        let before = text(&path)?;
        let lines: String =
            limits.iter().map(|(hash, by_name)| line(*hash, by_name)).chain(others(&before, limits)).collect();
        write_whole(&path, &lines)?;
        lines
    };
    bucket.map_or(Ok(()), |bucket| bucket.put_text(FILE, lines))
}

/// The lines with other limits, each once. What is no such line is left out.
fn others(before: &str, limits: &BTreeMap<[u8; 8], BTreeMap<String, u64>>) -> impl Iterator<Item = String> {
    let mut known: BTreeSet<String> = limits.keys().map(hex::encode).collect();
    let is_other = move |line: &&str| serde_json::from_str(line).is_ok_and(|Line { limits, .. }| known.insert(limits));
    before.lines().filter(is_other).take(KEPT_MAX).map(|line| format!("{line}\n"))
}

/// The limits with this hash in the file of a directory; empty if it does not have them.
pub(super) fn read(root: &Path, hash: [u8; 8]) -> Result<BTreeMap<String, u64>, Error> {
    let (text, hash) = (text(&root.join(FILE))?, hex::encode(hash));
    let mut lines = text.lines().filter_map(|line| serde_json::from_str::<Line>(line).ok());
    Ok(lines.find(|line| line.limits == hash).map(|line| line.by_name).unwrap_or_default())
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
    format!("{}\n", Value::Object(members))
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
        let lines = [(1, 10), (2, 20)]
            .map(|(byte, fuel)| format!("{{\"fuel\":{fuel},\"limits\":\"{}\"}}\n", hex::encode([byte; 8])));
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
}
