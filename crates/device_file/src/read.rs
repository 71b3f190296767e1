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
    match format {
        Format::Csv => csv::read(bytes, rows_max),
        Format::Json => json::read(bytes, rows_max),
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn count(text: &str, rows_max: usize) -> Result<usize, String> {
        read(text.as_bytes(), None, rows_max).map(|rows| rows.len()).map_err(|error| error.to_string())
    }

    #[test]
    fn rows_are_counted_wherever_they_are_and_blank_ones_at_the_end_are_none() {
        let blank = ",\n".repeat(100);
        for (text, expected) in [
            (format!("dev_id,x\na,\nb,\n{blank}"), 2),
            (format!("dev_id,x\na,\n,\nb,\n{blank}"), 3),
            ("{\"dev_id\":\"a\"} [{\"dev_id\":\"b\"}, [1, \"x\", null, true, -1, 0.5]]".to_owned(), 8),
            ("{\"total\":2,\"devices\":[{\"dev_id\":\"a\"},{\"dev_id\":\"b\"}]}".to_owned(), 2),
            ("{\"end_device\":{\"ids\":{\"device_id\":\"a\"}}}\n".to_owned(), 1),
        ] {
            assert_eq!(count(&text, expected), Ok(expected), "{text}");
            let refused = count(&text, expected - 1);
            assert!(refused.as_ref().is_err_and(|reason| reason.contains("split it")), "{refused:?}: {text}");
        }
    }

    #[test]
    fn rows_have_the_numbers_that_spreadsheets_show() {
        for (text, expected) in [
            ("dev_id,x\na,\nb,\n", [2_usize, 3]),
            ("dev_id,x\n\na,\n\n\nb,", [3, 6]),
            ("\n\ndev_id,x\na,\n,\nb,\n\n", [4, 6]),
            ("sep=,\n\ndev_id,x\n\na,\nb,\n", [5, 6]),
            ("dev_id,x\na,\"one\n\ntwo\"\n\nb,\n", [2, 4]),
        ] {
            for end in ["\n", "\r\n"] {
                let text = text.replace('\n', end);
                let rows = read(text.as_bytes(), None, 10).unwrap();
                let rows =
                    rows.iter().filter(|row| row.cells.as_ref().is_ok_and(|cells| cells.get("dev_id").is_some()));
                assert_eq!(rows.map(|row| row.number).collect::<Vec<_>>(), expected, "{text:?}");
            }
        }
    }

    #[test]
    fn reading_ends_with_the_first_row_that_is_too_many() {
        // Behind it, nothing is looked at.
        for text in ["dev_id\na\nb\n\"", "[{\"dev_id\":\"a\"},{\"dev_id\":\"b\"},<"] {
            assert!(count(text, 1).is_err_and(|reason| reason.contains("more than 1 devices")), "{text}");
        }
    }
}
