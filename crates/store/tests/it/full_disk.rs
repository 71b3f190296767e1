//! Another program fills the disk of a file: what is allocated ahead remains, and the file opens on the full disk.

use airlock_store::{Batch, Commit, Embedded, Key, Store, Tag};
use testing::{ManualClock, SmallDisk};

use crate::file::unlocked;

/// Number of times that a small record is replaced, which takes no more room in the end.
const CHANGES: usize = 500;

#[tokio::test]
async fn small_changes_go_on_when_another_program_fills_the_disk() {
    let Some(disk) = SmallDisk::of_size(16 << 20) else { return };
    let key = Key::new(&Tag::application("full").unwrap(), "position").unwrap();
    let open = || Embedded::open(&disk.path().join("store.redb"), ManualClock::new().for_store());
    let mut store = unlocked(open);
    disk.fill();
    for change in 0..CHANGES {
        if change == CHANGES / 2 {
            drop(store);
            store = unlocked(open);
        }
        let batch = Batch::new().put(key.clone(), change.to_string().repeat(100));
        assert_eq!(store.commit(batch).await.unwrap(), Commit::Done);
    }
}
