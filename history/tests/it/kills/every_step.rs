//! A process that is killed before each of the system calls that change files: what it had acknowledged is found once,
//! and nothing half written stays.

use std::{
    env,
    ffi::OsStr,
    fs,
    io::{self, BufRead, BufReader, Read, Write},
    os::unix::process::ExitStatusExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::Arc,
    time::Duration,
};

use history::{Environment, History, Kind, NewRecord, Settings};
use testing::{FixedRandom, Killer, ManualClock};
use types::{Clock, Timestamp};

use crate::harness::{Harness, app, counters, dev, everything, files, kept};

/// Calls that change files, with their names on all processors.
const CALLS: [&str; 8] = [
    "write",
    "fsync",
    "fdatasync",
    "?rename,?renameat,?renameat2",
    "?unlink,?unlinkat",
    "?mkdir,?mkdirat",
    "?rmdir",
    "ftruncate",
];
/// More than any work has of one call.
const CALLS_MAX: usize = 1000;
/// Extensions of the names of files that must not stay.
const HALF_WRITTEN: [&str; 5] = ["new", "pending", "replaces", "sealing", "unfinished"];

/// Variables for the process that is killed.
const DIR: &str = "HISTORY_TEST_DIR";
const WORK: &str = "HISTORY_TEST_WORK";
const MILLIS: &str = "HISTORY_TEST_MILLIS";

/// Counters of the records of the device that is removed in the end, of another device, and of those that come last.
const FIRST: [u32; 4] = [0, 1, 2, 3];
const OTHER: [u32; 2] = [10, 11];
const LAST: [u32; 3] = [20, 21, 22];

/// The work at which a process is killed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Work {
    Append,
    Seal,
    Merge,
    Remove,
}

impl Work {
    const ALL: [Self; 4] = [Self::Append, Self::Seal, Self::Merge, Self::Remove];

    fn name(self) -> &'static str {
        match self {
            Self::Append => "append",
            Self::Seal => "seal",
            Self::Merge => "merge",
            Self::Remove => "remove",
        }
    }

    /// Keeps records for it.
    async fn prepare(self, harness: &Harness) {
        let history = harness.open();
        for counter in FIRST.into_iter().filter(|_| self != Self::Append) {
            harness.uplink(&history, "a1", counter).await;
            if self == Self::Merge {
                history.seal().await.unwrap();
            }
        }
        if self == Self::Remove {
            harness.uplink(&history, "b1", OTHER[0]).await;
            // Some of both devices are in a file, and some in the tail.
            history.seal().await.unwrap();
            harness.uplink(&history, "a1", LAST[0]).await;
            harness.uplink(&history, "b1", OTHER[1]).await;
        }
        history.close().await.unwrap();
        if self == Self::Merge {
            harness.clock.advance(Duration::from_secs(36 * 3600));
        }
    }

    async fn run(self, history: &History, clock: &ManualClock) {
        match self {
            Self::Append => {
                for counter in LAST {
                    clock.advance(Duration::from_secs(1));
                    let (app_id, dev_id) = (app(), dev("a1"));
                    let plain = NewRecord::new(&app_id, &dev_id, &Kind::Uplink, clock.now());
                    kept(history.append(&NewRecord { counter, ..plain }).await);
                    println!("kept {counter}");
                }
            }
            Self::Seal => history.seal().await.unwrap(),
            Self::Merge => history.maintain().await.unwrap(),
            Self::Remove => history.remove_device(&app(), &dev("a1")).await.unwrap(),
        }
        println!("done");
    }

    /// Checks the counters that are found, in order, after a process has said this.
    fn check(self, found: &[u32], said: &str) {
        let has_said = |line: &str| said.lines().any(|said| said == line);
        match self {
            Self::Append => {
                let acknowledged = LAST.iter().filter(|counter| has_said(&format!("kept {counter}"))).count();
                assert!(found.len() >= acknowledged && LAST.starts_with(found), "{found:?} after {said}");
            }
            Self::Seal | Self::Merge => assert_eq!(found, FIRST, "{said}"),
            // All of the device is gone, or nothing is.
            Self::Remove => {
                let all = [&FIRST[..], &OTHER, &LAST[..1]].concat();
                assert!(found == OTHER || (found == all && !has_said("done")), "{found:?} after {said}");
            }
        }
    }
}

