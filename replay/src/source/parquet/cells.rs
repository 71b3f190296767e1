//! The cells of a column.

use std::sync::Arc;

use history::Chunks;
use parquet::{
    basic::{ConvertedType, LogicalType, TimeUnit, Type},
    column::reader::{ColumnReader, ColumnReaderImpl, get_column_reader},
    data_type::DataType,
    errors::{ParquetError, Result},
    file::{metadata::RowGroupMetaData, serialized_reader::SerializedPageReader},
    schema::types::ColumnDescriptor,
};
use types::Timestamp;

use crate::{Encoding, columns::moment};

/// A value of one of the types that the parts of an uplink have.
pub(super) enum Cell {
    Text(Vec<u8>),
    Bytes(Vec<u8>),
    Number(i64),
    Time(Timestamp),
}

/// A column of a row group, read from its first row to its last.
pub(super) struct Cells {
    reader: ColumnReader,
    is_text: bool,
    /// Nanoseconds in a unit of time; `None` for a number.
    nanos: Option<i64>,
    /// The level of a cell that has a value.
    level: i16,
}

impl Cells {
    pub(super) fn open(chunks: &Arc<Chunks>, group: &RowGroupMetaData, place: usize) -> Result<Self> {
        let column = group.column(place);
        let description = column.column_descr_ptr();
        if description.max_rep_level() > 0 {
            let name = description.path().string();
            return Err(ParquetError::General(format!("the column `{name}` has lists")));
        }
        let rows = usize::try_from(group.num_rows()).unwrap_or(0);
        let pages = SerializedPageReader::new(Arc::clone(chunks), column, rows, None)?;
        let (is_text, level) = (is_text(&description), description.max_def_level());
        let nanos = nanos(&description);
        Ok(Self { reader: get_column_reader(description, Box::new(pages)), is_text, nanos, level })
    }

    /// The next cells; none for each that is null.
    pub(super) fn take(&mut self, count: usize) -> Result<Vec<Option<Cell>>> {
        let (nanos, level, is_text) = (self.nanos, self.level, self.is_text);
        let number = |number: i64| match nanos {
            Some(nanos) => Cell::Time(Timestamp::from_nanos(number.saturating_mul(nanos))),
            None => Cell::Number(number),
        };
        let bytes = |bytes: &[u8]| if is_text { Cell::Text(bytes.to_vec()) } else { Cell::Bytes(bytes.to_vec()) };
        match &mut self.reader {
            ColumnReader::Int32ColumnReader(reader) => read(reader, count, level, |value| number((*value).into())),
            ColumnReader::Int64ColumnReader(reader) => read(reader, count, level, |value| number(*value)),
            ColumnReader::Int96ColumnReader(reader) => {
                read(reader, count, level, |value| Cell::Time(Timestamp::from_nanos(value.to_nanos())))
            }
            ColumnReader::ByteArrayColumnReader(reader) => read(reader, count, level, |value| bytes(value.data())),
            ColumnReader::FixedLenByteArrayColumnReader(reader) => {
                read(reader, count, level, |value| bytes(value.data()))
            }
            _ => Err(ParquetError::General("a column has numbers where texts or whole numbers are needed".to_owned())),
        }
    }
}

fn read<T: DataType>(
    reader: &mut ColumnReaderImpl<T>,
    count: usize,
    level: i16,
    cell: impl Fn(&T::T) -> Cell,
) -> Result<Vec<Option<Cell>>> {
    let (mut levels, mut values) = (Vec::new(), Vec::new());
    let (taken, ..) = reader.read_records(count, Some(&mut levels), None, &mut values)?;
    if taken != count {
        return Err(ParquetError::General("a column has too few rows".to_owned()));
    }
    let mut values = values.iter();
    // Without levels, all have a value.
    let has_value = |row: usize| levels.get(row).is_none_or(|own| *own == level);
    Ok((0..count).map(|row| has_value(row).then(|| values.next()).flatten().map(&cell)).collect())
}

/// Returns true if a column has texts, and not bytes.
pub(super) fn is_text(column: &ColumnDescriptor) -> bool {
    let is_logical = matches!(column.logical_type_ref(), Some(LogicalType::String | LogicalType::Json));
    let is_converted = matches!(column.converted_type(), ConvertedType::UTF8 | ConvertedType::JSON);
    column.physical_type() == Type::BYTE_ARRAY && (is_logical || is_converted)
}

fn nanos(column: &ColumnDescriptor) -> Option<i64> {
    match (column.logical_type_ref(), column.converted_type()) {
        (Some(LogicalType::Timestamp(time)), _) => Some(match time.unit {
            TimeUnit::MILLIS => 1_000_000,
            TimeUnit::MICROS => 1000,
            TimeUnit::NANOS => 1,
        }),
        (_, ConvertedType::TIMESTAMP_MILLIS) => Some(1_000_000),
        (_, ConvertedType::TIMESTAMP_MICROS) => Some(1000),
        _ => None,
    }
}

impl Cell {
    /// Returns true if the cell is this text.
    pub(super) fn is(&self, text: &str) -> bool {
        matches!(self, Self::Text(bytes) | Self::Bytes(bytes) if bytes == text.as_bytes())
    }

    /// As a number; a time in milliseconds.
    pub(super) fn number(&self) -> Option<i64> {
        match self {
            Self::Number(number) => Some(*number),
            Self::Time(time) => Some(time.as_millis()),
            Self::Text(_) | Self::Bytes(_) => None,
        }
    }

    pub(super) fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(bytes) | Self::Bytes(bytes) => str::from_utf8(bytes).ok(),
            Self::Number(_) | Self::Time(_) => None,
        }
    }

    /// As a text; bytes may be one, too, and numbers as they are written.
    pub(super) fn text(self, part: &str) -> Result<String, String> {
        match self {
            Self::Text(bytes) | Self::Bytes(bytes) => {
                String::from_utf8(bytes).map_err(|_| format!("its {part} is not UTF-8"))
            }
            Self::Number(number) => Ok(number.to_string()),
            Self::Time(time) => Ok(time.to_rfc3339()),
        }
    }

    /// As a payload: bytes, or a text that has them.
    pub(super) fn bytes(self, encoding: Encoding) -> Result<Vec<u8>, String> {
        match self {
            Self::Bytes(bytes) => Ok(bytes),
            other => encoding.decode(other.text("payload")?.trim()),
        }
    }

    pub(super) fn port(self) -> Result<u8, String> {
        let text = self.text("port")?;
        text.parse().map_err(|_| format!("its port is `{text}`, not a number from 0 to 255"))
    }

    pub(super) fn time(self) -> Result<Timestamp, String> {
        match self {
            Self::Time(time) => Ok(time),
            other => moment(&other.text("time")?),
        }
    }
}
