//! Size of each tag, which all back ends count in the same way.

use std::{collections::BTreeMap, time::Duration};

use airlock_store::{Batch, Commit, Embedded, Key, Redis, Store, Tag};
use testing::{ManualClock, RedisProcess};

use crate::{
    backend::{Backend, settings},
    file::unlocked,
};

fn tag(id: &str) -> Tag {
    Tag::application(id).unwrap()
}

fn key(id: &str, path: &str) -> Key {
    Key::new(&tag(id), path).unwrap()
}

async fn commit(store: &dyn Store, batch: Batch) {
    assert_eq!(store.commit(batch).await.unwrap(), Commit::Done);
}

/// Returns the size of the entries of a tag that are there, in bytes.
async fn expected(store: &dyn Store, id: &str) -> u64 {
    let entries = store.list(&key(id, ""), None, 1000).await.unwrap();
    entries.iter().map(|entry| (2 * entry.key.as_str().len() + entry.value.len() + 64) as u64).sum()
}

/// Every tag that has something.
pub(crate) async fn all(store: &dyn Store) -> BTreeMap<Tag, u64> {
    let (mut all, mut from) = (BTreeMap::new(), None);
    loop {
        let page = store.usage(from.as_ref()).await.unwrap();
        all.extend(page.tags.into_iter().map(|usage| (usage.tag, usage.bytes)));
        from = page.next;
        if from.is_none() {
            return all;
        }
    }
}

pub(crate) async fn check(backend: &Backend) {
    let store = &*backend.store;
    counts_each_change(store).await;
    gives_back_what_expires(backend).await;
    lists_every_tag(store).await;
}

async fn counts_each_change(store: &dyn Store) {
    assert_eq!(store.usage_of(&[tag("counted")]).await.unwrap(), [0]);
    let changes = [
        Batch::new().put(key("counted", "a"), "value").put(key("counted", "bb"), "x".repeat(1000)),
        Batch::new().put(key("counted", "a"), "longer value").delete(key("counted", "absent")),
        Batch::new().put(key("counted", "bb"), "").put(key("counted", "c"), "1").put(key("counted", "c"), "22"),
        Batch::new().delete(key("counted", "a")).put(key("counted", "d"), "").delete(key("counted", "d")),
    ];
    for change in changes {
        commit(store, change).await;
        assert_eq!(store.usage_of(&[tag("counted")]).await.unwrap(), [expected(store, "counted").await]);
    }
    let before = store.usage_of(&[tag("counted")]).await.unwrap();
    let refused = Batch::new().expect_absent(key("counted", "c")).put(key("counted", "e"), "not stored");
    assert_eq!(store.commit(refused).await.unwrap(), Commit::Conflict);
    assert_eq!(store.usage_of(&[tag("counted")]).await.unwrap(), before);
    commit(store, Batch::new().delete(key("counted", "bb")).delete(key("counted", "c"))).await;
    assert_eq!(store.usage_of(&[tag("counted"), tag("uncounted")]).await.unwrap(), [0, 0]);
}

async fn gives_back_what_expires(backend: &Backend) {
    let (store, expires) = (&*backend.store, backend.clock.millis() + 1000);
    let short = (0..50).fold(Batch::new(), |batch, number| {
        batch.put_until(key("expiring", &format!("{number}")), "x".repeat(number), expires)
    });
    commit(store, short.put(key("expiring", "stays"), "x")).await;
    assert_eq!(store.usage_of(&[tag("expiring")]).await.unwrap(), [expected(store, "expiring").await]);
    backend.clock.advance(Duration::from_secs(2));
    commit(store, Batch::new().put(key("expiring", "other"), "x")).await;
    assert_eq!(store.usage_of(&[tag("expiring")]).await.unwrap(), [expected(store, "expiring").await]);
}

async fn lists_every_tag(store: &dyn Store) {
    for number in 0..40 {
        commit(store, Batch::new().put(key(&format!("listed-{number}"), "a"), "x".repeat(number))).await;
    }
    let all = all(store).await;
    for number in 0..40 {
        let id = format!("listed-{number}");
        assert_eq!(all.get(&tag(&id)), Some(&expected(store, &id).await), "{id}");
    }
}

/// Changes a file as a version of Airlock does that does not count.
fn change_without_counting(path: &std::path::Path) {
    let entries: redb::TableDefinition<'_, &str, &[u8]> = redb::TableDefinition::new("entries");
    let counted: redb::TableDefinition<'_, &str, u64> = redb::TableDefinition::new("counted");
    let other = redb::Database::open(path).unwrap();
    let transaction = other.begin_write().unwrap();
    transaction.open_table(entries).unwrap().retain(|key, _| key != "{a:b}2").unwrap();
    transaction.delete_table(counted).unwrap();
    transaction.commit().unwrap();
}

#[tokio::test]
async fn a_file_of_an_older_version_is_counted_once() {
    let (dir, clock) = (tempfile::tempdir().unwrap(), ManualClock::new());
    let path = dir.path().join("store.redb");
    let open = || unlocked(|| Embedded::open(&path, clock.for_store()));
    let store = open();
    for (id, path) in [("a", "1"), ("b", "1"), ("b", "2"), ("c", "1")] {
        commit(&store, Batch::new().put(key(id, path), "value")).await;
    }
    let before = all(&store).await;
    drop(store);
    assert_eq!(all(&open()).await, before, "counts outlive a restart");
    change_without_counting(&path);
    let store = open();
    let after = all(&store).await;
    assert_eq!(after[&tag("b")], expected(&store, "b").await);
    assert_eq!((after[&tag("a")], after[&tag("c")]), (before[&tag("a")], before[&tag("c")]));
}

#[tokio::test]
async fn a_tag_of_an_older_version_is_counted_when_it_is_needed() {
    let Some(server) = RedisProcess::start() else { return };
    let store = Redis::connect(&settings(&server, false), ManualClock::new().for_store()).await.unwrap();
    for number in 0..2500 {
        commit(&store, Batch::new().put(key("a", &format!("{number}")), "value")).await;
    }
    let before = store.usage_of(&[tag("a")]).await.unwrap();
    let mut connection = redis::Client::open(server.url()).unwrap().get_multiplexed_async_connection().await.unwrap();
    // An older version has written to it: alone, or beside one that counts.
    let mut forget = redis::cmd("DEL");
    let mut advance = redis::cmd("INCR");
    for outdate in [forget.arg("airlock:{a:a}#bytes"), advance.arg("airlock:{a:a}#version")] {
        outdate.exec_async(&mut connection).await.unwrap();
        commit(&store, Batch::new().put(key("a", "0"), "value")).await;
        assert_eq!(store.usage_of(&[tag("a")]).await.unwrap(), before);
    }
    assert_eq!(all(&store).await, BTreeMap::from([(tag("a"), before[0])]));
}
