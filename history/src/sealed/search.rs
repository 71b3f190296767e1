//! Searches a file: leaves out what statistics and the filter of devices exclude, then reads one column after the other,
//! each only for the rows that are left.

pub(crate) mod chart;
pub(crate) mod heard;

use parquet::{
    data_type::{ByteArrayType, Int32Type, Int64Type},
    errors::Result as ParquetResult,
};

use crate::{
    Error, Kind, Outcome, RecordId, Revisions,
    query::{Filter, Shared},
    sealed::{
        file::{Group, SealedFile},
        rows::Rows,
        schema::{Column, PAGE_ROWS},
        selection::Selection,
    },
};

/// Adds what a query wants of a file, as far as it is among the best. The file may be damaged.
pub(crate) fn search(file: &SealedFile, filter: &Filter, best: &Shared<'_>) -> Result<ParquetResult<()>, Error> {
    let mut groups: Vec<_> = file.groups().collect();
    if !filter.query.oldest_first {
        groups.reverse();
    }
    for group in groups {
        best.check()?;
        if let Err(damaged) = search_group(group, filter, best) {
            return Ok(Err(damaged));
        }
        file.release();
    }
    Ok(Ok(()))
}

/// Returns true if a query may read only few columns or rows of a file. Others need pages of all columns.
pub(crate) fn is_selective(filter: &Filter) -> bool {
    let query = &filter.query;
    query.dev_id.is_some()
        || query.port.is_some()
        || query.kind.is_some()
        || query.failed_only
        || query.text.is_some()
        || query.field.is_some()
        || query.version.is_some()
        || query.revisions != Revisions::All
        || filter.ids.start() == filter.ids.end()
}

/// Returns true if statistics exclude all rows.
fn is_excluded(group: Group<'_>, filter: &Filter) -> bool {
    let may_correct = match &filter.query.revisions {
        Revisions::CorrectionsOf(ids) => group.may_correct(ids),
        Revisions::All | Revisions::Originals => true,
    };
    !may_correct || recorded(group).is_some_and(|(first, last)| !filter.overlaps(first, last))
}

/// The ids between which those of the rows are. None if the file does not say.
fn recorded(group: Group<'_>) -> Option<(RecordId, RecordId)> {
    group.recorded().map(|(first, last)| (RecordId::first(first), RecordId::last(last)))
}

fn search_group(group: Group<'_>, filter: &Filter, best: &Shared<'_>) -> ParquetResult<()> {
    let recorded = recorded(group);
    if is_excluded(group, filter) || recorded.is_some_and(|(first, last)| !best.admits_any(first, last)) {
        return Ok(());
    }
    let rows = select(group, filter)?;
    // Ids are read before texts where they exclude rows, because a text costs more.
    let has_text = filter.query.field.is_some() || filter.text().is_some();
    let all_ids = recorded.is_some_and(|(first, last)| filter.covers(first, last) && best.has_room());
    let rows = if all_ids || !has_text {
        rows
    } else {
        Selection::of(best_ids(group, &rows, filter, best)?.into_iter().map(|(_, row)| row))
    };
    let rows = select_by_text(group, rows, filter)?;
    let mut ids = best_ids(group, &rows, filter, best)?;
    best.sort(&mut ids);
    insert_best(group, &ids, filter, best)
}

/// Adds the first rows, as far as they are among the best. Where one is not wanted after all, as one that was removed, the
/// next ones follow: twice as many each time, because each time reads pages.
fn insert_best(group: Group<'_>, ids: &[(RecordId, usize)], filter: &Filter, best: &Shared<'_>) -> ParquetResult<()> {
    let (mut rest, mut count) = (ids, best.limit());
    while rest.first().is_some_and(|(id, _)| best.bound().admits(*id)) {
        let (part, after) = rest.split_at(count.min(rest.len()));
        let mut rows: Vec<_> = part.iter().map(|(_, row)| *row).collect();
        rows.sort_unstable();
        insert(group, &Selection::of(rows), filter, best)?;
        (rest, count) = (after, count.saturating_mul(2));
    }
    Ok(())
}

