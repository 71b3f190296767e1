//! Bytes of a sealed file that have changed are noticed, whatever reads them: nothing is shown that was not recorded.

use std::{
    collections::BTreeSet,
    fs,
    ops::Range,
    path::{Path, PathBuf},
    time::Duration,
};

use bytes::Bytes;
use futures::{TryStreamExt, future::join_all};
use history::{
    Chart, ChartQuery, Chunks, ExportPart, Format, History, Kind, NewRecord, Outcome, Page, Query, RecordId, Skipped,
    Unchecked,
};
use parquet::file::{
    metadata::ParquetMetaDataReader,
    reader::{ChunkReader, Length},
};
use types::Clock;

use crate::{
    harness::{Harness, all, app, dev, everything, files, kept, without_checksums},
    ranges::next,
};

/// The records that one way of reading shows, and the files that it could not read.
type Shown = (Vec<String>, Vec<PathBuf>);

/// Puts so many uplinks of two devices, each received by two gateways, into a file. Little of them can be compressed.
pub(crate) async fn seal(harness: &Harness, history: &History, count: u32) {
    let (app_id, mut state) = (app(), 1_u64);
    let appended = (0..count).map(|counter| {
        harness.clock.advance(Duration::from_millis(100));
        let dev_id = dev(["a1", "b1"][counter as usize % 2]);
        let metadata = format!(
            r#"{{"time":"","gateways":[{{"gtw_id":"roof","channel":{counter},"rssi":-{counter}.5}},{{"gtw_id":"cellar"}}]}}"#
        );
        let payload = format!("payload {counter} ").into_bytes().into_iter().chain((0..120).map(|_| next(&mut state)));
        let payload: Vec<u8> = payload.collect();
        history.append(&NewRecord {
            counter,
            port: (counter % 3) as u8,
            payload: &payload,
            metadata: &metadata,
            outcome: Outcome::Decoded,
            result: &format!(r#"{{"level":{counter}}}"#),
            ..NewRecord::new(&app_id, &dev_id, &Kind::Uplink, harness.clock.now())
        })
    });
    let appended: Vec<_> = appended.collect();
    join_all(appended).await.into_iter().for_each(|uplink| _ = kept(uplink));
    history.seal().await.unwrap();
}

fn paths(skipped: Vec<Skipped>) -> Vec<PathBuf> {
    skipped.into_iter().map(|skipped| skipped.path).collect()
}

/// The records that every way of reading shows.
async fn shown(harness: &Harness, history: &History, id: RecordId) -> Vec<Shown> {
    let queries = [
        everything(),
        Query { oldest_first: true, limit: 1000, ..everything() },
        Query { dev_id: Some(dev("a1")), ..everything() },
        // Only the filter of devices says that it has none.
        Query { dev_id: Some(dev("a5")), ..everything() },
        Query { port: Some(1), ..everything() },
        Query { kind: Some(Kind::Uplink), ..everything() },
        Query { failed_only: true, ..everything() },
        Query { field: Some("fields.level >= 7".parse().unwrap()), ..everything() },
        Query { text: Some("\"level\":1".to_owned()), ..everything() },
    ];
    let mut shown = Vec::new();
    for query in queries {
        let Page { records, skipped, .. } = history.query(query).await.unwrap();
        shown.push((records.iter().map(|record| format!("{record:?}")).collect(), paths(skipped)));
    }

    shown.push(match history.get(&app(), id).await.unwrap() {
        Ok(record) => (vec![format!("{record:?}")], Vec::new()),
        Err(skipped) => (Vec::new(), paths(skipped)),
    });

    let until = harness.clock.now().plus(Duration::from_secs(1));
    let since = until.minus(Duration::from_secs(3600));
    let chart = ChartQuery { app_id: app(), dev_id: dev("a1"), since, until, field: None, points: 10 };
    let Chart { fields, skipped, .. } = history.chart(chart).await.unwrap();
    shown.push((fields.iter().map(|field| format!("{field:?}")).collect(), paths(skipped)));

    let parts: Vec<_> = history.export(everything(), Format::JsonLines).try_collect().await.unwrap();
    let (mut text, mut skipped) = (Vec::new(), Vec::new());
    for part in parts {
        match part {
            ExportPart::Bytes(bytes) => text.extend_from_slice(&bytes),
            ExportPart::Unreadable(files) => skipped = files,
        }
    }
    let text = String::from_utf8(text).unwrap();
    shown.push((text.lines().map(str::to_owned).collect(), paths(skipped)));
    shown
}

/// Checks what is shown after a byte of a file has changed: all that was shown before, or a part of that, and then the
/// file is named. Returns true if it is.
fn is_named(shown: &[Shown], before: &[Shown], path: &Path) -> bool {
    assert_eq!(shown.len(), before.len());
    let mut is_named = false;
    for ((shown, skipped), (expected, _)) in shown.iter().zip(before) {
        if skipped.is_empty() {
            assert_eq!(shown, expected);
        } else {
            assert_eq!(skipped, &[path]);
            assert!(shown.iter().all(|shown| expected.contains(shown)), "{shown:?}");
            is_named = true;
        }
    }
    is_named
}

/// The parts of a file of one row group, with their names.
fn parts(path: &Path) -> Vec<(String, Range<usize>)> {
    let metadata = ParquetMetaDataReader::new().parse_and_finish(&fs::File::open(path).unwrap()).unwrap();
    let mut parts = Vec::new();
    for column in metadata.row_group(0).columns() {
        let mut add = |what: &str, start: u64, end: u64| {
            let name = format!("{what} of {}", column.column_path().string());
            parts.push((name, start as usize..end as usize));
        };
        let (start, length) = column.byte_range();
        let pages = column.data_page_offset() as u64;
        add("pages", pages, start + length);
        add("dictionary", start, pages);
        if let (Some(start), Some(length)) = (column.bloom_filter_offset(), column.bloom_filter_length()) {
            add("filter", start as u64, start as u64 + length as u64);
        }
        let ranges =
            [("values of pages", column.column_index_range()), ("places of pages", column.offset_index_range())];
        ranges
            .into_iter()
            .for_each(|(what, range)| range.into_iter().for_each(|range| add(what, range.start, range.end)));
    }
    parts.retain(|(_, range)| !range.is_empty());
    parts
}

// Conformance: A byte of a sealed file that has changed is never read as another value
#[tokio::test]
async fn no_changed_byte_of_a_small_file_is_shown() {
    let harness = Harness::new();
    let history = harness.open();
    seal(&harness, &history, 50).await;
    let id = all(&history, everything()).await[20].id;
    let before = shown(&harness, &history, id).await;
    let path = files(&harness).remove(0);
    let mut bytes = fs::read(&path).unwrap();
    for position in (0..bytes.len()).step_by(83) {
        bytes[position] ^= 0x55;
        fs::write(&path, &bytes).unwrap();
        let shown = shown(&harness, &history, id).await;
        assert!(is_named(&shown, &before, &path), "{position} of {}", bytes.len());
        bytes[position] ^= 0x55;
    }
    fs::write(&path, &bytes).unwrap();
    assert_eq!(shown(&harness, &history, id).await, before);
}

// Conformance: A byte of a sealed file that has changed is never read as another value
#[tokio::test]
async fn a_changed_byte_in_any_part_of_a_file_is_noticed() {
    let harness = Harness::new();
    let history = harness.open();
    // So many that the file says where its pages are, and is not read at once.
    seal(&harness, &history, 600).await;
    let id = all(&history, everything()).await[20].id;
    let before = shown(&harness, &history, id).await;
    let path = files(&harness).remove(0);
    let mut bytes = fs::read(&path).unwrap();
    assert!(bytes.len() > 64 << 10, "{}", bytes.len());
    let mut parts = parts(&path);
    let kinds: BTreeSet<_> =
        parts.iter().filter_map(|(name, _)| name.split_once(" of ")).map(|(kind, _)| kind).collect();
    assert_eq!(kinds.into_iter().collect::<Vec<_>>(), ["dictionary", "filter", "pages", "places", "values"]);
    // Behind the others are the description with the checksums, its length, and four letters.
    let end = parts.iter().map(|(_, range)| range.end).max().unwrap();
    parts.extend((end..bytes.len()).step_by(199).map(|start| ("end".to_owned(), start..start + 1)));
    parts.extend((bytes.len() - 40..bytes.len()).map(|start| ("checksums".to_owned(), start..start + 1)));
    for (name, range) in parts {
        for position in BTreeSet::from([range.start, range.end - 1]) {
            bytes[position] ^= 0x01;
            fs::write(&path, &bytes).unwrap();
            let shown = shown(&harness, &history, id).await;
            assert!(is_named(&shown, &before, &path), "{name}: {position} of {}", bytes.len());
            bytes[position] ^= 0x01;
        }
    }
    fs::write(&path, &bytes).unwrap();
    assert_eq!(shown(&harness, &history, id).await, before);
}

// Conformance: A byte of a sealed file that has changed is never read as another value
#[tokio::test]
async fn a_changed_byte_is_noticed_by_a_reader_of_a_single_file() {
    let harness = Harness::new();
    let history = harness.open();
    for count in [5, 600] {
        seal(&harness, &history, count).await;
    }
    for path in files(&harness) {
        let read = || -> parquet::errors::Result<Bytes> {
            let chunks = Chunks::new(fs::File::open(&path)?)?.checked()?;
            chunks.get_bytes(0, chunks.len() as usize)
        };
        let mut bytes = fs::read(&path).unwrap();
        let before = read().unwrap();
        assert!(bytes.starts_with(&before) && before.len() > bytes.len() / 2);
        // Behind these are the name of the checksums, and the end of the description.
        for position in (0..bytes.len() - 17).step_by(211) {
            bytes[position] ^= 0x55;
            fs::write(&path, &bytes).unwrap();
            assert!(read().is_err(), "{position} of {}", bytes.len());
            bytes[position] ^= 0x55;
        }
        fs::write(&path, without_checksums(&bytes)).unwrap();
        assert!(read().unwrap().starts_with(b"PAR1"));
    }
}

#[tokio::test]
async fn rows_of_files_without_checksums_stay_marked_when_they_are_copied() {
    let harness = Harness::new();
    let history = harness.open();
    for _ in 0..2 {
        seal(&harness, &history, 5).await;
    }
    let before = all(&history, everything()).await;
    for path in files(&harness) {
        fs::write(&path, without_checksums(&fs::read(&path).unwrap())).unwrap();
    }
    let [first, second]: [PathBuf; 2] = files(&harness).try_into().unwrap();
    let page = history.query(everything()).await.unwrap();
    let rows_of = |path, rows| Unchecked { path, rows };
    assert_eq!((page.records, page.unchecked), (before.clone(), vec![rows_of(first, 5), rows_of(second, 5)]));
    seal(&harness, &history, 5).await;

    harness.clock.advance(Duration::from_secs(36 * 3600));
    history.maintain().await.unwrap();
    let merged = files(&harness);
    let page = history.query(everything()).await.unwrap();
    assert_eq!((merged.len(), &page.records[5..]), (1, &before[..]));
    assert_eq!(page.unchecked, [rows_of(merged[0].clone(), 10)]);
    let bytes = fs::read(&merged[0]).unwrap();
    assert!(without_checksums(&bytes).len() < bytes.len(), "it has checksums of its own");

    let parts: Vec<_> = history.export(everything(), Format::Parquet).try_collect().await.unwrap();
    let parts =
        parts.into_iter().filter_map(|part| if let ExportPart::Bytes(bytes) = part { Some(bytes) } else { None });
    assert_eq!(unchecked_rows(parts.flatten().collect::<Vec<_>>()).as_deref(), Some("10"));

    history.remove_device(&app(), &dev("a1")).await.unwrap();
    let page = history.query(everything()).await.unwrap();
    assert_eq!((page.records.len(), page.unchecked), (6, vec![rows_of(files(&harness).remove(0), 6)]));
}

#[tokio::test]
async fn a_file_of_sealed_records_needs_no_mark() {
    let harness = Harness::new();
    let history = harness.open();
    seal(&harness, &history, 5).await;
    assert!(history.query(everything()).await.unwrap().unchecked.is_empty());
    assert_eq!(unchecked_rows(fs::read(files(&harness).remove(0)).unwrap()), None);
}

/// The number of rows without checksums that a file notes.
fn unchecked_rows(file: Vec<u8>) -> Option<String> {
    let metadata = ParquetMetaDataReader::new().parse_and_finish(&Bytes::from(file)).unwrap();
    let notes = metadata.file_metadata().key_value_metadata()?.clone();
    notes.into_iter().find(|note| note.key == "airlock.unchecked_rows")?.value
}

// Conformance: A byte of a sealed file that has changed is never read as another value
#[tokio::test]
async fn a_merge_copies_no_changed_byte() {
    let harness = Harness::new();
    let history = harness.open();
    for count in [600, 1, 1] {
        seal(&harness, &history, count).await;
    }
    let before = all(&history, everything()).await;
    let damaged = files(&harness).remove(0);
    let whole = fs::read(&damaged).unwrap();
    let mut bytes = whole.clone();
    let payload = b"payload 0";
    let start = bytes.windows(payload.len()).position(|bytes| bytes == payload).unwrap();
    bytes[start + payload.len() - 1] ^= 0x01;
    // Only checksums tell it from another payload.
    fs::write(&damaged, without_checksums(&bytes)).unwrap();
    assert!(all(&history, everything()).await[601].payload.starts_with(b"payload 1 "));

    fs::write(&damaged, &bytes).unwrap();
    harness.clock.advance(Duration::from_secs(36 * 3600));
    history.maintain().await.unwrap();
    let merged = files(&harness);
    assert!(merged.len() == 2 && merged.contains(&damaged), "{merged:?}");
    let Page { records, skipped, .. } = history.query(everything()).await.unwrap();
    assert_eq!((&records[..], paths(skipped)), (&before[..2], vec![damaged.clone()]));

    // A copy of it that is whole takes part again.
    fs::write(&damaged, whole).unwrap();
    history.maintain().await.unwrap();
    assert_eq!((files(&harness).len(), all(&history, everything()).await), (1, before));
}

// Conformance: A byte of a sealed file that has changed is never read as another value
#[tokio::test]
async fn a_removal_copies_no_changed_byte() {
    let harness = Harness::new();
    let history = harness.open();
    seal(&harness, &history, 600).await;
    let device = Query { dev_id: Some(dev("b1")), ..everything() };
    let expected = all(&history, device).await;
    let path = files(&harness).remove(0);
    let mut bytes = fs::read(&path).unwrap();
    for position in (0..bytes.len()).step_by(1009).map(Some).chain([None]) {
        files(&harness).iter().for_each(|path| fs::remove_file(path).unwrap());
        position.into_iter().for_each(|position| bytes[position] ^= 0x55);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, &bytes).unwrap();
        history.remove_device(&app(), &dev("a1")).await.unwrap();
        let Page { records, skipped, .. } = history.query(Query { limit: 1000, ..everything() }).await.unwrap();
        if paths(skipped) == [path.clone()] {
            assert_eq!((records, fs::read(&path).unwrap()), (Vec::new(), bytes.clone()), "{position:?}");
        } else {
            assert_eq!(records, expected, "{position:?}");
        }
        position.into_iter().for_each(|position| bytes[position] ^= 0x55);
    }
    assert!(!path.exists(), "of the whole file, the device was removed");
}
