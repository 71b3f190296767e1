//! Applies random steps to a back end and to a plain map, which must agree after each.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use airlock_store::{Batch, Commit, Key, Store, Tag, Version};
use proptest::{
    prelude::*,
    test_runner::{Config, TestRunner},
};
use testing::ManualClock;

use crate::backend::Backend;

const CASES: u32 = 48;
const PATHS: [&str; 6] = ["a", "a/1", "a/2", "b", "b/~", "c"];

#[derive(Clone, Debug)]
enum Step {
    Commit(Plan),
    List { prefix: usize, after: Option<usize>, limit: usize },
    Page { prefix: usize, offset: usize, limit: usize },
    Pass { ms: u64 },
}

/// A batch; keys are indexes into [`PATHS`].
#[derive(Clone, Debug)]
struct Plan {
    checks: Vec<(usize, Expected)>,
    changes: Vec<(usize, Change)>,
}

#[derive(Clone, Debug)]
enum Expected {
    /// The current version, or absent if there is none.
    Current,
    Absent,
    /// An old version.
    Stale,
}

#[derive(Clone, Debug)]
enum Change {
    Put(u8),
    PutFor(u8, u64),
    Delete,
}

/// The map, and the versions that the store returned.
#[derive(Default)]
struct Model {
    entries: BTreeMap<&'static str, (Vec<u8>, Option<u64>)>,
    versions: BTreeMap<&'static str, Version>,
    given: BTreeSet<Version>,
}

pub(crate) async fn check(backend: &Backend) {
    let (store, clock) = (Arc::clone(&backend.store), Arc::clone(&backend.clock));
    let handle = tokio::runtime::Handle::current();
    let run = move || {
        let config = Config { cases: CASES, failure_persistence: None, ..Config::default() };
        let mut case = 0;
        let mut case = || {
            case += 1;
            case
        };
        let next = std::cell::RefCell::new(&mut case);
        TestRunner::new(config).run(&prop::collection::vec(step(), 1..30), |steps| {
            let tag = Tag::named("model", &format!("case-{}", (next.borrow_mut())())).unwrap();
            handle.block_on(replay(&*store, &clock, &tag, &steps));
            Ok(())
        })
    };
    tokio::task::spawn_blocking(run).await.unwrap().unwrap();
}

fn step() -> impl Strategy<Value = Step> {
    let path = || 0..PATHS.len();
    let expected = prop_oneof![4 => Just(Expected::Current), 1 => Just(Expected::Absent), 1 => Just(Expected::Stale)];
    let change = prop_oneof![
        3 => any::<u8>().prop_map(Change::Put),
        2 => (any::<u8>(), 0..50_u64).prop_map(|(value, ms)| Change::PutFor(value, ms)),
        1 => Just(Change::Delete),
    ];
    let checks = prop::collection::vec((path(), expected), 0..3);
    let changes = prop::collection::vec((path(), change), 0..4);
    prop_oneof![
        4 => (checks, changes).prop_map(|(checks, changes)| Step::Commit(Plan { checks, changes })),
        2 => (path(), prop::option::of(path()), 0..8_usize)
            .prop_map(|(prefix, after, limit)| Step::List { prefix, after, limit }),
        2 => (path(), 0..7_usize, 0..8_usize)
            .prop_map(|(prefix, offset, limit)| Step::Page { prefix, offset, limit }),
        1 => (0..40_u64).prop_map(|ms| Step::Pass { ms }),
    ]
}

async fn replay(store: &dyn Store, clock: &ManualClock, tag: &Tag, steps: &[Step]) {
    let mut model = Model::default();
    for step in steps {
        match step {
            Step::Commit(plan) => model.commit(store, clock.millis(), tag, plan).await,
            Step::List { prefix, after, limit } => model.list(store, tag, (*prefix, *after, *limit)).await,
            Step::Page { prefix, offset, limit } => model.page(store, tag, (*prefix, *offset, *limit)).await,
            Step::Pass { ms } => clock.advance(Duration::from_millis(*ms)),
        }
        model.forget(clock.millis());
        model.read_all(store, tag).await;
    }
}

