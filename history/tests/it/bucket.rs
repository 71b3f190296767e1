//! Handlers that share no disk see each other's files in a bucket, over a connection that can be cut.

use std::{
    fs, mem,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use history::{BucketSettings, History, Kind, NewRecord, Query};
use testing::{ObjectServer, Proxy, soon};
use types::{Clock, Kinded, Random};

use crate::harness::{Harness, app, counters, damage_page, dev, everything, files, kept};

pub(crate) fn server() -> Option<ObjectServer> {
    ObjectServer::start(&Path::new(env!("CARGO_TARGET_TMPDIR")).join("object_server"))
}

/// A directory of its own, with a bucket behind a proxy. Each `number` stands for another machine.
pub(crate) fn machine(server: &ObjectServer, proxy: &Proxy, number: u8) -> Harness {
    let mut harness = Harness::new();
    (0..number).for_each(|_| harness.random.fill(&mut [0; 8]));
    let secret = harness.path().join("secret");
    fs::write(&secret, &server.secret_access_key).unwrap();
    harness.settings.bucket = BucketSettings {
        url: "s3://history/some/folder".to_owned(),
        endpoint: Some(format!("http://{}", proxy.address)),
        access_key_id: Some(server.access_key_id.clone()),
        secret_access_key_file: Some(secret),
        ..BucketSettings::default()
    };
    harness
}

/// The counters of the newest page, and whether something was skipped.
async fn page(history: &History) -> (Vec<u32>, bool) {
    let page = history.query(everything()).await.unwrap();
    (page.records.iter().map(|record| record.counter).collect(), !page.skipped.is_empty())
}

/// Waits until the newest page is this, and whether something is skipped.
async fn sees(history: &History, expected: &[u32], is_skipped: bool) {
    let seen = async {
        while page(history).await != (expected.to_vec(), is_skipped) {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    soon("the handler sees what is in the bucket", seen).await;
}

// Conformance: Handlers that share no disk see each other's history in a bucket
#[tokio::test(flavor = "multi_thread")]
async fn handlers_see_each_others_files() {
    let Some(server) = server() else { return };
    let proxy = Proxy::start(Some(server.address)).await;
    let [first, second] = [1, 2].map(|number| machine(&server, &proxy, number));
    let (one, other) = (first.open(), second.open());
    for counter in 0..9 {
        first.uplink(&one, "a1", counter).await;
        one.seal().await.unwrap();
    }
    second.clock.advance(Duration::from_secs(100));
    second.uplink(&other, "b1", 9).await;
    other.seal().await.unwrap();
    one.upload().await.unwrap();
    other.upload().await.unwrap();
    let expected: Vec<u32> = (0..10).rev().collect();
    sees(&other, &expected, false).await;
    sees(&one, &expected, false).await;
    let device = Query { dev_id: Some(dev("a1")), oldest_first: true, ..everything() };
    assert_eq!(counters(&other, device).await, (0..9).collect::<Vec<_>>());

    // Files are merged, and others do not see any of it.
    one.maintain().await.unwrap();
    assert!(files(&first).len() < 9);
    one.upload().await.unwrap();
    sees(&other, &expected, false).await;
    // One that has nothing of its own sees them, too.
    let third = machine(&server, &proxy, 3);
    sees(&third.open(), &expected, false).await;
}

// Conformance: Handlers that share no disk see each other's history in a bucket
#[tokio::test(flavor = "multi_thread")]
async fn what_one_handler_removes_is_gone_from_all() {
    let Some(server) = server() else { return };
    let proxy = Proxy::start(Some(server.address)).await;
    let [first, second] = [1, 2].map(|number| machine(&server, &proxy, number));
    let (one, other) = (first.open(), second.open());
    for (counter, device) in [(1, "a1"), (2, "b1")] {
        first.uplink(&one, device, counter).await;
        second.uplink(&other, device, counter + 2).await;
    }
    one.seal().await.unwrap();
    other.seal().await.unwrap();
    other.upload().await.unwrap();
    one.remove_device(&app(), &dev("a1")).await.unwrap();
    one.upload().await.unwrap();
    sees(&other, &[4, 2], false).await;
    other.upload().await.unwrap();
    other.upload().await.unwrap();
    let has_device = |harness: &Harness| {
        let bytes: Vec<_> = files(harness).into_iter().flat_map(|path| fs::read(path).unwrap()).collect();
        bytes.windows(2).any(|bytes| bytes == b"a1")
    };
    assert!(!has_device(&first) && !has_device(&second), "a file still has the device");

    let machine = machine(&server, &proxy, 3);
    let third = machine.open();
    let device = Query { dev_id: Some(dev("a1")), ..everything() };
    assert_eq!((page(&third).await, counters(&third, device).await), ((vec![4, 2], false), vec![]));
    other.remove_application(&app()).await.unwrap();
    other.upload().await.unwrap();
    one.upload().await.unwrap();
    sees(&third, &[], false).await;
    assert!(files(&first).is_empty() && files(&second).is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_file_does_not_end_uploads() {
    let Some(server) = server() else { return };
    let proxy = Proxy::start(Some(server.address)).await;
    let [first, second] = [1, 2].map(|number| machine(&server, &proxy, number));
    let (one, other) = (first.open(), second.open());
    second.uplink(&other, "a1", 1).await;
    other.seal().await.unwrap();
    let damaged = files(&second).remove(0);
    damage_page(&damaged);
    for (counter, device) in [(2, "a1"), (3, "b1")] {
        second.uplink(&other, device, counter).await;
    }
    other.seal().await.unwrap();
    first.clock.advance(Duration::from_secs(100));
    one.remove_device(&app(), &dev("a1")).await.unwrap();
    one.upload().await.unwrap();
    other.upload().await.unwrap();
    sees(&other, &[3], true).await;
    let whole = files(&second).into_iter().find(|path| *path != damaged).unwrap();
    let bytes = fs::read(whole).unwrap();
    assert!(!bytes.windows(11).any(|bytes| bytes == br#""name":"a1""#), "the file still has the device");
    sees(&one, &[3], true).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_day_that_cannot_be_read_holds_up_no_other() {
    let Some(server) = server() else { return };
    let proxy = Proxy::start(Some(server.address)).await;
    let [first, second] = [1, 2].map(|number| machine(&server, &proxy, number));
    let (one, other) = (first.open(), second.open());
    for counter in 0..6 {
        first.uplink(&one, "a1", counter).await;
        one.seal().await.unwrap();
    }
    // Two files of each of three days, none of which is over: nobody merges them.
    let days = ["day=2026-09-21", "day=2026-09-22", "day=2026-09-23"];
    let days = days.map(|day| first.path().join("app=my-app").join(day));
    for (day, paths) in days.iter().zip(files(&first).chunks(2)) {
        fs::create_dir_all(day).unwrap();
        paths.iter().for_each(|path| fs::rename(path, day.join(path.file_name().unwrap())).unwrap());
    }
    one.upload().await.unwrap();
    sees(&other, &[5, 4, 3, 2, 1, 0], false).await;

    // In each day, a file is deleted. One cannot be listed then, and another has a file that cannot be read.
    one.close().await.unwrap();
    drop(one);
    files(&first).iter().step_by(2).for_each(|path| fs::remove_file(path).unwrap());
    let [unlisted, unread, _] = &days;
    let (aside, closed) = (first.path().join("aside"), unread.join("1790000000000-1790000009000-0.parquet"));
    fs::rename(unlisted, &aside).unwrap();
    fs::write(unlisted, "not a directory").unwrap();
    fs::create_dir(&closed).unwrap();
    let one = first.open();
    assert!(one.upload().await.is_err());
    sees(&other, &[5, 3, 2, 1, 0], false).await;

    fs::remove_file(unlisted).unwrap();
    fs::rename(&aside, unlisted).unwrap();
    fs::remove_dir(&closed).unwrap();
    one.upload().await.unwrap();
    sees(&other, &[5, 3, 1], false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn files_that_are_merged_during_an_upload_stay_until_the_new_one_is_there() {
    let Some(server) = server() else { return };
    let renames = Arc::new(Mutex::new(None::<[PathBuf; 2]>));
    let requests = Arc::new(Mutex::new(Vec::<String>::new()));
    let (to_rename, noted) = (Arc::clone(&renames), Arc::clone(&requests));
    // The next file that is put is under way while another gets a new name, as if it were merged.
    let note = move |part: &[u8]| {
        if part.starts_with(b"PUT")
            && let Some([before, after]) = to_rename.lock().unwrap().take()
        {
            fs::rename(before, after).unwrap();
        }
        let line = part.split(|byte| *byte == b'\r').next().unwrap_or_default();
        noted.lock().unwrap().push(String::from_utf8_lossy(line).into_owned());
        true
    };
    let noting = Proxy::start_filtered(server.address, note).await;
    let proxy = Proxy::start(Some(server.address)).await;
    let (mut first, second) = (machine(&server, &noting, 1), machine(&server, &proxy, 2));
    let (one, other) = (first.open(), second.open());
    for counter in 0..2 {
        first.uplink(&one, "a1", counter).await;
        one.seal().await.unwrap();
    }
    one.upload().await.unwrap();
    sees(&other, &[1, 0], false).await;
    one.close().await.unwrap();
    drop(one);

    // Without the bucket, the two become one, and there are files that are put before it, as many as at once.
    let bucket = mem::take(&mut first.settings.bucket);
    let one = first.open();
    for number in 0..8 {
        first.uplink_of(&one, &format!("an-app{number}").parse().unwrap(), "a1", 2).await;
    }
    first.clock.advance(Duration::from_secs(36 * 3600));
    one.seal().await.unwrap();
    one.maintain().await.unwrap();
    one.close().await.unwrap();
    drop(one);
    let merged = files(&first).remove(0);
    assert_eq!(files(&first).len(), 1);
    let name = format!("{}0.parquet", merged.file_stem().unwrap().to_str().unwrap());
    *renames.lock().unwrap() = Some([merged.clone(), merged.with_file_name(&name)]);
    requests.lock().unwrap().clear();

    first.settings.bucket = bucket;
    let one = first.open();
    let is_put = |line: &String| line.starts_with("PUT") && line.contains(&name);
    let uploads = async {
        while !requests.lock().unwrap().iter().any(is_put) {
            one.upload().await.unwrap();
        }
    };
    soon("the new file is in the bucket", uploads).await;
    one.upload().await.unwrap();
    let requests = mem::take(&mut *requests.lock().unwrap());
    let is_delete = |line: &String| line.starts_with("DELETE") || line.starts_with("POST");
    let (put, delete) = (requests.iter().position(is_put), requests.iter().position(is_delete));
    assert!(delete.is_some() && put < delete, "{requests:?}");
    sees(&other, &[1, 0], false).await;
}

// Conformance: Handlers that share no disk see each other's history in a bucket
#[tokio::test(flavor = "multi_thread")]
async fn a_bucket_that_is_away_holds_up_nothing_and_gets_the_files_later() {
    let Some(server) = server() else { return };
    let proxy = Proxy::start(Some(server.address)).await;
    let [first, second] = [1, 2].map(|number| machine(&server, &proxy, number));
    let (one, other) = (first.open(), second.open());
    first.uplink(&one, "a1", 1).await;
    one.seal().await.unwrap();
    one.upload().await.unwrap();
    sees(&other, &[1], false).await;

    proxy.redirect(None).await;
    first.uplink(&one, "a1", 2).await;
    one.seal().await.unwrap();
    assert_eq!(one.upload().await.unwrap_err().kind(), types::Kind::Unavailable);
    // What is here and copies are read, and the bucket is named.
    sees(&one, &[2, 1], true).await;
    sees(&other, &[1], true).await;
    // A handler starts without it, and keeps what is handled.
    let third = machine(&server, &proxy, 3);
    let started = third.open();
    third.uplink(&started, "c1", 3).await;
    assert_eq!(page(&started).await, (vec![3], true));

    proxy.redirect(Some(server.address)).await;
    // Nobody asks for it: it is tried again.
    sees(&other, &[2, 1], false).await;
}

// Conformance: Handlers that share no disk see each other's history in a bucket
#[tokio::test(flavor = "multi_thread")]
async fn an_upload_that_is_cut_leaves_nothing_half() {
    let Some(server) = server() else { return };
    let is_cut = Arc::new(AtomicBool::new(true));
    let cutting = Arc::clone(&is_cut);
    // The first part of a file is let through, with its headers, and no other.
    let is_first = |part: &[u8]| [&b"GET"[..], b"PUT", b"DEL", b"POS"].iter().any(|method| part.starts_with(method));
    let passes = move |part: &[u8]| !cutting.load(Ordering::SeqCst) || is_first(part);
    let weak = Proxy::start_filtered(server.address, passes).await;
    let proxy = Proxy::start(Some(server.address)).await;
    let (first, second) = (machine(&server, &weak, 1), machine(&server, &proxy, 2));
    let (one, other) = (first.open(), second.open());
    // So much that it does not fit into one part, and does not compress.
    let (app_id, dev_id, mut state) = (app(), dev("a1"), 1u64);
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 56) as u8
    };
    for counter in 0..40 {
        let payload: Vec<u8> = (0..4000).map(|_| next()).collect();
        let new = NewRecord::new(&app_id, &dev_id, &Kind::Uplink, first.clock.now());
        kept(one.append(&NewRecord { counter, payload: &payload, ..new }).await);
    }
    one.seal().await.unwrap();
    one.upload().await.unwrap_err();
    assert_eq!(page(&other).await, (vec![], false));
    is_cut.store(false, Ordering::SeqCst);
    one.upload().await.unwrap();
    sees(&other, &(0..40).rev().collect::<Vec<_>>(), false).await;
}

// Conformance: Handlers that share no disk see each other's history in a bucket
#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_secret_says_what_to_do_and_is_read_again() {
    let Some(server) = server() else { return };
    let proxy = Proxy::start(Some(server.address)).await;
    let [first, second] = [1, 2].map(|number| machine(&server, &proxy, number));
    let secret = first.settings.bucket.secret_access_key_file.clone().unwrap();
    fs::write(&secret, "not-the-secret").unwrap();
    let (one, other) = (first.open(), second.open());
    first.uplink(&one, "a1", 1).await;
    one.seal().await.unwrap();
    let error = one.upload().await.unwrap_err();
    let said = server::status::ErrorChain(&error).to_string();
    assert!(said.contains("check access_key_id and secret_access_key_file of history.bucket"), "{said}");
    assert!(!said.contains("not-the-secret") && !format!("{error:?}").contains("not-the-secret"), "{said} {error:?}");
    fs::write(&secret, &server.secret_access_key).unwrap();
    soon("the new secret is used", async { while one.upload().await.is_err() {} }).await;
    sees(&other, &[1], false).await;
}
