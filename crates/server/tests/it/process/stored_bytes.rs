//! Limits on what owners store: their share of all, and the disk beside its reserve.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use server::ledger::{BudgetSettings, BudgetedStore, Ledger, OwnerSource, Owners, ReservedDisk};
use store::{Batch, Commit, Embedded, ErrorKind, Key, Store, Tag};
use testing::{ManualClock, SmallDisk};
use types::{AppId, GatewayId, UserId};

const MIB: usize = 1 << 20;

/// Alice has the applications and gateways whose names begin with `alice`.
struct Alice;

#[async_trait]
impl OwnerSource for Alice {
    async fn owner_of(&self, app_id: &AppId) -> Option<UserId> {
        app_id.as_str().starts_with("alice").then(|| UserId::from_bytes([1; 12]))
    }

    async fn owner_of_gateway(&self, gateway_id: &GatewayId) -> Option<UserId> {
        gateway_id.as_str().starts_with("alice").then(|| UserId::from_bytes([1; 12]))
    }
}

struct Fixture {
    store: Arc<BudgetedStore>,
    ledger: Ledger,
    _owners: Arc<Owners>,
}

impl Fixture {
    async fn of(store: Arc<dyn Store>, disk: Option<ReservedDisk>) -> Self {
        let settings = BudgetSettings {
            stored_bytes_max: 64 << 20,
            stored_bytes_per_owner_max: 8 << 20,
            ..BudgetSettings::default()
        };
        let ledger = Ledger::new(&settings);
        let owners = Arc::new(Owners::new(Arc::new(Alice), ManualClock::new()));
        let store = BudgetedStore::open(store, disk, (ledger.stored.clone(), &owners)).await;
        Self { store, ledger, _owners: owners }
    }

    async fn put(&self, key: Key, bytes: usize) -> Result<(), store::Error> {
        let batch = Batch::new().put(key, vec![b'x'; bytes]).growing();
        self.store.commit(batch).await.map(|committed| assert_eq!(committed, Commit::Done))
    }

    /// Puts values of a mebibyte until one is refused; returns how many there are, and the refusal.
    async fn fill(&self, app_id: &str) -> (usize, store::Error) {
        for number in 0..1000 {
            if let Err(refusal) = self.put(key(app_id, &format!("{number}")), MIB).await {
                return (number, refusal);
            }
        }
        unreachable!("nothing was refused");
    }
}

fn memory() -> Arc<dyn Store> {
    Arc::new(Embedded::in_memory(ManualClock::new().for_store()).unwrap())
}

fn key(app_id: &str, path: &str) -> Key {
    Key::new(&Tag::application(app_id).unwrap(), path).unwrap()
}

