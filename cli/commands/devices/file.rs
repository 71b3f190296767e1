//! Devices in files: CSV and JSON, of Airlock, of The Things Stack, and as tools for ChirpStack write them.

mod csv;
mod fields;
mod json;

use std::{
    fs::File,
    io::{self, Read},
    path::Path,
};

use anyhow::{Context, ensure};
use clap::ValueEnum;

pub(super) use self::{
    csv::write as write_csv,
    fields::{BadField, Cells, without_keys},
    json::write as write_json,
};

/// Maximum size of a file.
const FILE_BYTES_MAX: u64 = 64 << 20;
/// Maximum number of devices in a file.
const ROWS_MAX: usize = 100_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FileFormat {
    /// A line of names, then a line per device; separated by commas, semicolons or tabs
    Csv,
    /// JSON objects, in lines or in an array
    Json,
}

/// A device in a file.
pub(super) struct Row {
    /// As spreadsheets count: the names are in row 1. In JSON, the first device is number 1.
    pub(super) number: usize,
    pub(super) cells: Result<Cells, BadField>,
}

/// Reads a file, or standard input if it is `-`. Without a format, the first character tells it.
pub(super) fn read(path: &Path, format: Option<FileFormat>) -> anyhow::Result<Vec<Row>> {
    let bytes = contents(path).and_then(utf_8).with_context(|| format!("cannot read {}", path.display()))?;
    // Spreadsheets put it in front of UTF-8.
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes);
    let first = bytes.iter().find(|byte| !byte.is_ascii_whitespace());
    let format = format.unwrap_or(match first {
        Some(b'{' | b'[') => FileFormat::Json,
        _ => FileFormat::Csv,
    });
    let rows = match format {
        FileFormat::Csv => csv::read(bytes),
        FileFormat::Json => json::read(bytes),
    };
    let rows = rows.with_context(|| format!("cannot read {}", path.display()))?;
    ensure!(rows.len() <= ROWS_MAX, "{} has more than {ROWS_MAX} devices: split it", path.display());
    Ok(rows)
}

/// The same in UTF-8, if it is UTF-16, which spreadsheets and Windows write, with a mark at its start or without one. All
/// formats begin with ASCII, so zeros between the first characters tell it then.
fn utf_8(bytes: Vec<u8>) -> anyhow::Result<Vec<u8>> {
    let (unit, units): (fn([u8; 2]) -> u16, _) = match bytes.as_slice() {
        [0xff, 0xfe, units @ ..] => (u16::from_le_bytes, units),
        [0xfe, 0xff, units @ ..] => (u16::from_be_bytes, units),
        units @ [1..=127, 0, 1..=127, 0, ..] => (u16::from_le_bytes, units),
        units @ [0, 1..=127, 0, 1..=127, ..] => (u16::from_be_bytes, units),
        _ => return Ok(bytes),
    };
    let (pairs, rest) = units.as_chunks::<2>();
    let units: Vec<u16> = pairs.iter().map(|pair| unit(*pair)).collect();
    let text = String::from_utf16(&units).ok().filter(|_| rest.is_empty());
    Ok(text.context("it begins as UTF-16, but is not")?.into_bytes())
}

fn contents(path: &Path) -> anyhow::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let input: &mut dyn Read = if path == Path::new("-") { &mut io::stdin().lock() } else { &mut File::open(path)? };
    input.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    ensure!(bytes.len() as u64 <= FILE_BYTES_MAX, "it has more than {} MiB: split it", FILE_BYTES_MAX >> 20);
    Ok(bytes)
}
