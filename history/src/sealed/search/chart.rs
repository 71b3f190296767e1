//! Reads the results of a device's uplinks for a chart: of each row its id, outcome and result, and no other column but
//! those that select it.

use std::cell::Cell;

use parquet::{
    data_type::ByteArrayType,
    errors::{ParquetError, Result as ParquetResult},
};

use super::{ids, is_excluded, present, recorded, select, select_bytes};
use crate::{
    Error, Outcome,
    chart::{batch::Batch, collector::Collector},
    query::Filter,
    sealed::{
        file::{Group, SealedFile},
        schema::{Column, PAGE_ROWS},
        selection::Selection,
    },
};

/// Adds the uplinks of a file to a chart. The file may be damaged. `done` has the number of row groups that were added,
/// because a file of which parts were read may be read again as a whole.
pub(crate) fn read(
    file: &SealedFile,
    (filter, collector): (&Filter, &Collector<'_>),
    done: &Cell<usize>,
) -> Result<ParquetResult<()>, Error> {
    let mut batch = Batch::new(collector);
    for group in file.groups().rev().skip(done.get()) {
        collector.check()?;
        let read = read_group(group, filter, collector, &mut batch);
        batch.flush();
        if let Err(damaged) = read {
            return Ok(Err(damaged));
        }
        done.set(done.get() + 1);
        file.release();
    }
    Ok(Ok(()))
}

/// Adds nothing before all that it needs of the group was fetched.
fn read_group(
    group: Group<'_>,
    filter: &Filter,
    collector: &Collector<'_>,
    batch: &mut Batch<'_>,
) -> ParquetResult<()> {
    let has_place = || recorded(group).is_none_or(|(_, last)| collector.admits_any(last));
    if is_excluded(group, filter) || !has_place() {
        return Ok(());
    }
    let rows = select(group, filter)?;
    let app_id = filter.query.app_id.as_str().as_bytes();
    let rows = select_bytes(group, rows, Column::AppId, |found| found == app_id)?;
    let ids = ids(group, &rows, filter)?;
    let rows = Selection::of(ids.iter().map(|(_, row)| *row));
    if rows.is_empty() {
        return Ok(());
    }
    group.need(&[Column::Outcome, Column::Result], &rows)?;
    let mut outcomes = group.read::<ByteArrayType>(Column::Outcome)?;
    let mut results = group.read::<ByteArrayType>(Column::Result)?;
    let mut ids = ids.into_iter();
    for part in rows.parts(PAGE_ROWS) {
        outcomes.take(&part)?;
        results.take(&part)?;
        let values = present(&outcomes.values, &outcomes.levels).zip(present(&results.values, &results.levels));
        for ((outcome, result), (id, _)) in values.zip(&mut ids) {
            let outcome = outcome.and_then(|name| Outcome::from_name(name.data()));
            let result = result.map_or(Ok(""), |result| str::from_utf8(result.data()));
            let (Some(outcome), Ok(result)) = (outcome, result) else { return Err(damaged()) };
            batch.add(id, outcome, result);
        }
    }
    Ok(())
}

fn damaged() -> ParquetError {
    ParquetError::General("an outcome or a result is not valid".to_owned())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use types::{AppId, DevId, Timestamp};

    use super::*;
    use crate::{
        Kind, NewRecord, RecordId,
        chart::{ChartQuery, corrections::Corrections, overlaps::Overlaps},
        directory::removed::Removals,
        record::View,
        sealed::write::{sort, write_file},
    };

    #[test]
    fn row_groups_that_were_added_are_not_added_again() {
        let (app_id, dev_id): (AppId, DevId) = ("my-app".parse().unwrap(), "a1".parse().unwrap());
        let records = (0..5).map(|number| {
            let id = RecordId::new(1000 + number, 0, 0);
            let plain = NewRecord::new(&app_id, &dev_id, &Kind::Uplink, id.recorded());
            let new = NewRecord { outcome: Outcome::Decoded, result: r#"{"t":1}"#, ..plain };
            View::of_new(id, &new).to_record().unwrap()
        });
        let records: Vec<_> = records.collect();
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("some-file");
        write_file(&path, &sort(&records.iter().collect::<Vec<_>>())).unwrap();
        let (since, until) = (Timestamp::from_millis(0), Timestamp::from_millis(10_000));
        let (app_id, dev_id) = (app_id.clone(), dev_id.clone());
        let query = ChartQuery { app_id, dev_id, since, until, field: None, points: 1 };
        let filter = Filter::new(query.originals(), Removals::default());
        let (corrections, is_stopped) = (Corrections::default(), AtomicBool::default());
        let collector = Collector::new(&query, &corrections, Overlaps::default(), &is_stopped);
        let done = Cell::new(0);
        for _ in 0..2 {
            SealedFile::read(&path, |file| read(file, (&filter, &collector), &done)).unwrap();
        }
        let chart = collector.into_chart(false, Vec::new());
        assert_eq!((chart.examined, chart.fields[0].points[0].count, done.get()), (5, 5, 1));
    }
}
