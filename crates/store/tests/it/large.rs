//! A large file takes bounded memory, also when it is opened after a kill, for which redb reads all of it.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use airlock_store::{Batch, Commit, Embedded, Key, Store, Tag};
use testing::ManualClock;

/// The variable that tells the child process its file.
const CHILD_PATH: &str = "STORE_TEST_LARGE_PATH";
const VALUE_BYTES: usize = 64 << 10;
/// Together 160 MiB.
const VALUES: usize = 2560;
/// Number of values in one commit.
const COMMIT_VALUES: usize = 64;
/// Maximum memory of a process that has opened the file and read every value, in bytes: its cache has 64 MiB.
const MEMORY_BYTES_MAX: u64 = 120 << 20;

fn key(number: usize) -> Key {
    Key::new(&Tag::application("large").unwrap(), &format!("value/{number:06}")).unwrap()
}

fn open(path: &Path) -> Embedded {
    Embedded::open(path, ManualClock::new().for_store()).unwrap()
}

async fn fill(store: &Embedded) {
    for first in (0..VALUES).step_by(COMMIT_VALUES) {
        let put = |batch: Batch, number: usize| batch.put(key(number), vec![number as u8; VALUE_BYTES]);
        let batch = (first..first + COMMIT_VALUES).fold(Batch::new(), put);
        assert_eq!(store.commit(batch).await.unwrap(), Commit::Done);
    }
}

/// Opens the file in a process of its own, which reads every value; returns its memory at most, in bytes.
fn memory_of_opening(path: &Path) -> u64 {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "large::opens_and_reads", "--ignored", "--nocapture"])
        .env(CHILD_PATH, path)
        .output()
        .unwrap();
    let output = String::from_utf8(output.stdout).unwrap();
    output.lines().find_map(|line| line.strip_prefix("memory ")).expect("it has opened the file").parse().unwrap()
}

#[tokio::test]
#[ignore = "the process that the test below starts"]
async fn opens_and_reads() {
    let Some(path) = std::env::var_os(CHILD_PATH).map(PathBuf::from) else { return };
    let store = open(&path);
    for number in 0..VALUES {
        assert_eq!(store.get(&[key(number)]).await.unwrap()[0].as_ref().unwrap().value.len(), VALUE_BYTES);
    }
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let most = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let kib: u64 = most.trim_end_matches("kB").trim().parse().unwrap();
    println!("memory {}", kib * 1024);
}

// Conformance: A large embedded store takes bounded memory, also when it is opened after a kill
#[tokio::test]
async fn a_large_file_takes_bounded_memory_also_after_a_kill() {
    let dir = tempfile::tempdir().unwrap();
    let (path, killed) = (dir.path().join("store.redb"), dir.path().join("killed.redb"));
    let store = open(&path);
    fill(&store).await;
    // What a process leaves that is killed now.
    std::fs::copy(&path, &killed).unwrap();
    drop(store);
    for path in [path, killed] {
        let (memory, bytes) = (memory_of_opening(&path), std::fs::metadata(&path).unwrap().len());
        assert!(
            bytes > MEMORY_BYTES_MAX && memory < MEMORY_BYTES_MAX,
            "{memory} bytes for {bytes}: {}",
            path.display()
        );
    }
}
