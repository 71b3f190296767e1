//! Reads all columns of some rows.

use std::{path::Path, str::Utf8Error};

use parquet::{
    data_type::{BoolType, ByteArray, ByteArrayType, Int32Type, Int64Type},
    errors::{ParquetError, Result as ParquetResult},
};

use crate::{
    Error, Outcome, Record, RecordId,
    record::{View, moment},
    sealed::{
        file::{ColumnRows, Group, SealedFile},
        gateways::{
            join::join,
            lists::{ListCursor, Lists},
        },
        schema::{Column, PAGE_ROWS},
        selection::Selection,
    },
};

/// Reads all columns of some rows of a row group, from first to last.
pub(crate) struct Rows<'a> {
    group: Group<'a>,
    columns: Vec<AnyColumn>,
    /// Only if a row had metadata so far.
    gateways: Option<Lists>,
}

enum AnyColumn {
    Long(ColumnRows<Int64Type>),
    Int(ColumnRows<Int32Type>),
    Bool(ColumnRows<BoolType>),
    Bytes(ColumnRows<ByteArrayType>),
}

/// Place in each column, while rows are read one after the other.
pub(crate) struct Cursor<'a> {
    columns: &'a [AnyColumn],
    row: usize,
    /// Number of values passed in each column.
    passed: Vec<usize>,
}

/// The columns in the order of the file, without those of gateways, which are read as lists. Older files lack the last.
const COLUMNS: [Column; 29] = [
    Column::Recorded,
    Column::Writer,
    Column::Number,
    Column::Received,
    Column::ReceivedNanos,
    Column::AppId,
    Column::DevId,
    Column::Kind,
    Column::Port,
    Column::Counter,
    Column::Confirmed,
    Column::IsRetry,
    Column::Payload,
    Column::Metadata,
    Column::Extra,
    Column::Seed,
    Column::Functions,
    Column::Version,
    Column::Limits,
    Column::Outcome,
    Column::Result,
    Column::Normalized,
    Column::Failure,
    Column::Logs,
    Column::Warnings,
    Column::Fuel,
    Column::Revision,
    Column::Corrects,
    Column::Microseconds,
];

/// The place of a column among these.
fn place(column: Column) -> usize {
    // Those of gateways are before it in the file.
    if column == Column::Microseconds { Column::GatewayId as usize } else { column as usize }
}

impl AnyColumn {
    fn open(group: Group<'_>, column: Column) -> ParquetResult<Self> {
        Ok(match column {
            Column::Recorded | Column::Received | Column::Seed | Column::Fuel => Self::Long(group.read(column)?),
            Column::Writer
            | Column::Number
            | Column::ReceivedNanos
            | Column::Port
            | Column::Counter
            | Column::Version
            | Column::Revision
            | Column::Microseconds => Self::Int(group.read(column)?),
            Column::Confirmed | Column::IsRetry => Self::Bool(group.read(column)?),
            _ => Self::Bytes(group.read(column)?),
        })
    }

    fn take(&mut self, rows: &Selection) -> ParquetResult<()> {
        match self {
            Self::Long(column) => column.take(rows),
            Self::Int(column) => column.take(rows),
            Self::Bool(column) => column.take(rows),
            Self::Bytes(column) => column.take(rows),
        }
    }

    fn levels(&self) -> &[i16] {
        match self {
            Self::Long(column) => &column.levels,
            Self::Int(column) => &column.levels,
            Self::Bool(column) => &column.levels,
            Self::Bytes(column) => &column.levels,
        }
    }
}

impl<'a> Rows<'a> {
    pub(crate) fn open(group: Group<'a>) -> ParquetResult<Self> {
        let columns = COLUMNS.into_iter().filter(|column| group.has(*column));
        let columns = columns.map(|column| AnyColumn::open(group, column)).collect::<ParquetResult<_>>()?;
        Ok(Self { group, columns, gateways: None })
    }

