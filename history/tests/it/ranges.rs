//! Of a large file in the bucket, a query reads the parts that it needs, whatever the server does between them.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    time::Duration,
};

use futures::future;
use history::{History, Kind, NewRecord, Outcome, Query, RecordId, Revisions};
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaDataReader};
use testing::{ObjectServer, Proxy, RangeAnswer, soon};
use types::{Clock, Kinded};

use crate::{
    bucket::{machine, server},
    harness::{Harness, app, counters, dev, everything, files, kept, page},
};

/// Number of devices, and of the uplinks of each.
const DEVICES: u32 = 20;
const UPLINKS: u32 = 1000;

/// The parts of files that a handler has asked for: ranges, or none for whole files.
type Asked = Arc<Mutex<Vec<Option<[u64; 2]>>>>;

/// A proxy that notes what is asked for of files.
async fn noting_proxy(server: &ObjectServer) -> (Proxy, Asked) {
    let asked = Asked::default();
    let noted = Arc::clone(&asked);
    let note = move |part: &[u8]| {
        let text = String::from_utf8_lossy(part).to_ascii_lowercase();
        if text.starts_with("get ") && text.lines().next().is_some_and(|line| line.contains(".parquet")) {
            let range = text.lines().find_map(|line| line.strip_prefix("range: bytes=")?.split_once('-'));
            noted.lock().unwrap().push(range.map(|(start, end)| [start, end].map(|text| text.parse().unwrap())));
        }
        true
    };
    (Proxy::start_filtered(server.address, note).await, asked)
}

/// The number of requests and of bytes since the last call. None if a whole file was.
fn taken(asked: &Asked) -> Option<(usize, u64)> {
    let asked = std::mem::take(&mut *asked.lock().unwrap());
    let ranges = asked.into_iter().collect::<Option<Vec<_>>>()?;
    Some((ranges.len(), ranges.iter().map(|[start, end]| end + 1 - start).sum()))
}

/// Puts one file into the bucket, and returns its length.
async fn fill(harness: &Harness, history: &History) -> u64 {
    let file = seal(harness, history).await;
    history.upload().await.unwrap();
    fs::metadata(file).unwrap().len()
}

/// Writes one file, in which each device has a few pages.
async fn seal(harness: &Harness, history: &History) -> PathBuf {
    let (app_id, mut state) = (app(), 1_u64);
    for device in 0..DEVICES {
        let dev_id = dev(&format!("d{device:02}"));
        let uplinks = (0..UPLINKS).map(|uplink| {
            let counter = device * UPLINKS + uplink;
            let result = format!(r#"{{"level":{counter}}}"#);
            // Nothing that could be compressed.
            let payload: Vec<u8> = (0..300).map(|_| next(&mut state)).collect();
            let new = NewRecord::new(&app_id, &dev_id, &Kind::Uplink, harness.clock.now());
            let outcome = Outcome::Decoded;
            history.append(&NewRecord { counter, payload: &payload, outcome, result: &result, ..new })
        });
        let uplinks: Vec<_> = uplinks.collect();
        future::join_all(uplinks).await.into_iter().for_each(|uplink| _ = kept(uplink));
    }
    history.seal().await.unwrap();
    let mut paths = files(harness);
    assert_eq!(paths.len(), 1);
    paths.remove(0)
}

/// A byte that looks like chance.
pub(crate) fn next(state: &mut u64) -> u8 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*state >> 56) as u8
}

/// The newest of a device.
fn of(dev_id: &str) -> Query {
    Query { dev_id: Some(dev(dev_id)), ..everything() }
}

/// The counters of the newest 50 of the device `d05`.
fn newest() -> Vec<u32> {
    newest_of(5)
}

/// The same of the device with this number.
fn newest_of(device: u32) -> Vec<u32> {
    let end = (device + 1) * UPLINKS;
    (end - 50..end).rev().collect()
}

/// The number of copies of whole files, and of parts, on this disk.
fn copies(harness: &Harness) -> (usize, usize) {
    let names = fs::read_dir(harness.path().join("bucket/cache")).unwrap();
    let names = names.map(|copy| copy.unwrap().file_name().into_string().unwrap());
    let (whole, parts): (Vec<_>, Vec<_>) = names.partition(|name| name.ends_with(".parquet"));
    (whole.len(), parts.len())
}

