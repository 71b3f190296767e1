//! Limits of functions in a file beside those of the records, where other programs find them.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::{Error, bucket::Bucket, directory::write_whole, tail::disk::Disk};

/// The name of the file.
const FILE: &str = "limits.jsonl";

/// Writes a line for each of these limits, by the first bytes of their hashes.
pub(super) fn write(
    disk: &Disk,
    bucket: Option<&Bucket>,
    limits: &BTreeMap<[u8; 8], BTreeMap<String, u64>>,
) -> Result<(), Error> {
    let lines: String = limits.iter().map(|(hash, by_name)| line(*hash, by_name)).collect();
    {
        let _change = disk.change()?;
        write_whole(&disk.root().join(FILE), &lines)?;
    }
    bucket.map_or(Ok(()), |bucket| bucket.put_text(FILE, lines))
}

fn line(hash: [u8; 8], by_name: &BTreeMap<String, u64>) -> String {
    let mut members: Map<String, Value> = by_name.iter().map(|(name, value)| (name.clone(), (*value).into())).collect();
    // As the column of that name has them.
    members.insert("limits".to_owned(), hex::encode(hash).into());
    format!("{}\n", Value::Object(members))
}