/// The rows of the device with the port, the kind, the outcome and the version.
fn select(group: Group<'_>, filter: &Filter) -> ParquetResult<Selection> {
    let query = &filter.query;
    let mut rows = Selection::all(group.rows);
    if let Some(dev_id) = &query.dev_id {
        let near = group.device(dev_id.as_str())?;
        rows = select_bytes(group, near, Column::DevId, |found| found == dev_id.as_str().as_bytes())?;
    }
    if let Some(port) = query.port {
        rows = select_int(group, rows, Column::Port, port.into())?;
    }
    if let Some(kind) = &query.kind {
        rows = select_bytes(group, rows, Column::Kind, |found| found == kind.as_str().as_bytes())?;
    }
    if query.without_changes {
        rows = select_bytes(group, rows, Column::Kind, |found| !Kind::is_change(found))?;
    }
    if query.failed_only {
        rows = select_bytes(group, rows, Column::Outcome, |found| {
            Outcome::from_name(found).is_some_and(Outcome::is_failure)
        })?;
    }
    if let Some(version) = query.version {
        rows = select_int(group, rows, Column::Version, version)?;
    }
    select_revisions(group, rows, &query.revisions)
}

fn select_revisions(group: Group<'_>, rows: Selection, revisions: &Revisions) -> ParquetResult<Selection> {
    match revisions {
        Revisions::All => Ok(rows),
        Revisions::Originals => select_int(group, rows, Column::Revision, 0),
        Revisions::CorrectionsOf(_) => {
            let is_wanted = |found: &[u8]| {
                let id = std::str::from_utf8(found).ok().and_then(|id| id.parse().ok());
                id.is_some_and(|id| revisions.admits(Some(id)))
            };
            select_bytes(group, rows, Column::Corrects, is_wanted)
        }
    }
}

fn select_int(group: Group<'_>, rows: Selection, column: Column, wanted: u32) -> ParquetResult<Selection> {
    if rows.is_empty() {
        return Ok(rows);
    }
    group.need(&[column], &rows)?;
    let mut column = group.read::<Int32Type>(column)?;
    column.take(&rows)?;
    Ok(rows.filter(
        present(&column.values, &column.levels).map(|value| value.is_some_and(|value| *value as u32 == wanted)),
    ))
}

fn select_bytes(
    group: Group<'_>,
    rows: Selection,
    column: Column,
    wanted: impl Fn(&[u8]) -> bool,
) -> ParquetResult<Selection> {
    if rows.is_empty() {
        return Ok(rows);
    }
    group.need(&[column], &rows)?;
    let mut column = group.read::<ByteArrayType>(column)?;
    let mut selected = Selection::default();
    for part in rows.parts(PAGE_ROWS) {
        column.take(&part)?;
        let matches =
            present(&column.values, &column.levels).map(|value| value.is_some_and(|value| wanted(value.data())));
        part.rows()
            .zip(matches)
            .filter(|(_, is_wanted)| *is_wanted)
            .for_each(|(row, _)| selected.push_range(row..row + 1));
    }
    Ok(selected)
}

/// The value of each row: null where its level is zero.
fn present<'a, T>(values: &'a [T], levels: &'a [i16]) -> impl Iterator<Item = Option<&'a T>> {
    let mut rest = values.iter();
    let count = if levels.is_empty() { values.len() } else { levels.len() };
    (0..count).map(move |row| if levels.get(row) == Some(&0) { None } else { rest.next() })
}

/// The rows whose field has the value, and which have the text.
fn select_by_text(group: Group<'_>, rows: Selection, filter: &Filter) -> ParquetResult<Selection> {
    let mut rows = rows;
    if let Some(field) = &filter.query.field {
        let may_match = |result: &[u8]| filter.may_have_field(field, result);
        rows = select_bytes(group, rows, Column::Result, may_match)?;
    }
    if let Some(text) = filter.text() {
        let columns = [Column::Result, Column::Normalized, Column::Failure, Column::Logs, Column::Warnings];
        group.need(&columns, &rows)?;
        let mut any: Vec<usize> = Vec::new();
        for column in columns {
            any.extend(select_bytes(group, rows.clone(), column, |found| text.find(found).is_some())?.rows());
        }
        any.sort_unstable();
        any.dedup();
        rows = Selection::of(any);
    }
    Ok(rows)
}

