//! Cost of history: processor time and bytes of each uplink, those of checksums, the time of a query among ten million of
//! them, and that of a chart of a tenth of them.
//!
//! `AIRLOCK_HISTORY_UPLINKS` is how many there are, in millions.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::disallowed_methods,
    clippy::needless_pass_by_value
)]

mod input;

use std::{
    env, fs,
    hint::black_box,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use airlock_history as history;
use bytes::Bytes;
use futures::StreamExt;
use history::{ChartQuery, Chunks, Environment, History, Query, Settings};
use input::{BenchClock, Case, Input, SeededRandom};
use parquet::file::reader::{ChunkReader, Length};
use types::Clock;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Number of uplinks that wait at once.
const GROUP: u32 = 500;
/// Number of devices.
const DEVICES: u32 = 10_000;

const PLAIN: Case = Case {
    name: "without metadata",
    has_gateway: false,
    devices: DEVICES,
    applications: 1,
    has_own_devices: false,
    apart_ms: 60,
    maintained_after: 64,
};
const WITH_GATEWAY: Case = Case { name: "with the metadata of a gateway", has_gateway: true, ..PLAIN };
/// So fast that segments are full before they are old.
const MANY: Case =
    Case { name: "of 10,000 applications in turn", applications: 10_000, apart_ms: 1, maintained_after: 256, ..PLAIN };
/// Of 200 in a file: all are in one segment.
const FEW: Case = Case {
    name: "of 1,000 applications with 200 each",
    applications: 1000,
    has_own_devices: true,
    apart_ms: 1,
    maintained_after: u32::MAX,
    ..PLAIN
};
const FEW_UPLINKS: u32 = 200_000;
/// The uplinks of a chart.
const ONE_DEVICE: Case = Case { name: "of one device", devices: 1, ..PLAIN };

#[tokio::main]
async fn main() {
    let uplinks = env::var("AIRLOCK_HISTORY_UPLINKS").map_or(10.0, |text| text.parse::<f64>().unwrap());
    let uplinks = (uplinks * 1e6) as u32;
    println!("| figure | value | goal |\n|---|--:|--:|");
    append(FEW_UPLINKS, &FEW).await;
    append(uplinks / 10, &MANY).await;
    append(uplinks / 10, &WITH_GATEWAY).await;
    let dir = append(uplinks, &PLAIN).await;
    if env::var_os("AIRLOCK_HISTORY_APPEND_ONLY").is_none() {
        queries(dir.path(), uplinks).await;
        let dir = append(uplinks / 10, &ONE_DEVICE).await;
        charts(dir.path(), uplinks / 10).await;
    }
}

fn row(what: &str, value: String, goal: &str) {
    println!("| {what} | {value} | {goal} |");
}

fn open(dir: &Path, clock: &Arc<BenchClock>) -> Arc<History> {
    let bytes_max = 1 << 40;
    let settings = Settings {
        bytes_max,
        application_bytes_max: Some(bytes_max),
        days_max: 36_500,
        wait_ms_max: 60_000,
        ..Settings::default()
    };
    let environment =
        Environment { clock: clock.clone(), random: &SeededRandom, owner_of: Arc::new(ToString::to_string) };
    History::open(dir, settings, environment).unwrap()
}

/// Appends uplinks and seals them, and prints the cost of each.
async fn append(uplinks: u32, case: &'static Case) -> tempfile::TempDir {
    let dir =
        tempfile::tempdir_in(env::var_os("AIRLOCK_HISTORY_DIR").unwrap_or_else(|| env::temp_dir().into())).unwrap();
    let clock = Arc::new(BenchClock::default());
    let history = open(dir.path(), &clock);
    let mut input = Input::new(case);
    let (mut making, mut appending, mut sealing, mut all) =
        (Duration::ZERO, Duration::ZERO, Duration::ZERO, Duration::ZERO);
    for group in 0..uplinks / GROUP {
        let start = process_time();
        let records = input.records(group, &clock);
        let made = process_time();
        let pending: Vec<_> = records
            .iter()
            .map(|record| {
                clock.set(record.received);
                history.append(&record.record())
            })
            .collect();
        let mut kept = Vec::with_capacity(pending.len());
        for pending in pending {
            kept.push(pending.await);
        }
        let appended = process_time();
        assert!(kept.iter().all(Result::is_ok), "{:?}", kept.first());
        // In turns with appending, so that each can be measured.
        if group % case.maintained_after == case.maintained_after - 1 {
            history.maintain().await.unwrap();
        }
        making += made - start;
        appending += appended - made;
        sealing += process_time() - appended;
        all += process_time() - start;
    }
    let start = process_time();
    history.seal().await.unwrap();
    sealing += process_time() - start;
    history.close().await.unwrap();
    let each = |time: Duration| format!("{:.2} µs", time.as_secs_f64() * 1e6 / f64::from(uplinks));
    let kind = case.name;
    row(&format!("append, {kind}"), each(appending), "");
    row(&format!("seal, {kind}"), each(sealing), "");
    row(&format!("append and seal, {kind}"), each(appending + sealing), "≤ 3 µs");
    sizes(dir.path(), uplinks, kind);
    checksums(dir.path(), uplinks, kind);
    dir
}

/// Prints the bytes of an uplink on disk.
fn sizes(dir: &Path, uplinks: u32, kind: &str) {
    let (mut bytes, mut results) = (0, 0);
    let mut columns = std::collections::BTreeMap::new();
    for path in files(dir) {
        bytes += fs::metadata(&path).unwrap().len();
        for (column, size) in history::column_bytes(&path).unwrap() {
            results += if column == "result" { size } else { 0 };
            *columns.entry(column).or_insert(0) += size;
        }
    }
    let each = |bytes: u64| format!("{:.1}", bytes as f64 / f64::from(uplinks));
    row(&format!("uplinks of a file, {kind}"), format!("{:.0}", f64::from(uplinks) / files(dir).len() as f64), "");
    row(&format!("bytes of each, {kind}"), each(bytes), "");
    row(&format!("… beside the result, {kind}"), each(bytes - results), "≤ 40");
    if env::var_os("AIRLOCK_HISTORY_COLUMNS").is_some() {
        columns.iter().for_each(|(column, size)| row(&format!("  {column}"), each(*size), ""));
    }
}

/// Prints what checksums cost where files are written, and where all of them is read: beside the same without checksums.
fn checksums(dir: &Path, uplinks: u32, kind: &str) {
    let (mut written, mut read) = ([Duration::ZERO; 2], [Duration::ZERO; 2]);
    for path in files(dir) {
        let content = fs::read(&path).unwrap();
        written[0] += time(|| copy(&content));
        written[1] += time(|| history::with_checksums(&content).unwrap());
        read[0] += time(|| all_of(&Chunks::new(fs::File::open(&path).unwrap()).unwrap()));
        read[1] += time(|| all_of(&Chunks::new(fs::File::open(&path).unwrap()).unwrap().checked().unwrap()));
    }
    for (what, [without, with]) in [("written", written), ("read", read)] {
        let each = |time: Duration| time.as_secs_f64() * 1e9 / f64::from(uplinks);
        let more = each(with) - each(without);
        row(&format!("checksums, {what}, {kind}"), format!("{more:.1} ns more than {:.1} ns", each(without)), "");
    }
}

/// A copy of a file, made in parts as large as those in which files are written.
fn copy(content: &[u8]) -> Vec<u8> {
    let mut copy = Vec::new();
    content.chunks(8192).for_each(|part| copy.extend_from_slice(black_box(part)));
    copy
}

fn all_of(chunks: &Chunks) -> Bytes {
    chunks.get_bytes(0, chunks.len() as usize).unwrap()
}

/// Processor time of some work.
fn time<T>(work: impl FnOnce() -> T) -> Duration {
    let start = process_time();
    black_box(work());
    process_time() - start
}

async fn queries(dir: &Path, uplinks: u32) {
    let clock = Arc::new(BenchClock::default());
    let mut times = Vec::new();
    for number in 0..20 {
        cool(dir);
        let history = open(dir, &clock);
        let query =
            Query { dev_id: Some(input::device(number * 487 % DEVICES)), limit: 50, ..Query::of(input::application()) };
        let start = Instant::now();
        let page = history.query(query).await.unwrap();
        times.push(start.elapsed().as_secs_f64() * 1e3);
        assert_eq!(page.records.len(), 50.min(uplinks as usize / DEVICES as usize));
        history.close().await.unwrap();
    }
    times.sort_by(f64::total_cmp);
    row("newest 50 of a device, cold: median", format!("{:.1} ms", times[10]), "≤ 50 ms");
    row("newest 50 of a device, cold: worst", format!("{:.1} ms", times[19]), "");
    let history = open(dir, &clock);
    for (what, field) in [("no", "fields.temperature > 1000"), ("few", "fields.temperature > 44.998")] {
        let query = Query { field: Some(field.parse().unwrap()), limit: 1000, ..Query::of(input::application()) };
        let start = Instant::now();
        let page = history.query(query).await.unwrap();
        let took = start.elapsed().as_secs_f64();
        row(
            &format!("field filter over all, {what} matches ({})", page.records.len()),
            format!("{took:.2} s"),
            "≤ 1 s",
        );
    }
    let start = Instant::now();
    let batches = history.batches(Query { oldest_first: true, ..Query::of(input::application()) });
    let count: usize =
        batches.take(30).map(|batch| batch.unwrap().records.len()).collect::<Vec<_>>().await.iter().sum();
    row("scan, records each second", format!("{:.0}", count as f64 / start.elapsed().as_secs_f64()), "");
    history.close().await.unwrap();
}

/// Charts of all uplinks of a device, cold and then not.
async fn charts(dir: &Path, uplinks: u32) {
    let clock = Arc::new(BenchClock::default());
    let since = clock.now();
    // The last ones came up to 50 ms late.
    let until = since.plus(Duration::from_millis(u64::from(uplinks) * ONE_DEVICE.apart_ms as u64 + 1000));
    for (what, field) in [("one field", Some("temperature")), ("all fields", None)] {
        for state in ["cold", "again"] {
            if state == "cold" {
                cool(dir);
            }
            let history = open(dir, &clock);
            let query = ChartQuery {
                app_id: input::application(),
                dev_id: input::device(0),
                since,
                until,
                field: field.map(str::to_owned),
                points: 120,
            };
            let start = Instant::now();
            let chart = history.chart(query).await.unwrap();
            let took = start.elapsed().as_secs_f64();
            assert_eq!(chart.examined, (uplinks / GROUP * GROUP) as usize);
            row(&format!("chart of {uplinks} uplinks, {what}, {state}"), format!("{took:.2} s"), "≤ 1 s");
            history.close().await.unwrap();
        }
    }
}

/// All Parquet files below a directory.
fn files(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    entries
        .flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] })
        .filter(|path| path.extension().is_some_and(|extension| extension == "parquet"))
        .collect()
}

/// Has the system forget what it has read.
fn cool(dir: &Path) {
    for path in files(dir) {
        let file = fs::File::open(path).unwrap();
        rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).unwrap();
    }
}

/// Processor time of the process so far.
fn process_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
