//! Files of devices: their names, formats and bytes.

use std::{
    fs::File,
    io::{self, Read},
    path::Path,
};

use anyhow::{Context, ensure};
use clap::ValueEnum;
use device_file::{Format, Row};

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

impl From<FileFormat> for Format {
    fn from(format: FileFormat) -> Self {
        match format {
            FileFormat::Csv => Self::Csv,
            FileFormat::Json => Self::Json,
        }
    }
}

/// Reads a file, or standard input if it is `-`. Without a format, the first character tells it.
pub(super) fn read(path: &Path, format: Option<FileFormat>) -> anyhow::Result<Vec<Row>> {
    let rows = contents(path).and_then(|bytes| Ok(device_file::read(&bytes, format.map(Format::from), ROWS_MAX)?));
    rows.with_context(|| format!("cannot read {}", path.display()))
}

fn contents(path: &Path) -> anyhow::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let input: &mut dyn Read = if path == Path::new("-") { &mut io::stdin().lock() } else { &mut File::open(path)? };
    input.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    ensure!(bytes.len() as u64 <= FILE_BYTES_MAX, "it has more than {} MiB: split it", FILE_BYTES_MAX >> 20);
    Ok(bytes)
}