/// The ids of these rows that are wanted, each with its row.
fn ids(group: Group<'_>, rows: &Selection, filter: &Filter) -> ParquetResult<Vec<(RecordId, usize)>> {
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    group.need(&[Column::Recorded, Column::Writer, Column::Number], rows)?;
    let (mut recorded, mut writer, mut number) = (
        group.read::<Int64Type>(Column::Recorded)?,
        group.read::<Int32Type>(Column::Writer)?,
        group.read::<Int32Type>(Column::Number)?,
    );
    recorded.take(rows)?;
    writer.take(rows)?;
    number.take(rows)?;
    let parts = recorded.values.iter().zip(&writer.values).zip(&number.values);
    let ids = parts.map(|((millis, writer), number)| RecordId::new(*millis as u64, *writer as u32, *number as u32));
    Ok(ids.zip(rows.rows()).filter(|(id, _)| filter.ids.contains(id)).collect())
}

/// Those of them that could be among the best.
fn best_ids(
    group: Group<'_>,
    rows: &Selection,
    filter: &Filter,
    best: &Shared<'_>,
) -> ParquetResult<Vec<(RecordId, usize)>> {
    let (ids, bound) = (ids(group, rows, filter)?, best.bound());
    Ok(ids.into_iter().filter(|(id, _)| bound.admits(*id)).collect())
}