    /// Reads these rows, which follow those that were read before, and shows each.
    pub(crate) fn take(
        &mut self,
        rows: &Selection,
        mut show: impl FnMut(View<'_>) -> ParquetResult<()>,
    ) -> ParquetResult<()> {
        self.columns.iter_mut().try_for_each(|column| column.take(rows))?;
        self.take_gateways(rows)?;
        let mut gateways = self.gateways.as_ref().filter(|_| self.have_metadata()).map(Lists::cursor);
        let mut cursor = Cursor { columns: &self.columns, row: 0, passed: vec![0; self.columns.len()] };
        let mut metadata = String::new();
        for row in 0..rows.len() {
            cursor.row = row;
            let view = cursor.view()?;
            let list = gateways.as_mut().map(ListCursor::next_list).transpose()?.flatten();
            let Some(list) = list else {
                show(view)?;
                continue;
            };
            metadata.clear();
            join(view.metadata, list, view.received, &mut metadata).ok_or_else(|| damaged("metadata"))?;
            show(View { metadata: &metadata, ..view })?;
        }
        Ok(())
    }

    /// Reads the gateways of these rows, unless no row has metadata, as where there are only simulated uplinks.
    fn take_gateways(&mut self, rows: &Selection) -> ParquetResult<()> {
        if !self.group.has(Column::GatewayId) || !self.have_metadata() {
            return Ok(());
        }
        let gateways = match self.gateways.take() {
            Some(gateways) => gateways,
            None => Lists::open(self.group)?,
        };
        self.gateways.insert(gateways).take(rows)
    }

    /// Returns true if one of the rows that were read last has metadata.
    fn have_metadata(&self) -> bool {
        let column = self.columns.get(Column::Metadata as usize);
        matches!(column, Some(AnyColumn::Bytes(column)) if !column.values.is_empty())
    }
}

impl<'a> Cursor<'a> {
    /// The next row.
    fn view(&mut self) -> ParquetResult<View<'a>> {
        let id =
            RecordId::new(self.long(Column::Recorded)? as u64, self.int(Column::Writer)?, self.int(Column::Number)?);
        let (millis, nanos) = (self.long(Column::Received)?, self.optional_int(Column::ReceivedNanos).unwrap_or(0));
        let functions = self.optional_bytes(Column::Functions).map(TryInto::try_into).transpose();
        let limits = self.optional_bytes(Column::Limits).map(TryInto::try_into).transpose();
        let outcome = Outcome::from_name(self.text(Column::Outcome)?.as_bytes());
        let corrects = self.text(Column::Corrects)?;
        Ok(View {
            id,
            received: moment::of_parts(millis, nanos.into()),
            app_id: self.text(Column::AppId)?,
            dev_id: self.text(Column::DevId)?,
            kind: self.text(Column::Kind)?,
            port: self.int(Column::Port)?.try_into().map_err(|_| damaged("a port"))?,
            counter: self.int(Column::Counter)?,
            confirmed: self.bool(Column::Confirmed)?,
            is_retry: self.bool(Column::IsRetry)?,
            payload: self.optional_bytes(Column::Payload).unwrap_or_default(),
            metadata: self.text(Column::Metadata)?,
            extra: self.text(Column::Extra)?,
            seed: self.optional_long(Column::Seed).map(|seed| seed as u64),
            functions: functions.map_err(|_| damaged("a hash of functions"))?,
            version: self.optional_int(Column::Version),
            limits: limits.map_err(|_| damaged("a hash of limits"))?,
            outcome: outcome.ok_or_else(|| damaged("an outcome"))?,
            result: self.text(Column::Result)?,
            normalized: self.text(Column::Normalized)?,
            failure: self.optional_text(Column::Failure)?,
            logs: self.text(Column::Logs)?,
            warnings: self.text(Column::Warnings)?,
            fuel: self.long(Column::Fuel)? as u64,
            microseconds: self.optional_int(Column::Microseconds),
            revision: self.int(Column::Revision)?,
            corrects: if corrects.is_empty() { None } else { Some(corrects.parse().map_err(|_| damaged("an id"))?) },
        })
    }

    /// Returns the index of this row's value in the column; none if it has none.
    fn index(&mut self, column: Column) -> Option<usize> {
        let levels = self.columns.get(place(column))?.levels();
        if levels.is_empty() {
            return Some(self.row);
        }
        let passed = self.passed.get_mut(place(column))?;
        let index = *passed;
        let is_there = *levels.get(self.row)? > 0;
        *passed += usize::from(is_there);
        is_there.then_some(index)
    }

    fn optional_long(&mut self, column: Column) -> Option<i64> {
        let index = self.index(column)?;
        let AnyColumn::Long(values) = self.columns.get(place(column))? else { return None };
        values.values.get(index).copied()
    }

