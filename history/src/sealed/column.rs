//! The values of a row group, column by column.
//!
//! Rows come a few at a time, each of which is then in the processor's cache for all of its columns.

pub(crate) mod texts;

use parquet::{
    data_type::{BoolType, Int32Type, Int64Type},
    errors::{ParquetError, Result},
    file::writer::{SerializedColumnWriter, SerializedRowGroupWriter},
};

use self::texts::{Levels, Texts};
use crate::record::View;

/// The columns of a row group.
#[derive(Default)]
pub(crate) struct Columns(Vec<Column>);

/// Rows that are added to the columns in the order of the schema.
pub(crate) struct Chunk<'a, 'c> {
    columns: &'a mut Vec<Column>,
    rows: &'a [View<'c>],
    next: usize,
}

/// The values of a column, and one or zero for each row of an optional one: whether it has a value.
struct Column {
    values: Values,
    levels: Option<Vec<i16>>,
}

enum Values {
    Longs(Vec<i64>),
    Ints(Vec<i32>),
    Bools(Vec<bool>),
    Texts(Texts),
}

impl Columns {
    pub(crate) fn chunk<'a, 'c>(&'a mut self, rows: &'a [View<'c>]) -> Chunk<'a, 'c> {
        Chunk { columns: &mut self.0, rows, next: 0 }
    }

    /// Writes all columns.
    pub(crate) fn write<W: std::io::Write + Send>(self, group: &mut SerializedRowGroupWriter<'_, W>) -> Result<()> {
        self.0.into_iter().try_for_each(|column| column.write(next(group)?))
    }
}

/// The column of a row group that is written next.
pub(crate) fn next<'a, W: std::io::Write + Send>(
    group: &'a mut SerializedRowGroupWriter<'_, W>,
) -> Result<SerializedColumnWriter<'a>> {
    let next = group.next_column()?;
    next.ok_or_else(|| ParquetError::General("the schema has fewer columns".to_owned()))
}

impl<'c> Chunk<'_, 'c> {
    pub(crate) fn longs(&mut self, value: impl Fn(&View<'c>) -> i64) {
        let column = self.column(Values::Longs(Vec::new()), None);
        if let Some((rows, Column { values: Values::Longs(values), .. })) = column {
            values.extend(rows.iter().map(value));
        }
    }

    pub(crate) fn ints(&mut self, value: impl Fn(&View<'c>) -> u32) {
        let column = self.column(Values::Ints(Vec::new()), None);
        if let Some((rows, Column { values: Values::Ints(values), .. })) = column {
            values.extend(rows.iter().map(|row| value(row) as i32));
        }
    }

    pub(crate) fn bools(&mut self, value: impl Fn(&View<'c>) -> bool) {
        let column = self.column(Values::Bools(Vec::new()), None);
        if let Some((rows, Column { values: Values::Bools(values), .. })) = column {
            values.extend(rows.iter().map(value));
        }
    }

    pub(crate) fn optional_longs(&mut self, value: impl Fn(&View<'c>) -> Option<i64>) {
        let column = self.column(Values::Longs(Vec::new()), Some(Vec::new()));
        if let Some((rows, Column { values: Values::Longs(values), levels: Some(levels) })) = column {
            values.extend(rows.iter().filter_map(|row| noted(levels, value(row))));
        }
    }

    pub(crate) fn optional_ints(&mut self, value: impl Fn(&View<'c>) -> Option<u32>) {
        let column = self.column(Values::Ints(Vec::new()), Some(Vec::new()));
        if let Some((rows, Column { values: Values::Ints(values), levels: Some(levels) })) = column {
            values.extend(rows.iter().filter_map(|row| noted(levels, value(row)).map(|value| value as i32)));
        }
    }

    pub(crate) fn bytes(&mut self, value: impl Fn(&View<'c>) -> &'c [u8]) {
        let column = self.column(Values::Texts(Texts::default()), None);
        if let Some((rows, Column { values: Values::Texts(texts), .. })) = column {
            rows.iter().for_each(|row| texts.push(value(row)));
        }
    }

    pub(crate) fn optional_bytes(&mut self, value: impl Fn(&View<'c>) -> Option<&'c [u8]>) {
        self.optional_texts(value);
    }

    /// Empty texts are null.
    pub(crate) fn optional_text(&mut self, value: impl Fn(&View<'c>) -> &'c str) {
        self.optional_texts(|row| Some(value(row)).filter(|text| !text.is_empty()));
    }

    /// The ids of records that were corrected.
    pub(crate) fn corrects(&mut self) {
        self.optional_texts(|row| row.corrects.map(|id| id.to_string()));
    }

    fn optional_texts<T: AsRef<[u8]>>(&mut self, value: impl Fn(&View<'c>) -> Option<T>) {
        let column = self.column(Values::Texts(Texts::default()), Some(Vec::new()));
        if let Some((rows, Column { values: Values::Texts(texts), levels: Some(levels) })) = column {
            let values = rows.iter().filter_map(|row| noted(levels, value(row)));
            values.for_each(|value| texts.push(value.as_ref()));
        }
    }

    /// The next column, which is new if these are its first rows.
    fn column(&mut self, values: Values, levels: Option<Vec<i16>>) -> Option<(&[View<'c>], &mut Column)> {
        let place = self.next;
        self.next += 1;
        if place == self.columns.len() {
            self.columns.push(Column { values, levels });
        }
        self.columns.get_mut(place).map(|column| (self.rows, column))
    }
}

/// Notes whether a row has a value.
fn noted<T>(levels: &mut Vec<i16>, value: Option<T>) -> Option<T> {
    levels.push(value.is_some().into());
    value
}

impl Column {
    fn write(self, mut out: SerializedColumnWriter<'_>) -> Result<()> {
        let levels = self.levels.as_deref();
        match self.values {
            Values::Longs(values) => _ = out.typed::<Int64Type>().write_batch(&values, levels, None)?,
            Values::Ints(values) => _ = out.typed::<Int32Type>().write_batch(&values, levels, None)?,
            Values::Bools(values) => _ = out.typed::<BoolType>().write_batch(&values, levels, None)?,
            Values::Texts(texts) => {
                let levels = levels.map(|definition| Levels { definition, repetition: None, value: 1 });
                texts.write(out.typed(), levels)?;
            }
        }
        out.close()
    }
}