/// Lets another process do the work until it is killed; returns what it said, and true if it was killed. `None` when
/// the test is skipped.
fn run_killed(harness: &Harness, work: Work, calls: &str, number: usize) -> Option<(String, bool)> {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--exact", "kills::every_step::works_until_it_is_killed", "--ignored", "--nocapture"]);
    command.env(DIR, harness.path()).env(WORK, work.name()).env(MILLIS, harness.clock.millis().to_string());
    let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut output = BufReader::new(process.stdout.take().unwrap());
    let mut line = String::new();
    while !line.contains("ready") {
        line.clear();
        assert!(output.read_line(&mut line).unwrap() > 0, "it ended before it began");
    }
    let killer = Killer::attach(&process, calls, number);
    if killer.is_none() {
        process.kill().unwrap();
        process.wait().unwrap();
        return None;
    }
    process.stdin.take().unwrap().write_all(b"begin\n").unwrap();
    let mut said = String::new();
    output.read_to_string(&mut said).unwrap();
    let status = process.wait().unwrap();
    assert!(status.success() || status.signal() == Some(9), "{status}: {said}");
    Some((said, !status.success()))
}

#[tokio::test]
#[ignore = "the process that the tests below kill"]
async fn works_until_it_is_killed() {
    let Some(dir) = env::var_os(DIR) else { return };
    let [work, millis] = [WORK, MILLIS].map(|name| env::var_os(name).unwrap().into_string().unwrap());
    let work = Work::ALL.into_iter().find(|known| known.name() == work).unwrap();
    let clock = ManualClock::at(Timestamp::from_millis(millis.parse().unwrap()));
    let random = FixedRandom::new([0xab]);
    let environment = Environment { clock: clock.clone(), random: &random, owner_of: Arc::new(ToString::to_string) };
    let settings = Settings { wait_ms_max: 60_000, ..Settings::default() };
    let history = History::open(dir, settings, environment).unwrap();
    println!("ready");
    io::stdin().read_line(&mut String::new()).unwrap();
    work.run(&history, &clock).await;
}

/// The files below a directory that must not stay there.
fn half_written(dir: &Path) -> Vec<PathBuf> {
    let paths = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let (dirs, mut files): (Vec<_>, Vec<_>) = paths.partition(|path| path.is_dir());
    files.retain(|path| HALF_WRITTEN.map(|extension| Some(OsStr::new(extension))).contains(&path.extension()));
    files.extend(dirs.iter().flat_map(|dir| half_written(dir)));
    files
}

async fn check(harness: &Harness, work: Work, said: &str) {
    let history = harness.open();
    let found = async || {
        let mut counters = counters(&history, everything()).await;
        counters.sort_unstable();
        counters
    };
    let at_once = found().await;
    work.check(&at_once, said);
    history.seal().await.unwrap();
    harness.clock.advance(Duration::from_secs(36 * 3600));
    history.maintain().await.unwrap();
    assert_eq!(found().await, at_once, "{said}");
    assert_eq!(half_written(harness.path()), Vec::<PathBuf>::new(), "{said}");
    assert_eq!(files(harness).len(), usize::from(!at_once.is_empty()), "those of a day are merged: {said}");
    history.close().await.unwrap();
}

/// Kills a process before each call of its work; returns how many there were. `None` when the test is skipped.
async fn kill_at_each(work: Work) -> Option<usize> {
    let mut kills = 0;
    for calls in CALLS {
        let mut number = 1;
        loop {
            let harness = Harness::new();
            work.prepare(&harness).await;
            let (said, was_killed) = run_killed(&harness, work, calls, number)?;
            check(&harness, work, &said).await;
            if !was_killed {
                assert!(said.lines().any(|line| line == "done"), "{said}");
                break;
            }
            kills += 1;
            // A file takes many writes, and what it lacks is the same to its readers.
            number = if calls == "write" { 2 * number } else { number + 1 };
            assert!(number < CALLS_MAX, "{calls}");
        }
    }
    Some(kills)
}

// Conformance: History after a kill at any step: each acknowledged record once, nothing half written
#[tokio::test]
async fn records_are_there_once_wherever_a_kill_stops_their_writing() {
    let Some(kills) = kill_at_each(Work::Append).await else { return };
    assert!(kills >= LAST.len(), "{kills}");
}

// Conformance: History after a kill at any step: each acknowledged record once, nothing half written
#[tokio::test]
async fn records_are_there_once_wherever_a_kill_stops_sealing() {
    let Some(kills) = kill_at_each(Work::Seal).await else { return };
    // At least when the segment and the file are renamed, the file and its directories synced, and the segment deleted.
    assert!(kills >= 6, "{kills}");
}

// Conformance: History after a kill at any step: each acknowledged record once, nothing half written
#[tokio::test]
async fn records_are_there_once_wherever_a_kill_stops_merging() {
    let Some(kills) = kill_at_each(Work::Merge).await else { return };
    // At least when the file and its list are synced, the file renamed, and those before it and the list deleted.
    assert!(kills >= 4 + FIRST.len(), "{kills}");
}

// Conformance: History after a kill at any step: each acknowledged record once, nothing half written
#[tokio::test]
async fn a_device_is_removed_or_not_wherever_a_kill_stops_it() {
    let Some(kills) = kill_at_each(Work::Remove).await else { return };
    // At least when the removal is noted twice and forgotten once, and the file and the segment are written again.
    assert!(kills >= 10, "{kills}");
}
