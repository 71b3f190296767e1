//! Writes one column after the other.

use std::mem;

use bytes::Bytes;
use parquet::{
    data_type::{BoolType, ByteArray, ByteArrayType, DataType, Int32Type, Int64Type},
    errors::{ParquetError, Result},
    file::writer::SerializedRowGroupWriter,
};

use crate::record::View;

/// Writes the columns of a row group, in the order in which they are called.
pub(crate) struct Columns<'a, 'b, 'c, W: std::io::Write + Send> {
    group: &'a mut SerializedRowGroupWriter<'b, W>,
    rows: &'a [View<'c>],
    levels: Vec<i16>,
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl<'a, 'b, 'c, W: std::io::Write + Send> Columns<'a, 'b, 'c, W> {
    pub(crate) fn new(group: &'a mut SerializedRowGroupWriter<'b, W>, rows: &'a [View<'c>]) -> Self {
        Self { group, rows, levels: Vec::new(), bytes: Vec::new(), ends: Vec::new() }
    }

    pub(crate) fn longs(&mut self, value: impl Fn(&View<'c>) -> i64) -> Result<()> {
        let values: Vec<_> = self.rows.iter().map(value).collect();
        self.write::<Int64Type>(&values, false)
    }

    pub(crate) fn ints(&mut self, value: impl Fn(&View<'c>) -> u32) -> Result<()> {
        let values: Vec<_> = self.rows.iter().map(|row| value(row) as i32).collect();
        self.write::<Int32Type>(&values, false)
    }

    pub(crate) fn bools(&mut self, value: impl Fn(&View<'c>) -> bool) -> Result<()> {
        let values: Vec<_> = self.rows.iter().map(value).collect();
        self.write::<BoolType>(&values, false)
    }

    pub(crate) fn optional_longs(&mut self, value: impl Fn(&View<'c>) -> Option<i64>) -> Result<()> {
        let values = self.optional(value);
        self.write::<Int64Type>(&values, true)
    }

    pub(crate) fn optional_ints(&mut self, value: impl Fn(&View<'c>) -> Option<u32>) -> Result<()> {
        let values = self.optional(|row| value(row).map(|value| value as i32));
        self.write::<Int32Type>(&values, true)
    }

    /// Values that are there, and levels that say where.
    fn optional<T>(&mut self, value: impl Fn(&View<'c>) -> Option<T>) -> Vec<T> {
        self.levels.clear();
        let mut values = Vec::new();
        for row in self.rows {
            let value = value(row);
            self.levels.push(value.is_some().into());
            values.extend(value);
        }
        values
    }

    pub(crate) fn bytes(&mut self, value: impl Fn(&View<'c>) -> &'c [u8]) -> Result<()> {
        self.texts(|row| Some(value(row)), false)
    }

    pub(crate) fn optional_bytes(&mut self, value: impl Fn(&View<'c>) -> Option<&'c [u8]>) -> Result<()> {
        self.texts(value, true)
    }

    /// Empty texts are null.
    pub(crate) fn optional_text(&mut self, value: impl Fn(&View<'c>) -> &'c str) -> Result<()> {
        self.texts(|row| Some(value(row)).filter(|text| !text.is_empty()).map(str::as_bytes), true)
    }

    /// Texts of which there are few, known beforehand.
    pub(crate) fn words(&mut self, value: impl Fn(&View<'c>) -> &'static str) -> Result<()> {
        let values: Vec<_> =
            self.rows.iter().map(|row| ByteArray::from(Bytes::from_static(value(row).as_bytes()))).collect();
        self.write::<ByteArrayType>(&values, false)
    }

    /// The ids of records that were corrected.
    pub(crate) fn corrects(&mut self) -> Result<()> {
        let values = self.optional(|row| row.corrects.map(|id| ByteArray::from(id.to_string().as_str())));
        self.write::<ByteArrayType>(&values, true)
    }

    fn texts(&mut self, value: impl Fn(&View<'c>) -> Option<&'c [u8]>, is_optional: bool) -> Result<()> {
        self.levels.clear();
        self.ends.clear();
        let mut bytes = mem::take(&mut self.bytes);
        bytes.clear();
        for row in self.rows {
            let value = value(row);
            self.levels.push(value.is_some().into());
            if let Some(value) = value {
                bytes.extend_from_slice(value);
                self.ends.push(bytes.len());
            }
        }
        // One allocation for all values, of which each is a part.
        let shared = Bytes::from(bytes);
        let starts = [0].into_iter().chain(self.ends.iter().copied());
        let values: Vec<_> =
            starts.zip(&self.ends).map(|(start, end)| ByteArray::from(shared.slice(start..*end))).collect();
        self.write::<ByteArrayType>(&values, is_optional)?;
        drop(values);
        // The next column uses the same memory.
        self.bytes = shared.try_into_mut().map(Vec::from).unwrap_or_default();
        Ok(())
    }

    fn write<T: DataType>(&mut self, values: &[T::T], is_optional: bool) -> Result<()> {
        let column = self.group.next_column()?;
        let mut column = column.ok_or_else(|| ParquetError::General("the schema has fewer columns".to_owned()))?;
        column.typed::<T>().write_batch(values, is_optional.then_some(&self.levels), None)?;
        column.close()
    }
}
