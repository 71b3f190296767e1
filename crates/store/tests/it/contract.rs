//! Checks that every back end must pass. Each uses a tag of its own.

use std::{sync::Arc, time::Duration};

use airlock_store::{
    Batch, Commit, Entry, Error, ErrorKind, Key, Page, Rate, Snapshot, Store, StoredEntry, Tag, TakenToken,
    TakenTokens, VALUE_BYTES_MAX,
};
use bytes::Bytes;

use crate::backend::Backend;

const COMMITTERS: u64 = 8;
const INCREMENTS: u64 = 25;

pub(crate) async fn check(backend: &Backend) {
    let store = &*backend.store;
    store.check().await.unwrap();
    finds_what_was_put(store).await;
    applies_a_whole_batch_or_nothing(store).await;
    never_reuses_versions(store).await;
    lists_in_order_and_in_pages(store).await;
    pages_count_the_whole_list(store).await;
    refuses_keys_of_different_tags(store).await;
    refuses_what_is_too_large(store).await;
    changes_claims_for_their_owner(store).await;
    hides_expired_entries(backend).await;
    a_snapshot_is_of_one_moment(backend).await;
    concurrent_commits_lose_nothing(&backend.store).await;
    buckets_fill_over_time(backend).await;
    buckets_outlive_a_clock_that_is_set_back(backend).await;
    clocks_that_differ_a_little_fill_no_bucket(backend).await;
}

fn key(tag: &str, path: &str) -> Key {
    Key::new(&Tag::application(tag).unwrap(), path).unwrap()
}

async fn find(store: &dyn Store, key: &Key) -> Option<Entry> {
    store.get(std::slice::from_ref(key)).await.unwrap().remove(0)
}

async fn done(store: &dyn Store, batch: Batch) {
    assert_eq!(store.commit(batch).await.unwrap(), Commit::Done);
}

async fn paths(store: &dyn Store, prefix: &Key, after: Option<&Key>, limit: usize) -> Vec<String> {
    let entries = store.list(prefix, after, limit).await.unwrap();
    entries.iter().map(|entry| entry.key.path().to_owned()).collect()
}

async fn finds_what_was_put(store: &dyn Store) {
    let (here, there, nowhere) = (key("put", "a"), key("put-2", "b"), key("put", "c"));
    let binary: Vec<u8> = (0..=255).collect();
    done(store, Batch::new()).await;
    done(store, Batch::new().put(here.clone(), binary.clone())).await;
    done(store, Batch::new().put(there.clone(), Bytes::new())).await;

    let asked = [there.clone(), nowhere, here.clone(), there.clone()];
    let found = store.get(&asked).await.unwrap();
    let values: Vec<Option<&[u8]>> = found.iter().map(|entry| entry.as_ref().map(|entry| &entry.value[..])).collect();
    assert_eq!(values, [Some(&[][..]), None, Some(&binary[..]), Some(&[][..])]);
    assert_eq!(found[2].as_ref().unwrap().key, here);

    done(store, Batch::new().delete(here.clone())).await;
    done(store, Batch::new().delete(here.clone())).await;
    assert_eq!(find(store, &here).await, None);
}

async fn applies_a_whole_batch_or_nothing(store: &dyn Store) {
    let (first, second) = (key("batch", "first"), key("batch", "second"));
    done(store, Batch::new().expect_absent(first.clone()).put(first.clone(), "1").put(second.clone(), "1")).await;
    let old = find(store, &first).await.unwrap().version;
    done(store, Batch::new().expect(first.clone(), old).put(first.clone(), "2")).await;

    let now = find(store, &second).await.unwrap().version;
    for conflicting in [
        Batch::new().expect(second.clone(), now).expect(first.clone(), old),
        Batch::new().expect(second.clone(), now).expect_absent(first.clone()),
        Batch::new().expect(key("batch", "never"), now),
    ] {
        let batch = conflicting.put(first.clone(), "3").delete(second.clone());
        assert_eq!(store.commit(batch).await.unwrap(), Commit::Conflict);
    }
    assert_eq!(find(store, &first).await.unwrap().value, "2");
    assert_eq!(find(store, &second).await.unwrap().version, now);

    // Within a batch the last change of a key counts.
    done(store, Batch::new().delete(second.clone()).put(second.clone(), "4").put(second.clone(), "5")).await;
    assert_eq!(find(store, &second).await.unwrap().value, "5");
}