/// Reads these rows, and adds them.
fn insert(group: Group<'_>, rows: &Selection, filter: &Filter, best: &Shared<'_>) -> ParquetResult<()> {
    if rows.is_empty() {
        return Ok(());
    }
    group.need_all(rows)?;
    let mut all = Rows::open(group)?;
    for part in rows.parts(PAGE_ROWS) {
        all.take(&part, |view: crate::record::View<'_>| {
            if filter.accepts_head(view.id, view.app_id.as_bytes(), view.dev_id.as_bytes())
                && filter.accepts_rest(&view)
            {
                best.offer(view.id, || view.to_record());
            }
            Ok(())
        })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::{
        ops::Range,
        path::Path,
        sync::{
            Arc,
            atomic::{AtomicBool, AtomicU64, Ordering},
        },
    };

    use bytes::Bytes;

    use super::*;
    use crate::{
        NewRecord, Query, Record,
        directory::removed::{Removal, Removals},
        query::Best,
        record::View,
        sealed::{
            parts::Parts,
            write::{end_file, new_writer, sort, write_file, write_groups},
        },
    };

    /// A file of four row groups, each with 40 records of one device that cannot be compressed.
    fn four_groups() -> Vec<u8> {
        let app_id = "my-app".parse().unwrap();
        let mut state = 1_u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 56) as u8
        };
        let mut writer = new_writer(Vec::new(), 4, 160).unwrap();
        for dev_id in ["a1", "b1", "c1", "d1"] {
            let dev_id = dev_id.parse().unwrap();
            let records = (0..40).map(|number| {
                let payload: Vec<u8> = (0..20_000).map(|_| next()).collect();
                let id = RecordId::new(5, 0, number);
                let new = NewRecord::new(&app_id, &dev_id, &Kind::Uplink, id.recorded());
                View::of_new(id, &NewRecord { payload: &payload, ..new }).to_record().unwrap()
            });
            let records: Vec<_> = records.collect();
            write_groups(&mut writer, &records.iter().collect::<Vec<_>>()).unwrap();
        }
        end_file(writer, 0).unwrap()
    }

    /// The records that a query finds in a file that is elsewhere, and the number of bytes that it fetches.
    fn search_elsewhere(content: &Bytes, query: Query) -> (Vec<Record>, u64) {
        let (content, fetched) = (content.clone(), Arc::new(AtomicU64::new(0)));
        let (bytes, counted) = (content.len() as u64, Arc::clone(&fetched));
        let fetch = move |ranges: &[Range<u64>]| {
            let parts = ranges.iter().map(|range| content.slice(range.start as usize..range.end as usize));
            let parts: Vec<_> = parts.collect();
            counted.fetch_add(parts.iter().map(|part| part.len() as u64).sum::<u64>(), Ordering::Relaxed);
            Ok(Some(parts))
        };
        let parts = Arc::new(Parts::new(bytes, Box::new(fetch)));
        let (filter, is_stopped) = (Filter::new(query, Removals::default()), AtomicBool::default());
        let best = Shared::new(Best::new(50, usize::MAX, false), false, &is_stopped);
        SealedFile::read_parts(Path::new("some-file"), &parts, |file| search(file, &filter, &best)).unwrap();
        assert!(parts.failure().is_none());
        (best.into_records().records, fetched.load(Ordering::Relaxed))
    }

    #[test]
    fn of_a_file_elsewhere_only_the_row_group_of_the_device_is_fetched() {
        let content = Bytes::from(four_groups());
        let bytes = content.len() as u64;
        let query = Query { dev_id: Some("c1".parse().unwrap()), ..Query::of("my-app".parse().unwrap()) };
        let (records, fetched) = search_elsewhere(&content, query);
        assert_eq!(records.len(), 40);
        assert!(records.iter().all(|record| record.dev_id.as_str() == "c1"));
        assert!(fetched < bytes * 2 / 5, "{fetched} of {bytes}");
    }

    #[test]
    fn of_a_file_elsewhere_no_text_is_fetched_if_no_row_is_left() {
        let content = Bytes::from(four_groups());
        let port = Query { port: Some(9), ..Query::of("my-app".parse().unwrap()) };
        let text = Query { text: Some("a".to_owned()), ..port.clone() };
        let (records, fetched) = search_elsewhere(&content, text);
        assert!(records.is_empty());
        assert_eq!(fetched, search_elsewhere(&content, port).1);
    }

    #[test]
    fn rows_that_were_removed_take_no_place_of_older_ones() {
        let app_id = "my-app".parse().unwrap();
        let records = (0..40).map(|number| {
            // Those of the removed device are the newest.
            let dev_id = ["a1", "b1"][usize::from(number >= 10)].parse().unwrap();
            let id = RecordId::new(5, 0, number);
            View::of_new(id, &NewRecord::new(&app_id, &dev_id, &Kind::Uplink, id.recorded())).to_record().unwrap()
        });
        let records: Vec<_> = records.collect();
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("some-file");
        write_file(&path, &sort(&records.iter().collect::<Vec<_>>())).unwrap();
        let removed = Removal::named("my-app,b1", RecordId::last(5));
        let removals = Removals { known: vec![removed], ..Removals::default() };
        for (oldest_first, expected) in [(false, [9, 8, 7]), (true, [0, 1, 2])] {
            let query = Query { oldest_first, ..Query::of(app_id.clone()) };
            let (filter, is_stopped) = (Filter::new(query, removals.clone()), AtomicBool::default());
            let best = Shared::new(Best::new(3, usize::MAX, oldest_first), oldest_first, &is_stopped);
            SealedFile::read(&path, |file| search(file, &filter, &best)).unwrap();
            let numbers: Vec<_> = best.into_records().records.iter().map(|record| record.id.number).collect();
            assert_eq!(numbers, expected);
        }
    }

    #[test]
    fn values_are_where_their_levels_say() {
        let rows: Vec<_> = present(&[7, 8], &[0, 1, 0, 1]).map(|value: Option<&i32>| value.copied()).collect();
        assert_eq!(rows, [None, Some(7), None, Some(8)]);
        assert_eq!(present(&[7, 8], &[]).flatten().count(), 2);
    }
}
