//! Files that are damaged or not ours are left out, named, and never deleted.

use std::fs;

use futures::{TryStreamExt, future::join_all};
use history::{ExportPart, Format, Kind, NewRecord, Query};
use parquet::file::metadata::ParquetMetaDataReader;
use types::Clock;

use crate::{
    changed_bytes::seal,
    harness::{Harness, app, counters, damage_page, dev, everything, files, kept, page, without_checksums},
};

#[tokio::test]
async fn damaged_and_foreign_files_are_named_and_stay() {
    let harness = Harness::new();
    let history = harness.open();
    harness.uplink(&history, "a1", 1).await;
    history.seal().await.unwrap();
    let whole = files(&harness).remove(0);
    let bytes = fs::read(&whole).unwrap();
    let long = "9".repeat(200);
    for (name, bytes) in [
        ("1790000000000-1790000009000-cut.parquet", &bytes[..bytes.len() / 2]),
        ("1790000000000-1790000009000-empty.parquet", &[]),
        ("1790000000000-1790000009000-text.parquet", b"not a Parquet file"),
        ("foreign.parquet", &bytes[..]),
        (&format!("1-{long}-0.parquet"), &bytes[..]),
    ] {
        fs::write(whole.with_file_name(name), bytes).unwrap();
    }
    let page = history.query(everything()).await.unwrap();
    assert_eq!(page.records.len(), 1);
    assert_eq!(page.skipped.len(), 5, "{:?}", page.skipped);
    assert!(page.skipped.iter().all(|skipped| !skipped.reason.is_empty()));
    let parts: Vec<_> = history.export(everything(), Format::JsonLines).try_collect().await.unwrap();
    assert!(matches!(&parts[..], [ExportPart::Bytes(_), ExportPart::Unreadable(files)] if *files == page.skipped));
    history.maintain().await.unwrap();
    history.remove_device(&"my-app".parse().unwrap(), &"b1".parse().unwrap()).await.unwrap();
    assert_eq!(files(&harness).len(), 6);
}

#[tokio::test]
async fn a_record_that_is_not_found_may_be_in_a_file_that_cannot_be_read() {
    let harness = Harness::new();
    let history = harness.open();
    harness.uplink(&history, "a1", 1).await;
    history.seal().await.unwrap();
    let id = history.query(everything()).await.unwrap().records.remove(0).id;
    let damaged = files(&harness).remove(0);
    fs::write(&damaged, "not a Parquet file").unwrap();
    fs::write(damaged.with_file_name("foreign.parquet"), "never has a record").unwrap();
    let unreadable = history.get(&app(), id).await.unwrap().unwrap_err();
    assert_eq!(unreadable.into_iter().map(|skipped| skipped.path).collect::<Vec<_>>(), [damaged]);
    let earlier = "0".repeat(28).parse().unwrap();
    assert_eq!(history.get(&app(), earlier).await.unwrap(), Err(Vec::new()), "no file is of that time");
}

#[tokio::test]
async fn no_changed_byte_of_a_file_without_checksums_stops_a_query() {
    let harness = Harness::new();
    let history = harness.open();
    seal(&harness, &history, 50).await;
    let path = files(&harness).remove(0);
    let bytes = without_checksums(&fs::read(&path).unwrap());
    for position in (0..bytes.len()).step_by(7) {
        let mut changed = bytes.clone();
        changed[position] ^= 0x55;
        fs::write(&path, &changed).unwrap();
        // What is read may differ, but it is read or named.
        history.query(everything()).await.unwrap();
    }
    fs::write(&path, &bytes).unwrap();
    assert_eq!(counters(&history, everything()).await.len(), 50);
}

#[tokio::test]
async fn a_changed_number_of_rows_hides_no_records() {
    let harness = Harness::new();
    let history = harness.open();
    seal(&harness, &history, 600).await;
    let path = files(&harness).remove(0);
    // Only such files are read without checking that they are what was written.
    let file = without_checksums(&fs::read(&path).unwrap());
    // 600 as the next field of 64 bits, and 592.
    let [number, fewer] = [[0x16, 0xb0, 0x09], [0x16, 0xa0, 0x09]];
    let places: Vec<_> = (0..file.len() - 3).filter(|place| file[*place..].starts_with(&number)).collect();
    // Of the file, of its row group, and of each column outside of lists.
    assert!(places.len() >= 2 + 28, "{places:?}");
    for place in places {
        fs::write(&path, overwritten(&file, place, &fewer)).unwrap();
        let (counters, skipped) = page(&history, Query { limit: 1000, ..everything() }).await;
        assert!(counters.len() == 600 || skipped == [path.clone()], "{place}: {} and {skipped:?}", counters.len());
    }
}

/// Puts bytes into a file of Parquet, from a position on.
fn overwritten(file: &[u8], position: usize, bytes: &[u8]) -> Vec<u8> {
    [&file[..position], bytes, &file[position + bytes.len()..]].concat()
}