async fn never_reuses_versions(store: &dyn Store) {
    let key = key("versions", "x");
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..5 {
        done(store, Batch::new().put(key.clone(), "same")).await;
        assert!(seen.insert(find(store, &key).await.unwrap().version));
        done(store, Batch::new().delete(key.clone())).await;
    }
    done(store, Batch::new().put(key.clone(), "same")).await;
    for old in seen {
        let batch = Batch::new().expect(key.clone(), old).put(key.clone(), "other");
        assert_eq!(store.commit(batch).await.unwrap(), Commit::Conflict);
    }
}

async fn lists_in_order_and_in_pages(store: &dyn Store) {
    let put = |batch: Batch, path: &&str| batch.put(key("list", path), (*path).to_owned());
    done(store, ["d/b", "e", "d/a-1", "d/a", "c", "d", "d/~", "d0"].iter().fold(Batch::new(), put)).await;
    done(store, Batch::new().put(key("list-2", "d/c"), "another tag")).await;

    let prefix = key("list", "d/");
    assert_eq!(paths(store, &prefix, None, 100).await, ["d/a", "d/a-1", "d/b", "d/~"]);
    assert_eq!(paths(store, &prefix, None, 3).await, ["d/a", "d/a-1", "d/b"]);
    assert_eq!(paths(store, &prefix, Some(&key("list", "d/a-1")), 1).await, ["d/b"]);
    assert_eq!(paths(store, &prefix, Some(&key("list", "d/a+")), 1).await, ["d/a-1"]);
    assert_eq!(paths(store, &prefix, Some(&key("list", "a")), 1).await, ["d/a"]);
    assert!(paths(store, &prefix, Some(&key("list", "d/~")), 100).await.is_empty());
    assert!(paths(store, &prefix, None, 0).await.is_empty());
    assert_eq!(paths(store, &key("list", ""), None, 100).await.len(), 8);
    assert!(paths(store, &key("list-3", ""), None, 100).await.is_empty());
}

async fn pages_count_the_whole_list(store: &dyn Store) {
    // In two batches: one would be too long.
    for half in [0..700, 700..1400] {
        let put = |batch: Batch, number| batch.put(key("parts", &format!("d/{number:04}")), format!("{number}"));
        done(store, half.fold(Batch::new().put(key("parts", "e"), "beside"), put)).await;
    }
    for (offset, limit, first, count) in [
        (0, 3, Some("0"), 3),
        (1398, 3, Some("1398"), 2),
        (700, usize::MAX, Some("700"), 700),
        (0, usize::MAX, Some("0"), airlock_store::LIST_MAX),
        (5, 0, None, 0),
        (1400, 1, None, 0),
        (usize::MAX, usize::MAX, None, 0),
    ] {
        let page = store.page(&key("parts", "d/"), offset, limit).await.unwrap();
        let found = page.entries.first().map(|entry| std::str::from_utf8(&entry.value).unwrap());
        assert_eq!((found, page.entries.len(), page.total), (first, count, 1400), "{offset} {limit}");
    }
    assert_eq!(store.page(&key("parts", "x"), 0, 1).await.unwrap(), Page::default());
}

async fn refuses_keys_of_different_tags(store: &dyn Store) {
    let (here, there) = (key("tags", "a"), key("tags-2", "a"));
    for batch in [
        Batch::new().put(here.clone(), "1").put(there.clone(), "1"),
        Batch::new().expect_absent(there.clone()).put(here.clone(), "1"),
        Batch::new().delete(here.clone()).put(there.clone(), "1"),
    ] {
        assert!(matches!(store.commit(batch).await, Err(Error::Tags)));
    }
    assert!(matches!(store.list(&here, Some(&there), 1).await, Err(Error::Tags)));
    assert_eq!(find(store, &here).await, None);
}

async fn refuses_what_is_too_large(store: &dyn Store) {
    let key = key("large", "a");
    let kind = |result: Result<Commit, Error>| result.unwrap_err().kind();
    let large = Batch::new().put(key.clone(), vec![0; VALUE_BYTES_MAX + 1]);
    assert_eq!(kind(store.commit(large).await), ErrorKind::TooLarge);
    let long = (0..=airlock_store::BATCH_STEPS_MAX).fold(Batch::new(), |batch, _| batch.delete(key.clone()));
    assert_eq!(kind(store.commit(long).await), ErrorKind::TooLarge);
    let many = vec![key.clone(); airlock_store::GET_KEYS_MAX + 1];
    assert_eq!(store.get(&many).await.unwrap_err().kind(), ErrorKind::TooLarge);
    assert_eq!(find(store, &key).await, None);
}

