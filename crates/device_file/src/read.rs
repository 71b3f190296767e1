//! Reads a file of devices, whatever it is.

use std::borrow::Cow;

use crate::{Error, csv, json, row::Row};

/// A format of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// A line of names, then a line per device; separated by commas, semicolons or tabs.
    Csv,
    /// JSON objects, in lines or in an array.
    Json,
}

/// Reads at most `rows_max` devices. Without a format, the first character tells it.
pub fn read(bytes: &[u8], format: Option<Format>, rows_max: usize) -> Result<Vec<Row>, Error> {
    let bytes = utf_8(bytes)?;
    // Spreadsheets put it in front of UTF-8.
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes);
    let first = bytes.iter().find(|byte| !byte.is_ascii_whitespace());
    let format = format.unwrap_or(match first {
        Some(b'{' | b'[') => Format::Json,
        _ => Format::Csv,
    });
    let rows = match format {
        Format::Csv => csv::read(bytes)?,
        Format::Json => json::read(bytes)?,
    };
    if rows.len() > rows_max { Err(Error::TooMany(rows_max)) } else { Ok(rows) }
}

/// The same in UTF-8, if it is UTF-16, which spreadsheets and Windows write, with a mark at its start or without one. All
/// formats begin with ASCII, so zeros between the first characters tell it then.
fn utf_8(bytes: &[u8]) -> Result<Cow<'_, [u8]>, Error> {
    let (unit, units): (fn([u8; 2]) -> u16, _) = match bytes {
        [0xff, 0xfe, units @ ..] => (u16::from_le_bytes, units),
        [0xfe, 0xff, units @ ..] => (u16::from_be_bytes, units),
        units @ [1..=127, 0, 1..=127, 0, ..] => (u16::from_le_bytes, units),
        units @ [0, 1..=127, 0, 1..=127, ..] => (u16::from_be_bytes, units),
        _ => return Ok(Cow::Borrowed(bytes)),
    };
    let (pairs, rest) = units.as_chunks::<2>();
    let units: Vec<u16> = pairs.iter().map(|pair| unit(*pair)).collect();
    let text = String::from_utf16(&units).ok().filter(|_| rest.is_empty());
    Ok(Cow::Owned(text.ok_or(Error::Utf16)?.into_bytes()))
}
