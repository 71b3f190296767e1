//! CSV: columns by their names, in any order. Columns that nothing is known of are left alone.

use std::{io::Write, iter};

use api::rest::handler::{Device, LorawanDevice};
use csv::StringRecord;

use crate::{
    Error,
    fields::{BadField, Cells, FIELDS, Field, KEYS, get},
    row::Row,
};

/// A field, and the columns that may have it, in the order in which they count.
type Columns = (&'static str, Vec<usize>);

/// Reads rows until they are too many: a small file may have very many of them.
pub(crate) fn read(bytes: &[u8], rows_max: usize) -> Result<Vec<Row>, Error> {
    let mut builder = csv::ReaderBuilder::new();
    let (delimiter, skipped) = separator(bytes).unwrap_or_else(|| (delimiter(bytes), 0));
    let bytes = &bytes[skipped..];
    let mut reader = builder.delimiter(delimiter).trim(csv::Trim::All).flexible(true).from_reader(bytes);
    let header = reader.headers().map_err(Error::Header)?;
    let (columns, length) = (columns(header), header.len());
    if !columns.iter().any(|(name, _)| ["dev_id", "dev_eui"].contains(name)) {
        return Err(Error::Columns);
    }
    let (mut rows, mut blank) = (Vec::new(), Vec::new());
    // The parser skips empty lines; spreadsheets count them.
    let mut number = 1 + usize::from(skipped > 0) + empty_lines(bytes, 0);
    let mut start = reader.position().byte();
    let mut records = reader.records();
    while let Some(record) = records.next() {
        number += 1 + empty_lines(bytes, start);
        start = records.reader().position().byte();
        let is_blank = record.as_ref().is_ok_and(|record| record.iter().all(str::is_empty));
        let row = Row { number, cells: row_cells(&columns, length, &record) };
        if is_blank {
            // Spreadsheets end with rows that had something in them once.
            if blank.len() <= rows_max {
                blank.push(row);
            }
            continue;
        }
        rows.append(&mut blank);
        rows.push(row);
        if rows.len() > rows_max {
            return Err(Error::TooMany(rows_max));
        }
    }
    Ok(rows)
}

/// Writes devices; those without keys have no columns for them.
pub fn write<'a>(to: &mut dyn Write, devices: impl Iterator<Item = &'a Device>, with_keys: bool) -> Result<(), Error> {
    let names: Vec<_> =
        FIELDS.iter().map(|field| field.name).filter(|name| with_keys || !KEYS.contains(name)).collect();
    let mut writer = csv::Writer::from_writer(to);
    writer.write_record(&names).map_err(Error::Row)?;
    for device in devices {
        let nothing = LorawanDevice::default();
        let lorawan = device.lorawan_device.as_ref().unwrap_or(&nothing);
        writer.write_record(names.iter().map(|name| get(device, lorawan, name))).map_err(Error::Row)?;
    }
    writer.flush().map_err(Error::Write)
}

/// Reads the row with the separator that spreadsheets may write before the names of the columns, as in `sep=;`. The
/// separator may be repeated, where all rows have the same number of cells. Also returns the start of the next row.
fn separator(bytes: &[u8]) -> Option<(u8, usize)> {
    let (row, behind) = bytes.split_at(bytes.iter().position(|byte| *byte == b'\n')? + 1);
    let text: Vec<u8> = row.iter().copied().filter(|byte| !b"\"\r\n".contains(byte)).collect();
    let (name, rest) = text.split_at_checked(4)?;
    let (separator, more) = rest.split_first()?;
    let is_separator = separator.is_ascii() && !separator.is_ascii_alphanumeric() && *separator != b'\\';
    let is_row = name.eq_ignore_ascii_case(b"sep=") && is_separator && more.iter().all(|byte| byte == separator);
    (is_row && !behind.is_empty()).then_some((*separator, row.len()))
}

/// Returns the delimiter that is most frequent in the first line that is not empty.
fn delimiter(bytes: &[u8]) -> u8 {
    let line = bytes.split(|byte| b"\r\n".contains(byte)).find(|line| !line.is_empty()).unwrap_or_default();
    let count = |delimiter: &u8| line.iter().filter(|byte| *byte == delimiter).count();
    [b',', b'\t', b';'].into_iter().max_by_key(count).unwrap_or(b',')
}

/// Counts empty lines between the end of a row and the next one. That row's line break may have its second half there.
fn empty_lines(bytes: &[u8], start: u64) -> usize {
    let start = usize::try_from(start).unwrap_or(usize::MAX);
    let (before, behind) = bytes.split_at(start.min(bytes.len()));
    let previous = iter::once(before.last().unwrap_or(&0)).chain(behind);
    let breaks = previous.zip(behind).take_while(|(_, byte)| b"\r\n".contains(byte));
    breaks.filter(|pair| *pair != (&b'\r', &b'\n')).count()
}

fn columns(header: &StringRecord) -> Vec<Columns> {
    let names: Vec<_> = header.iter().map(normalized).collect();
    let places = |field: &Field| {
        let known = [field.name].into_iter().chain(field.columns.iter().copied());
        known.filter_map(|known| names.iter().position(|name| name == known)).collect::<Vec<_>>()
    };
    let found = FIELDS.iter().map(|field| (field.name, places(field)));
    found.filter(|(_, places)| !places.is_empty()).collect()
}

/// `Device EUI` and `device-eui` are `device_eui`.
fn normalized(name: &str) -> String {
    name.trim().to_lowercase().replace([' ', '-'], "_")
}

fn row_cells(columns: &[Columns], length: usize, record: &csv::Result<StringRecord>) -> Result<Cells, BadField> {
    let bad = |reason: String| Err(BadField { name: "", reason });
    match record {
        Ok(record) if record.len() != length => {
            bad(format!("the row has {} cells, and the first row {length}", record.len()))
        }
        Ok(record) => Ok(cells(columns, record)),
        Err(error) if matches!(error.kind(), csv::ErrorKind::Utf8 { .. }) => bad("the row is not UTF-8".to_owned()),
        Err(_) => bad("the row cannot be read".to_owned()),
    }
}

fn cells(columns: &[Columns], record: &StringRecord) -> Cells {
    let mut cells = Cells::default();
    for (name, places) in columns {
        let texts = places.iter().filter_map(|place| record.get(*place));
        // Tools write a key of zeros for one that is not set.
        let is_zero_key = |text: &str| text.len() == 32 && text.bytes().all(|byte| byte == b'0');
        if let Some(text) = texts.into_iter().find(|text| !text.is_empty() && !is_zero_key(text)) {
            cells.set(name, text.to_owned());
        }
    }
    cells
}