async fn changes_claims_for_their_owner(store: &dyn Store) {
    let claim = key("claim", "a");
    assert!(!store.change_claim(&claim, b"one", Batch::delete).await.unwrap(), "there is none");
    done(store, Batch::new().put(claim.clone(), "one")).await;
    let first = find(store, &claim).await.unwrap();
    assert!(!store.change_claim(&claim, b"other", Batch::delete).await.unwrap(), "it is not theirs");
    assert_eq!(find(store, &claim).await.unwrap(), first);
    assert!(store.change_claim(&claim, b"one", |batch, claim| batch.put(claim, "one")).await.unwrap());
    assert_ne!(find(store, &claim).await.unwrap().version, first.version);
    assert!(store.change_claim(&claim, b"one", Batch::delete).await.unwrap());
    assert_eq!(find(store, &claim).await, None);
}

async fn hides_expired_entries(backend: &Backend) {
    let (store, clock) = (&*backend.store, &backend.clock);
    let (code, kept) = (key("expiry", "code"), key("expiry", "kept"));
    let until = clock.millis() + 1000;
    done(store, Batch::new().put_until(code.clone(), "1", until).put_until(kept.clone(), "1", until)).await;
    done(store, Batch::new().put(kept.clone(), "for good")).await;
    let version = find(store, &code).await.unwrap().version;

    clock.advance(Duration::from_millis(999));
    assert_eq!(paths(store, &key("expiry", ""), None, 10).await, ["code", "kept"]);
    done(store, Batch::new().expect(code.clone(), version)).await;

    clock.advance(Duration::from_millis(1));
    assert_eq!(find(store, &code).await, None);
    assert_eq!(paths(store, &key("expiry", ""), None, 1).await, ["kept"]);
    assert_eq!(store.commit(Batch::new().expect(code.clone(), version)).await.unwrap(), Commit::Conflict);
    done(store, Batch::new().expect_absent(code.clone()).put(code.clone(), "2")).await;
    assert_eq!(find(store, &code).await.unwrap().value, "2");
    assert_eq!(find(store, &kept).await.unwrap().value, "for good");
}

async fn concurrent_commits_lose_nothing(store: &Arc<dyn Store>) {
    let counter = key("counter", "n");
    let committers: Vec<_> = (0..COMMITTERS)
        .map(|_| {
            let (store, counter) = (Arc::clone(store), counter.clone());
            tokio::spawn(async move {
                for _ in 0..INCREMENTS {
                    increment(&*store, &counter).await;
                }
            })
        })
        .collect();
    for committer in committers {
        committer.await.unwrap();
    }
    let total = find(&**store, &counter).await.unwrap().value;
    assert_eq!(total, (COMMITTERS * INCREMENTS).to_string());
}

async fn increment(store: &dyn Store, counter: &Key) {
    loop {
        let batch = match find(store, counter).await {
            Some(entry) => {
                let next = std::str::from_utf8(&entry.value).unwrap().parse::<u64>().unwrap() + 1;
                Batch::new().expect(counter.clone(), entry.version).put(counter.clone(), next.to_string())
            }
            None => Batch::new().expect_absent(counter.clone()).put(counter.clone(), "1"),
        };
        if store.commit(batch).await.unwrap() == Commit::Done {
            return;
        }
    }
}

async fn buckets_fill_over_time(backend: &Backend) {
    let (store, clock) = (&*backend.store, &backend.clock);
    let rate = Rate { per: Duration::from_secs(10), burst: 3 };
    let (bucket, other) = (key("rate", "calls"), key("rate", "others"));
    let take = |key| async move { store.take_token(key, rate).await.unwrap() };
    for remaining in [2, 1, 0] {
        assert_eq!(take(&bucket).await, TakenToken::Taken { remaining });
    }
    assert_eq!(take(&bucket).await, TakenToken::Wait(Duration::from_secs(10)));
    assert_eq!(take(&other).await, TakenToken::Taken { remaining: 2 });

    clock.advance(Duration::from_secs(9));
    assert_eq!(take(&bucket).await, TakenToken::Wait(Duration::from_secs(1)));
    clock.advance(Duration::from_secs(1));
    assert_eq!(take(&bucket).await, TakenToken::Taken { remaining: 0 });
    clock.advance(Duration::from_secs(3600));
    assert_eq!(take(&bucket).await, TakenToken::Taken { remaining: 2 });

    let bucket = key("rate", "several");
    let take = |wanted| {
        let bucket = bucket.clone();
        async move { store.take_tokens(&bucket, rate, wanted).await.unwrap() }
    };
    let (at_once, in_10_s) = (Duration::ZERO, Duration::from_secs(10));
    assert_eq!(take(2).await, TakenTokens { taken: 2, remaining: 1, wait: at_once });
    assert_eq!(take(5).await, TakenTokens { taken: 1, remaining: 0, wait: in_10_s });
    clock.advance(Duration::from_secs(25));
    assert_eq!(take(5).await, TakenTokens { taken: 2, remaining: 0, wait: Duration::from_secs(5) });
    assert_eq!(take(1).await, TakenTokens { taken: 0, remaining: 0, wait: Duration::from_secs(5) });
}