    fn optional_int(&mut self, column: Column) -> Option<u32> {
        let index = self.index(column)?;
        let AnyColumn::Int(values) = self.columns.get(place(column))? else { return None };
        values.values.get(index).map(|value| *value as u32)
    }

    fn optional_bytes(&mut self, column: Column) -> Option<&'a [u8]> {
        let index = self.index(column)?;
        let AnyColumn::Bytes(values) = self.columns.get(place(column))? else { return None };
        values.values.get(index).map(ByteArray::data)
    }

    fn long(&mut self, column: Column) -> ParquetResult<i64> {
        self.optional_long(column).ok_or_else(|| damaged("a number"))
    }

    fn int(&mut self, column: Column) -> ParquetResult<u32> {
        self.optional_int(column).ok_or_else(|| damaged("a number"))
    }

    fn bool(&mut self, column: Column) -> ParquetResult<bool> {
        let AnyColumn::Bool(values) = self.columns.get(place(column)).ok_or_else(|| damaged("a flag"))? else {
            return Err(damaged("a flag"));
        };
        values.values.get(self.row).copied().ok_or_else(|| damaged("a flag"))
    }

    /// Empty if there is none.
    fn text(&mut self, column: Column) -> ParquetResult<&'a str> {
        self.optional_text(column).map(Option::unwrap_or_default)
    }

    fn optional_text(&mut self, column: Column) -> ParquetResult<Option<&'a str>> {
        let text = self.optional_bytes(column).map(str::from_utf8).transpose();
        text.map_err(|error: Utf8Error| ParquetError::External(Box::new(error)))
    }
}

/// Maximum memory of the records of a file, in bytes: a few bytes of another may say that all have a long text of its
/// dictionary. Ours have those of a segment, or of a few.
const RECORDS_BYTES_MAX: usize = 1 << 30;

/// Reads all records of a file. Of so many, nothing has checked whether they are as they were written.
pub(crate) fn read_all(path: &Path) -> Result<(Vec<Record>, u64), Error> {
    SealedFile::read(path, |file| {
        let records = read_groups(file, RECORDS_BYTES_MAX);
        Ok(records.map(|records| (records, file.unchecked_rows())))
    })
}

fn read_groups(file: &SealedFile, bytes_max: usize) -> ParquetResult<Vec<Record>> {
    let (mut records, mut bytes_left) = (Vec::new(), bytes_max);
    file.groups().try_for_each(|group| read_group(group, &mut records, &mut bytes_left))?;
    Ok(records)
}

fn read_group(group: Group<'_>, records: &mut Vec<Record>, bytes_left: &mut usize) -> ParquetResult<()> {
    let mut rows = Rows::open(group)?;
    // One after the other: a damaged file may claim to have any number of rows.
    for start in (0..group.rows).step_by(PAGE_ROWS) {
        let mut part = Selection::default();
        part.push_range(start..group.rows.min(start.saturating_add(PAGE_ROWS)));
        rows.take(&part, |view| {
            let record = view.to_record().ok_or_else(|| damaged("an id"))?;
            let left = bytes_left.checked_sub(record.memory_bytes());
            *bytes_left = left.ok_or_else(|| damaged("the length of all records"))?;
            records.push(record);
            Ok(())
        })?;
    }
    Ok(())
}

fn damaged(what: &str) -> ParquetError {
    ParquetError::General(format!("{what} is not valid"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Kind, NewRecord, sealed::write::write_file};

    #[test]
    fn columns_are_listed_in_their_order() {
        assert!(COLUMNS.iter().enumerate().all(|(index, column)| place(*column) == index));
    }

    #[test]
    fn a_text_that_many_records_have_counts_each_time() {
        let (app_id, dev_id, metadata) = ("my-app".parse().unwrap(), "a1".parse().unwrap(), "9".repeat(10_000));
        let id = RecordId::first(5);
        let new = NewRecord { metadata: &metadata, ..NewRecord::new(&app_id, &dev_id, &Kind::Uplink, id.recorded()) };
        let record = View::of_new(id, &new).to_record().unwrap();
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("some-file");
        write_file(&path, &[&record; 100]).unwrap();
        assert!(path.metadata().unwrap().len() < 50_000);
        let file = SealedFile::open(&path).unwrap();
        assert_eq!(read_groups(&file, 1 << 21).unwrap().len(), 100);
        let error = read_groups(&file, 1_000_000).unwrap_err().to_string();
        assert!(error.contains("the length of all records is not valid"), "{error}");
    }
}