#[tokio::test(flavor = "multi_thread")]
async fn of_a_large_file_a_query_reads_what_it_needs_and_once() {
    let Some(server) = server() else { return };
    let proxy = Proxy::start(Some(server.address)).await;
    let (noting, asked) = noting_proxy(&server).await;
    let (first, second) = (machine(&server, &proxy, 1), machine(&server, &noting, 2));
    let one = first.open();
    let bytes = fill(&first, &one).await;
    let other = second.open();

    // The end of the file says that no row is of this device, or the filter that is read after it.
    for dev_id in ["a1", "d055"] {
        assert_eq!(page(&other, of(dev_id)).await, (vec![], vec![]));
        let (requests, read) = taken(&asked).expect("only parts are read");
        assert!(requests <= 2 && read < 400_000, "{dev_id}: {requests} {read}");
    }
    assert_eq!(page(&other, of("d05")).await, (newest(), vec![]));
    let (requests, read) = taken(&asked).expect("only parts are read");
    assert!((2..20).contains(&requests) && read < bytes / 2, "{requests} {read} {bytes}");
    assert_eq!(page(&other, of("d05")).await, (newest(), vec![]));
    assert_eq!(taken(&asked), Some((0, 0)), "there are copies");
    let device = Query { oldest_first: true, ..of("d05") };
    assert_eq!(counters(&other, device).await, (5 * UPLINKS..6 * UPLINKS).collect::<Vec<_>>());
    taken(&asked).expect("only parts are read");

    let field = Query { field: Some("fields.level = 12345".parse().unwrap()), ..everything() };
    assert_eq!(page(&other, field).await, (vec![12_345], vec![]));
    let ids = RecordId::new(0, 0, 0)..=RecordId::new(u64::MAX >> 16, 0, 0);
    let corrections = Query { revisions: Revisions::CorrectionsOf(ids), ..everything() };
    assert_eq!(page(&other, corrections).await, (vec![], vec![]));
    taken(&asked).expect("only parts are read");
    let (whole, parts) = copies(&second);
    assert!(whole == 0 && parts > 1, "{whole} {parts}");

    // What needs most of the file copies it.
    assert_eq!(counters(&other, everything()).await.len(), (DEVICES * UPLINKS) as usize);
    assert_eq!((taken(&asked), copies(&second)), (None, (1, 0)));
    assert_eq!(page(&other, of("d07")).await.0.len(), 50);
    assert_eq!(taken(&asked), Some((0, 0)));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_with_other_bytes_than_the_range_has_the_file_read_as_a_whole() {
    let Some(mut server) = server() else { return };
    let proxy = Proxy::start(Some(server.address)).await;
    let (noting, asked) = noting_proxy(&server).await;
    let first = machine(&server, &proxy, 1);
    let one = first.open();
    fill(&first, &one).await;
    for (number, answer) in [(2, RangeAnswer::Whole), (3, RangeAnswer::Short), (4, RangeAnswer::Rewritten)] {
        let other = machine(&server, &noting, number);
        let history = other.open();
        server.answer_ranges(answer);
        assert_eq!(page(&history, of("d05")).await, (newest(), vec![]), "{answer:?}");
        assert_eq!((taken(&asked), copies(&other)), (None, (1, 0)), "{answer:?}");
        server.answer_ranges(RangeAnswer::Right);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_of_which_a_part_cannot_be_read_is_named_and_read_later() {
    let Some(mut server) = server() else { return };
    let proxy = Proxy::start(Some(server.address)).await;
    let (first, second) = (machine(&server, &proxy, 1), machine(&server, &proxy, 2));
    let one = first.open();
    fill(&first, &one).await;
    let other = second.open();

    // The connection ends within a range.
    server.answer_ranges(RangeAnswer::Cut);
    let cut = other.query(of("d05")).await.unwrap();
    assert_eq!((cut.records.len(), cut.skipped.len()), (0, 1));
    let reason = &cut.skipped[0].reason;
    assert!(reason.contains("cannot read a file in the bucket"), "{reason}");
    server.answer_ranges(RangeAnswer::Right);
    assert_eq!(page(&other, of("d05")).await, (newest(), vec![]));

    // What there are copies of is read without a connection, too, and nothing else.
    proxy.redirect(None).await;
    assert_eq!(page(&other, of("d05")).await.0, newest());
    let away = other.query(of("d15")).await.unwrap();
    assert_eq!(away.records.len(), 0);
    assert!(away.skipped.iter().any(|skipped| skipped.path.to_string_lossy().ends_with(".parquet")));
    proxy.redirect(Some(server.address)).await;
    let sees = async {
        while !page(&other, of("d15")).await.1.is_empty() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    soon("the bucket is there again", sees).await;
    assert_eq!(page(&other, of("d15")).await.0.len(), 50);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_deleted_or_changed_between_two_ranges_gives_no_wrong_record() {
    let Some(mut server) = server() else { return };
    let proxy = Proxy::start(Some(server.address)).await;
    let [first, second, third] = [1, 2, 3].map(|number| machine(&server, &proxy, number));
    let one = first.open();
    fill(&first, &one).await;
    server.answer_ranges(RangeAnswer::Gone);
    // As after a merge, whose file would be listed now.
    assert_eq!(page(&second.open(), of("d05")).await, (vec![], vec![]));
    one.upload().await.unwrap();

    let other = third.open();
    server.answer_ranges(RangeAnswer::Changed);
    let changed = other.query(of("d05")).await.unwrap();
    assert_eq!((changed.records.len(), changed.skipped.len()), (0, 1));
    assert!(changed.skipped[0].path.to_string_lossy().ends_with(".parquet"), "{:?}", changed.skipped);
    assert_eq!(copies(&third), (0, 0));
}

/// Places in a file that a query for `d05` reads: in a page, which has none of `d15`, and in all that says where it is.
fn places(file: &Path) -> [u64; 6] {
    let metadata = ParquetMetaDataReader::new().parse_and_finish(&fs::File::open(file).unwrap()).unwrap();
    let columns = metadata.row_group(0).columns();
    let [dev_id, payload] =
        ["dev_id", "payload"].map(|name| columns.iter().find(|column| column.column_path().string() == name).unwrap());
    let (start, length) = payload.byte_range();
    let indexes = columns.iter().filter_map(ColumnChunkMetaData::offset_index_range);
    [
        // All rows are as long, and pages have 2048 of them.
        start + length * 26 / 100,
        dev_id.byte_range().0,
        dev_id.bloom_filter_offset().unwrap() as u64 + 40,
        dev_id.column_index_range().unwrap().start,
        dev_id.offset_index_range().unwrap().start,
        // The description.
        indexes.map(|range| range.end).max().unwrap() + 100,
    ]
}

// Conformance: A byte of a sealed file that has changed is never read as another value
#[tokio::test(flavor = "multi_thread")]
async fn parts_of_a_file_with_a_changed_byte_are_not_read() {
    let Some(server) = server() else { return };
    let proxy = Proxy::start(Some(server.address)).await;
    let (noting, asked) = noting_proxy(&server).await;
    let (first, second) = (machine(&server, &proxy, 1), machine(&server, &noting, 2));
    let one = first.open();
    let whole = seal(&first, &one).await;
    let (mut bytes, places) = (fs::read(&whole).unwrap(), places(&whole));
    let name = whole.file_stem().unwrap().to_str().unwrap();
    for (number, place) in places.iter().enumerate() {
        bytes[*place as usize] ^= 1;
        fs::write(whole.with_file_name(format!("{name}{number}.parquet")), &bytes).unwrap();
        bytes[*place as usize] ^= 1;
    }
    fs::remove_file(&whole).unwrap();
    one.upload().await.unwrap();

    let other = second.open();
    let damaged = other.query(of("d05")).await.unwrap();
    assert_eq!((damaged.records.len(), damaged.skipped.len()), (0, places.len()));
    let mut reasons = damaged.skipped.iter().map(|skipped| &skipped.reason);
    assert!(reasons.all(|reason| reason.contains("are not those that were written")), "{:?}", damaged.skipped);
    // Of this device, the pages of the first are whole.
    let (counters, skipped) = page(&other, of("d15")).await;
    assert_eq!((counters, skipped.len()), (newest_of(15), places.len() - 1));
    taken(&asked).expect("only parts are read");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_that_waits_for_a_server_ends_when_history_is_closed() {
    let Some(mut server) = server() else { return };
    let proxy = Proxy::start(Some(server.address)).await;
    let (noting, asked) = noting_proxy(&server).await;
    let (first, second) = (machine(&server, &proxy, 1), machine(&server, &noting, 2));
    let one = first.open();
    fill(&first, &one).await;
    let other = second.open();
    server.answer_ranges(RangeAnswer::Held);
    let waiting = Arc::clone(&other);
    let query = tokio::spawn(async move { waiting.query(of("d05")).await });
    let is_asked = async {
        while asked.lock().unwrap().is_empty() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    soon("the range is asked for", is_asked).await;
    other.close().await.unwrap();
    let stopped = soon("the query ends", query).await.unwrap().unwrap_err();
    assert_eq!(stopped.kind(), types::Kind::Unavailable);
    server.answer_ranges(RangeAnswer::Right);
}