/// A clock that is set back leaves a bucket as full as it was, and it goes on filling.
async fn buckets_outlive_a_clock_that_is_set_back(backend: &Backend) {
    let (store, clock) = (&*backend.store, &backend.clock);
    let rate = Rate { per: Duration::from_secs(10), burst: 3 };
    let bucket = key("rate", "set-back");
    let take = || async { store.take_token(&bucket, rate).await.unwrap() };
    assert_eq!(take().await, TakenToken::Taken { remaining: 2 });
    for remaining in [1, 0] {
        clock.set_back(Duration::from_secs(3600));
        assert_eq!(take().await, TakenToken::Taken { remaining });
    }
    clock.set_back(Duration::from_secs(3600));
    assert_eq!(take().await, TakenToken::Wait(Duration::from_secs(10)));
    clock.advance(Duration::from_secs(9));
    assert_eq!(take().await, TakenToken::Wait(Duration::from_secs(1)));
    clock.advance(Duration::from_secs(1));
    assert_eq!(take().await, TakenToken::Taken { remaining: 0 });
    clock.advance(Duration::from_secs(3 * 3600));
}

/// Processes and tasks read clocks that differ a little; taking turns must not add up what they differ by.
async fn clocks_that_differ_a_little_fill_no_bucket(backend: &Backend) {
    let (store, clock) = (&*backend.store, &backend.clock);
    let rate = Rate { per: Duration::from_secs(10), burst: 1 };
    let bucket = key("rate", "turns");
    assert_eq!(store.take_token(&bucket, rate).await.unwrap(), TakenToken::Taken { remaining: 0 });
    for _ in 0..40 {
        clock.set_back(Duration::from_millis(500));
        assert!(matches!(store.take_token(&bucket, rate).await.unwrap(), TakenToken::Wait(_)));
        clock.advance(Duration::from_millis(500));
        assert!(matches!(store.take_token(&bucket, rate).await.unwrap(), TakenToken::Wait(_)));
    }
}

/// All entries of a snapshot.
pub(crate) async fn all(mut snapshot: Snapshot) -> Vec<StoredEntry> {
    let mut entries = Vec::new();
    while let Some(part) = snapshot.next().await.unwrap() {
        entries.extend(part);
    }
    entries
}

async fn a_snapshot_is_of_one_moment(backend: &Backend) {
    let store = &*backend.store;
    // Two of them fill a part, and more parts than are read ahead.
    let large = vec![b'x'; 600_000];
    let paths: Vec<_> = (0..12).map(|number| format!("item/{number:02}")).collect();
    for path in &paths {
        done(store, Batch::new().put(key("snapshot", path), large.clone())).await;
    }
    let (short, expires) = (key("snapshot", "short"), backend.clock.millis() + 5000);
    done(store, Batch::new().put_until(short.clone(), "x", expires)).await;
    let snapshot = match store.snapshot().await {
        Ok(snapshot) => snapshot,
        Err(error) => return assert!(matches!(error, Error::NoSnapshots), "{error}"),
    };
    done(store, Batch::new().put(key("snapshot", "item/00"), "changed").delete(key("snapshot", "item/11"))).await;

    let last_version = snapshot.last_version();
    let mut entries = all(snapshot).await;
    assert!(entries.iter().all(|entry| entry.version <= last_version));
    assert!(entries.is_sorted_by_key(|entry| entry.key.as_str().to_owned()));
    entries.retain(|entry| entry.key.tag() == "{a:snapshot}");
    assert_eq!(entries.pop().map(|entry| (entry.key, entry.expires)), Some((short, Some(expires))));
    assert_eq!(entries.iter().map(|entry| entry.key.path()).collect::<Vec<_>>(), paths);
    assert!(entries.iter().all(|entry| entry.value == large && entry.expires.is_none()));
    assert!(find(store, &key("snapshot", "item/00")).await.unwrap().version > last_version);
}