/// The same file, whose schema claims so many columns, as Parquet encodes it.
fn with_columns(file: &[u8], columns: &[u8]) -> Vec<u8> {
    let (file, last) = file.split_at(file.len() - 8);
    let root = b"history\x15";
    let place = file.windows(root.len()).rposition(|bytes| bytes == root).unwrap() + root.len();
    let length = u32::from_le_bytes(last[..4].try_into().unwrap()) + columns.len() as u32 - 1;
    [&file[..place], columns, &file[place + 1..], &length.to_le_bytes(), b"PAR1"].concat()
}

/// A file without rows, whose schema is a million groups in each other. To read them one in the other takes more room on
/// the stack than a thread has.
fn nested() -> Vec<u8> {
    // Three bytes of a number, and a group that is required, called `a`, and has one child.
    let (count, group) = ([0xc0, 0x84, 0x3d], [0x35, 0x00, 0x18, 0x01, b'a', 0x15, 0x02, 0x00]);
    let description = [&[0x15, 0x02, 0x19, 0xfc][..], &count, &group.repeat(1_000_000), &[0x00]].concat();
    let length = (description.len() as u32).to_le_bytes();
    [&b"PAR1"[..], &description, &length, b"PAR1"].concat()
}

#[tokio::test]
async fn files_that_claim_more_than_they_have_are_named() {
    let harness = Harness::new();
    let history = harness.open();
    let (app_id, dev_id, kind) = (app(), dev("a1"), Kind::Uplink);
    let new = |counter| NewRecord { counter, ..NewRecord::new(&app_id, &dev_id, &kind, harness.clock.now()) };
    // So many that the file says where its pages are.
    let appended: Vec<_> = (0..600).map(|counter| history.append(&new(counter))).collect();
    join_all(appended).await.into_iter().for_each(|uplink| _ = kept(uplink));
    history.seal().await.unwrap();
    let path = files(&harness).remove(0);
    // Only such files are read without checking that they are what was written.
    let file = without_checksums(&fs::read(&path).unwrap());
    let metadata = ParquetMetaDataReader::new().parse_and_finish(&fs::File::open(&path).unwrap()).unwrap();
    let pages = metadata.row_group(0).column(0).offset_index_range().unwrap().start as usize;

    let two_gib = [0xfe, 0xff, 0xff, 0xff, 0x0f];
    let page =
        [&[0x15, 0, 0x15][..], &two_gib, &[0x15, 0x10, 0x2c, 0x15, 2, 0x15, 10, 0x15, 6, 0x15, 6, 0, 0]].concat();
    let page_list = [0x19, 0xfc, 0xff, 0xff, 0xff, 0xff, 0x07];
    assert_eq!(with_columns(&file, &[30 * 2]), file);
    for (lying, reason) in [
        (overwritten(&file, 4, &page), "a page claims to be larger than it can be"),
        (overwritten(&file, pages, &page_list), "the places of its pages"),
        (with_columns(&file, &two_gib), "its description claims what cannot be"),
        (nested(), "its description claims what cannot be"),
        ([&file[..file.len() - 8], &[0xff; 4], b"PAR1"].concat(), "its description is longer than the file"),
    ] {
        fs::write(&path, lying).unwrap();
        let skipped = history.query(everything()).await.unwrap().skipped;
        assert_eq!(skipped.iter().map(|skipped| &skipped.path).collect::<Vec<_>>(), [&path]);
        assert!(skipped[0].reason.contains(reason), "{} instead of {reason}", skipped[0].reason);
    }
    fs::write(&path, &file).unwrap();
    assert_eq!(counters(&history, everything()).await.len(), 600);
}

#[tokio::test]
async fn a_file_with_a_damaged_page_does_not_end_a_removal() {
    let harness = Harness::new();
    let history = harness.open();
    for counter in 0..4 {
        harness.uplink(&history, ["a1", "b1"][counter as usize % 2], counter).await;
        if counter % 2 == 1 {
            history.seal().await.unwrap();
        }
    }
    let damaged = files(&harness).remove(0);
    damage_page(&damaged);
    history.remove_device(&app(), &dev("a1")).await.unwrap();
    // Nothing is only hidden.
    fs::remove_dir_all(harness.path().join("removed")).unwrap();
    assert_eq!(page(&history, everything()).await, (vec![3], vec![damaged]));
}

#[tokio::test]
async fn no_changed_byte_of_a_file_without_checksums_stops_a_removal() {
    let harness = Harness::new();
    let history = harness.open();
    seal(&harness, &history, 50).await;
    let path = files(&harness).remove(0);
    let bytes = without_checksums(&fs::read(&path).unwrap());
    for position in (0..bytes.len()).step_by(97) {
        files(&harness).iter().for_each(|path| fs::remove_file(path).unwrap());
        let mut changed = bytes.clone();
        changed[position] ^= 0x55;
        // The directory goes with the last file, which may seem to have no other device.
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, &changed).unwrap();
        history.remove_device(&app(), &dev("a1")).await.unwrap();
    }
    files(&harness).iter().for_each(|path| fs::remove_file(path).unwrap());
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, &bytes).unwrap();
    history.remove_device(&app(), &dev("a1")).await.unwrap();
    assert_eq!(counters(&history, everything()).await.len(), 25);
}