/// Waits until something is so.
async fn eventually(mut holds: impl AsyncFnMut() -> bool) {
    let waiting = async {
        while !holds().await {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    testing::soon("what was expected", waiting).await;
}

#[tokio::test]
async fn an_owner_is_refused_by_name_of_the_budget_and_others_are_not() {
    let fixture = Fixture::of(memory(), None).await;
    let (stored, refusal) = fixture.fill("greedy").await;
    // A count that is made meanwhile does not have what is being written.
    assert!((7..=8).contains(&stored) && refusal.kind() == ErrorKind::Full, "{stored}: {refusal}");
    assert!(refusal.to_string().contains("the budget of stored bytes is used up"), "{refusal}");
    fixture.put(key("modest", "a"), MIB).await.unwrap();
    // What ends something, or makes it smaller, is not refused.
    fixture.put(key("greedy", "0"), MIB / 2).await.unwrap();
    fixture.put(key("greedy", "0"), MIB / 2).await.unwrap();
    let unmarked = Batch::new().put(key("greedy", "acknowledged"), vec![b'x'; MIB]);
    assert_eq!(fixture.store.commit(unmarked).await.unwrap(), Commit::Done);
}

#[tokio::test]
async fn what_is_deleted_can_be_stored_again() {
    let fixture = Fixture::of(memory(), None).await;
    let (stored, _) = fixture.fill("app").await;
    for number in 0..stored {
        let delete = Batch::new().delete(key("app", &format!("{number}")));
        assert_eq!(fixture.store.commit(delete).await.unwrap(), Commit::Done);
    }
    eventually(async || fixture.put(key("app", "new"), 4 * MIB).await.is_ok()).await;
}

#[tokio::test]
async fn applications_of_one_user_share_a_budget_also_after_a_restart() {
    let store = memory();
    let first = Fixture::of(store.clone(), None).await;
    for number in 0..6 {
        first.put(key(&format!("alice-{number}"), "a"), MIB).await.unwrap();
    }
    drop(first);
    let second = Fixture::of(store, None).await;
    let alice = || second.ledger.usage(None).remove(0).owners.remove(0);
    eventually(async || alice().used > 6 * MIB as u64).await;
    second.put(key("alice-6", "a"), MIB).await.unwrap();
    eventually(async || alice().used > 7 * MIB as u64).await;
    eventually(async || second.put(key("alice-6", "b"), MIB).await.is_err()).await;
}

/// Everything belongs to the first user, until it is handed over to the second.
#[derive(Default)]
struct Transfer(AtomicBool);

#[async_trait]
impl OwnerSource for Transfer {
    async fn owner_of(&self, _: &AppId) -> Option<UserId> {
        None
    }

    async fn owner_of_gateway(&self, _: &GatewayId) -> Option<UserId> {
        Some(UserId::from_bytes([if self.0.load(Ordering::SeqCst) { 2 } else { 1 }; 12]))
    }
}

#[tokio::test]
async fn a_gateway_that_is_transferred_is_charged_to_its_new_owner() {
    let ledger = Ledger::new(&BudgetSettings::default());
    let source = Arc::new(Transfer::default());
    let owners = Arc::new(Owners::new(source.clone(), ManualClock::new()));
    let store = BudgetedStore::open(memory(), None, (ledger.stored.clone(), &owners)).await;
    let put = async || {
        let key = Key::new(&Tag::gateway("gw").unwrap(), "entity").unwrap();
        assert_eq!(store.commit(Batch::new().put(key, vec![b'x'; MIB]).growing()).await.unwrap(), Commit::Done);
    };
    let is_charged = |user: u8| {
        let user = UserId::from_bytes([user; 12]);
        let owners = ledger.usage(None).remove(0).owners;
        owners.iter().any(|owner| owner.owner.to_string() == format!("user {user}") && owner.used >= MIB as u64)
    };
    put().await;
    eventually(async || is_charged(1)).await;
    source.0.store(true, Ordering::SeqCst);
    put().await;
    eventually(async || is_charged(2) && !is_charged(1)).await;
}

#[tokio::test]
async fn gateways_share_the_budget_of_their_user() {
    let fixture = Fixture::of(memory(), None).await;
    for number in 0..6 {
        let gateway = Tag::gateway(&format!("alice-{number}")).unwrap();
        fixture.put(Key::new(&gateway, "entity").unwrap(), MIB).await.unwrap();
    }
    fixture.put(key("alice-app", "a"), MIB).await.unwrap();
    let first = || fixture.ledger.usage(None).remove(0).owners.remove(0);
    eventually(async || first().used > 7 * MIB as u64).await;
    fixture.put(key("alice-app", "b"), MIB).await.unwrap_err();
    fixture.put(key("modest", "a"), MIB).await.unwrap();
}

#[tokio::test]
async fn a_batch_that_conflicts_is_not_charged() {
    let fixture = Fixture::of(memory(), None).await;
    fixture.put(key("app", "a"), 10).await.unwrap();
    let before = fixture.ledger.stored.used();
    for _ in 0..20 {
        let batch = Batch::new().expect_absent(key("app", "a")).put(key("app", "b"), vec![0; MIB]).growing();
        assert_eq!(fixture.store.commit(batch).await.unwrap(), Commit::Conflict);
    }
    assert_eq!(fixture.ledger.stored.used(), before);
}

/// Another program fills the disk: what the service itself writes is stored, and owners can store again when there is
/// room.
#[tokio::test]
async fn the_reserve_of_the_disk_is_for_the_service() {
    let Some(disk) = SmallDisk::of_size(16 << 20) else { return };
    let path = disk.path().join("store.redb");
    let store: Arc<dyn Store> = Arc::new(Embedded::open(&path, ManualClock::new().for_store()).unwrap());
    let reserved = || Some(ReservedDisk { disk: Embedded::disk(&path), reserve_bytes: 1 << 30 });
    let fixture = Fixture::of(store, reserved()).await;
    fixture.put(key("app", "a"), 1000).await.unwrap();
    disk.fill();
    let number = AtomicU64::new(0);
    let refused = async || {
        let next = number.fetch_add(1, Ordering::Relaxed);
        fixture.put(key("app", &format!("{next}")), 1000).await.err()
    };
    eventually(async || refused().await.is_some()).await;
    let refusal = refused().await.unwrap();
    assert!(refusal.kind() == ErrorKind::Full && refusal.to_string().contains("reserve"), "{refusal}");
    for number in 0..200 {
        let acknowledged = Batch::new().put(key("app", "position"), format!("{number}"));
        assert_eq!(fixture.store.commit(acknowledged).await.unwrap(), Commit::Done);
    }
    disk.empty();
    eventually(async || refused().await.is_none()).await;
}
