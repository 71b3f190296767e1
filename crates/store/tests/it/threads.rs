//! Lists run on threads of the store's own.

use airlock_store::{Batch, Commit, Embedded, Key, Store, Tag};
use testing::ManualClock;

/// The blocking threads of the runtime are taken by something else.
#[test]
fn lists_do_not_wait_for_the_blocking_threads_of_the_runtime() {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(1).max_blocking_threads(1).enable_all().build().unwrap();
    let (release, held) = std::sync::mpsc::channel::<()>();
    runtime.block_on(async {
        let blocked = tokio::task::spawn_blocking(move || held.recv());
        let store = Embedded::in_memory(ManualClock::new().for_store()).unwrap();
        let key = Key::new(&Tag::application("list").unwrap(), "a").unwrap();
        assert_eq!(store.commit(Batch::new().put(key.clone(), "x")).await.unwrap(), Commit::Done);
        assert_eq!(store.list(&key, None, 10).await.unwrap().len(), 1);
        assert_eq!(store.page(&key, 0, 10).await.unwrap().total, 1);
        let mut snapshot = store.snapshot().await.unwrap();
        assert!(snapshot.next().await.unwrap().is_some());
        release.send(()).unwrap();
        blocked.await.unwrap().unwrap();
    });
}