impl Model {
    async fn commit(&mut self, store: &dyn Store, now: u64, tag: &Tag, plan: &Plan) {
        let mut batch = Batch::new();
        let mut holds = true;
        for (path, expected) in &plan.checks {
            let (path, stale) = (PATHS[*path], self.given.first().copied());
            let (current, key) = (self.versions.get(path).copied(), key(tag, path));
            let wanted = match expected {
                Expected::Current => current,
                Expected::Absent => None,
                Expected::Stale => stale,
            };
            holds &= wanted == current;
            batch = match wanted {
                Some(version) => batch.expect(key, version),
                None => batch.expect_absent(key),
            };
        }
        for (path, change) in &plan.changes {
            let key = key(tag, PATHS[*path]);
            batch = match change {
                Change::Put(value) => batch.put(key, vec![*value]),
                Change::PutFor(value, ms) => batch.put_until(key, vec![*value], now + ms),
                Change::Delete => batch.delete(key),
            };
        }
        let expected = if holds { Commit::Done } else { Commit::Conflict };
        assert_eq!(store.commit(batch).await.unwrap(), expected);
        if holds {
            plan.changes.iter().for_each(|(path, change)| self.apply(PATHS[*path], change, now));
        }
    }

    fn apply(&mut self, path: &'static str, change: &Change, now: u64) {
        self.versions.remove(path);
        match change {
            Change::Put(value) => drop(self.entries.insert(path, (vec![*value], None))),
            Change::PutFor(value, ms) => drop(self.entries.insert(path, (vec![*value], Some(now + ms)))),
            Change::Delete => drop(self.entries.remove(path)),
        }
    }

    async fn list(&self, store: &dyn Store, tag: &Tag, (prefix, after, limit): (usize, Option<usize>, usize)) {
        let (prefix, after) = (PATHS[prefix], after.map(|after| PATHS[after]));
        let under = |path: &&str| path.starts_with(prefix) && after.is_none_or(|after| *path > after);
        let expected: Vec<&str> = self.entries.keys().copied().filter(under).take(limit).collect();
        let after = after.map(|after| key(tag, after));
        let listed = store.list(&key(tag, prefix), after.as_ref(), limit).await.unwrap();
        assert_eq!(listed.iter().map(|entry| entry.key.path()).collect::<Vec<_>>(), expected);
    }

    async fn page(&self, store: &dyn Store, tag: &Tag, (prefix, offset, limit): (usize, usize, usize)) {
        let all: Vec<&str> = self.entries.keys().copied().filter(|path| path.starts_with(PATHS[prefix])).collect();
        let expected: Vec<&str> = all.iter().copied().skip(offset).take(limit).collect();
        let page = store.page(&key(tag, PATHS[prefix]), offset, limit).await.unwrap();
        let found: Vec<_> = page.entries.iter().map(|entry| entry.key.path()).collect();
        assert_eq!((found, page.total), (expected, all.len()));
    }

    fn forget(&mut self, now: u64) {
        self.entries.retain(|_, (_, expires)| expires.is_none_or(|expires| expires > now));
        self.versions.retain(|path, _| self.entries.contains_key(path));
    }

    /// Reads every key: values agree, versions change only with writes, and are never reused.
    async fn read_all(&mut self, store: &dyn Store, tag: &Tag) {
        let found = store.get(&PATHS.map(|path| key(tag, path))).await.unwrap();
        for (path, entry) in PATHS.into_iter().zip(found) {
            let expected = self.entries.get(path).map(|(value, _)| &value[..]);
            assert_eq!(entry.as_ref().map(|entry| &entry.value[..]), expected, "at {path}");
            let Some(entry) = entry else { continue };
            match self.versions.insert(path, entry.version) {
                Some(known) => assert_eq!(known, entry.version, "at {path}"),
                None => assert!(self.given.insert(entry.version), "at {path}"),
            }
        }
    }
}

fn key(tag: &Tag, path: &str) -> Key {
    Key::new(tag, path).unwrap()
}
