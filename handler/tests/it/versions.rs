//! The versions of an application's functions in the store, and loaded for dry runs.

mod candidates;

use std::{num::NonZeroUsize, ops::Range, sync::Arc};

use futures::FutureExt;
use handler::{
    Error, Loading, Settings,
    application::{
        Application, Applications, FunctionsVersion, JoinKeyChange, VersionBounds, VersionLabel, VersionOrigin,
        VersionUse,
    },
    payload::{Decoded, Payload, Payloads, Run},
};
use runtime::{LimitsByName, LoadRequest, Priority, Sources, Tenant};
use server::{
    ledger::{BudgetSettings, BudgetedStore, Ledger, Owners},
    usage::Usage,
};
use store::{Batch, Commit, Embedded, Key, Store, StoreClock, Tag};
use testing::{ManualClock, RecordingStore};
use types::{Kind, Kinded, Timestamp};

use crate::{
    harness::sealer,
    records::{self, id, pool},
};

/// Applications over a store that a test can interrupt, of which one is registered.
struct Fixture {
    store: Arc<RecordingStore>,
    applications: Applications,
}

impl Fixture {
    async fn new() -> Self {
        Self::with(VersionBounds::default()).await
    }

    async fn with(bounds: VersionBounds) -> Self {
        let store = Arc::new(RecordingStore::new(StoreClock::new(|| 0)));
        let sealer = sealer(store.as_ref()).await;
        let applications = Applications::new(store.clone(), sealer).with_version_bounds(bounds);
        applications.register(&id("my-app")).await.unwrap();
        Self { store, applications }
    }

    async fn set(&self, decoder: &str) -> u32 {
        self.set_with(decoder, VersionOrigin::default()).await
    }

    async fn set_with(&self, decoder: &str, origin: VersionOrigin) -> u32 {
        let set = self.applications.set(application(decoder), JoinKeyChange::Keep, origin).await;
        set.unwrap().unwrap().number
    }

    /// The numbers of the versions that are kept, the newest first.
    async fn numbers(&self) -> Vec<u32> {
        self.versions().await.iter().map(|version| version.number).collect()
    }

    async fn versions(&self) -> Vec<FunctionsVersion> {
        let listed = self.applications.versions(&id("my-app")).await.unwrap();
        listed.into_iter().map(|listed| listed.version).collect()
    }

    async fn version(&self, number: u32) -> Result<Application, Error> {
        Ok(self.applications.version(&id("my-app"), Some(number)).await?.application)
    }

    /// The paths of the records about versions.
    async fn records(&self) -> Vec<String> {
        let all = self.store.list(&key("handler/version"), None, 1000).await.unwrap();
        all.iter().map(|entry| entry.key.path().to_owned()).collect()
    }
}

fn key(path: &str) -> Key {
    Key::new(&Tag::application("my-app").unwrap(), path).unwrap()
}

fn application(decoder: &str) -> Application {
    let sources = Sources { decoder: decoder.to_owned(), ..Sources::default() };
    Application::with_functions(id("my-app"), "custom".to_owned(), sources)
}

fn labelled(note: &str) -> VersionOrigin {
    let label = VersionLabel::new(note.to_owned(), String::new()).unwrap();
    VersionOrigin { label, ..VersionOrigin::default() }
}

/// A function that no other number has.
fn decoder(number: u32) -> String {
    format!("function Decoder() {{ return {{ {number}: 1 }}; }}")
}

/// Decodes a payload with this function. Also returns true if the function was loaded for it.
async fn decode(payloads: &Payloads, app_id: &str, decoder: &str, priority: Priority) -> (bool, Decoded) {
    let payload = Payload::without_device(Some(vec![1]), 1, Timestamp::from_millis(1)).unwrap();
    let (application, usage) = (records::application(app_id, "custom", decoder), Usage::default());
    let decoded = payloads.decode(&application, &payload, Run { priority, usage: &usage }).await.unwrap();
    (usage.fuel() > decoded.cost.fuel, decoded)
}

// Conformance: Every change of functions is a version
#[tokio::test]
async fn every_change_is_a_version_and_no_other_set_is() {
    let fixture = Fixture::new().await;
    assert_eq!(fixture.numbers().await, [0; 0], "an application that is registered has no functions yet");
    assert_eq!((fixture.set("a").await, fixture.set("b").await, fixture.set("b").await), (1, 2, 2));
    let format = Application::with_functions(
        id("my-app"),
        "v2".to_owned(),
        Sources { decoder: "b".to_owned(), ..Sources::default() },
    );
    let dialect = fixture.applications.set(format.clone(), JoinKeyChange::Keep, VersionOrigin::default()).await;
    assert_eq!(dialect.unwrap().unwrap().number, 3);
    assert_eq!(fixture.set("a").await, 4);
    assert_eq!(fixture.numbers().await, [4, 3, 2, 1]);
    for (number, expected) in [(1, application("a")), (2, application("b")), (3, format), (4, application("a"))] {
        assert_eq!(fixture.version(number).await.unwrap(), expected, "{number}");
    }
    let live = fixture.applications.version(&id("my-app"), None).await.unwrap();
    assert_eq!((live.version.number, live.used), (4, VersionUse::Live));
    // The live text is stored where it always was, and equal ones are stored once.
    assert_eq!(fixture.records().await.len(), 3, "{:?}", fixture.records().await);
}

#[tokio::test]
async fn a_label_is_set_with_a_change_or_later() {
    let fixture = Fixture::new().await;
    fixture.set_with("a", labelled("first")).await;
    fixture.set("b").await;
    assert_eq!(fixture.set_with("b", labelled("second")).await, 2, "the label of what is live already");
    let label = labelled("the first").label;
    fixture.applications.label_version(&id("my-app"), 1, label.clone()).await.unwrap();
    let labels: Vec<_> = fixture.versions().await.into_iter().map(|version| version.origin.label).collect();
    assert_eq!(labels, [labelled("second").label, label.clone()]);
    let link = VersionLabel::new(String::new(), "https://example.com/2".to_owned()).unwrap();
    fixture.set_with("b", VersionOrigin { label: link, ..VersionOrigin::default() }).await;
    let both = VersionLabel::new("second".to_owned(), "https://example.com/2".to_owned()).unwrap();
    assert_eq!(fixture.versions().await[0].origin.label, both, "what is not given stays");
    let error = fixture.applications.label_version(&id("my-app"), 3, label).await.unwrap_err();
    let expected = "Version 3 of application my-app not found: versions 1 to 2 are kept";
    assert_eq!((error.kind(), error.to_string().as_str()), (Kind::NotFound, expected));
}

// Conformance: Every change of functions is a version
#[tokio::test]
async fn the_oldest_are_dropped_with_their_texts() {
    let fixture = Fixture::with(VersionBounds { count_max: 3, ..VersionBounds::default() }).await;
    for decoder in ["a", "b", "a", "c", "d"] {
        fixture.set(decoder).await;
    }
    assert_eq!((fixture.numbers().await, fixture.records().await.len()), (vec![5, 4, 3], 3));
    assert_eq!(fixture.version(3).await.unwrap(), application("a"), "a dropped version had the same text");
    let error = fixture.version(2).await.unwrap_err();
    let expected = "Version 2 of application my-app not found: versions 3 to 5 are kept";
    assert_eq!((error.kind(), error.to_string().as_str()), (Kind::NotFound, expected));
}

#[tokio::test]
async fn functions_are_mended_where_there_is_no_room_for_more() {
    const BYTES: u64 = 1 << 20;
    let settings = BudgetSettings { stored_bytes_per_owner_max: BYTES, ..BudgetSettings::default() };
    let (ledger, owners) = (Ledger::new(&settings), Arc::new(Owners::unknown(ManualClock::new())));
    let store: Arc<dyn Store> = Arc::new(Embedded::in_memory(StoreClock::new(|| 0)).unwrap());
    let store = BudgetedStore::open(store, None, (ledger.stored.clone(), &owners)).await;
    let applications = Applications::new(store.clone(), sealer(store.as_ref()).await);
    applications.register(&id("my-app")).await.unwrap();
    for number in 1..=8 {
        let decoder = application(&format!("// {number}\n{}", "a".repeat(BYTES as usize / 4)));
        let set = applications.set(decoder, JoinKeyChange::Keep, VersionOrigin::default()).await;
        assert_eq!(set.unwrap().unwrap().number, number);
    }
    let kept = applications.versions(&id("my-app")).await.unwrap();
    assert!(kept[0].version.number == 8 && kept.len() < 4, "{kept:?}");
}

#[tokio::test]
async fn large_functions_leave_fewer_versions() {
    let fixture = Fixture::new().await;
    let decoder = |number: u32| format!("// {number}\n{}", "a".repeat(100_000));
    for number in 1..=100 {
        assert_eq!(fixture.set(&decoder(number)).await, number);
    }
    let numbers = fixture.numbers().await;
    // 2 MiB of older ones, and the one that is live.
    assert_eq!((numbers.len(), numbers[0]), (21, 100));
    assert_eq!(fixture.version(80).await.unwrap(), application(&decoder(80)));
    let larger = "a".repeat(3 << 20);
    fixture.set(&larger).await;
    fixture.set("b").await;
    assert_eq!(fixture.numbers().await, [102], "what is larger than all may be is not kept");
    assert_eq!(fixture.records().await, ["handler/versions"]);
}

#[tokio::test]
async fn functions_from_before_there_were_versions_are_the_first() {
    let fixture = Fixture::new().await;
    fixture.set("a").await;
    let forgotten = fixture.store.commit(Batch::new().delete(key("handler/versions"))).await.unwrap();
    assert_eq!(forgotten, Commit::Done);
    let versions = fixture.versions().await;
    assert_eq!((versions[0].number, &versions[0].origin), (1, &VersionOrigin::default()));
    assert_eq!(fixture.version(1).await.unwrap(), application("a"));
    assert_eq!(fixture.set("b").await, 2);
    assert_eq!(fixture.version(1).await.unwrap(), application("a"));
}

#[tokio::test]
async fn concurrent_changes_are_two_versions() {
    let fixture = Fixture::new().await;
    fixture.set("a").await;
    let applications = fixture.applications.clone();
    let other = async move {
        applications.set(application("b"), JoinKeyChange::Keep, VersionOrigin::default()).await.unwrap();
    };
    fixture.store.interrupt(other.boxed());
    assert_eq!(fixture.set("c").await, 3);
    for (number, decoder) in [(1, "a"), (2, "b"), (3, "c")] {
        assert_eq!(fixture.version(number).await.unwrap(), application(decoder));
    }
}

#[tokio::test]
async fn functions_that_are_missing_can_be_set_again() {
    let fixture = Fixture::new().await;
    fixture.set("a").await;
    fixture.set("b").await;
    let lost = fixture.store.commit(Batch::new().delete(key("handler/functions"))).await.unwrap();
    assert_eq!(lost, Commit::Done);
    assert!(fixture.version(1).await.is_ok());
    assert_eq!(fixture.set("c").await, 2);
    assert_eq!(fixture.version(2).await.unwrap(), application("c"));
    assert_eq!(fixture.version(1).await.unwrap(), application("a"));
}

#[tokio::test]
async fn they_are_deleted_with_their_application() {
    let fixture = Fixture::new().await;
    for decoder in ["a", "b", "c"] {
        fixture.set(decoder).await;
    }
    fixture.applications.delete(&id("my-app")).await.unwrap();
    assert_eq!(fixture.store.list(&key(""), None, 10).await.unwrap(), []);
    fixture.applications.register(&id("my-app")).await.unwrap();
    assert_eq!(fixture.numbers().await, [0; 0]);
}

// Conformance: Stored uplinks are decoded again with other functions
#[tokio::test]
async fn those_that_take_turns_in_dry_runs_stay_loaded_up_to_eight() {
    let payloads = Payloads::new(pool(), &Settings::default()).unwrap();
    let loads = async |number: u32| {
        let (is_new, decoded) = decode(&payloads, "my-app", &decoder(number), Priority::DryRun).await;
        assert_eq!(decoded.fields.unwrap().get(), format!(r#"{{"{number}":1}}"#));
        is_new
    };
    for number in 0..8 {
        assert!(loads(number).await, "{number}");
    }
    for number in 0..8 {
        assert!(!loads(number).await, "{number} is still loaded");
    }
    assert!(!loads(0).await);
    assert!(loads(8).await, "it evicts the one of its own application that was not used for longest");
    assert!(!loads(0).await && loads(1).await && !loads(8).await && !loads(0).await);
}

// Conformance: Stored uplinks are decoded again with other functions
#[tokio::test]
async fn those_that_cannot_be_loaded_evict_only_those_of_their_application() {
    let loading = Loading { sets_max: NonZeroUsize::MIN.saturating_add(11), ..Loading::default() };
    let payloads = Payloads::new(pool(), &Settings { loading, ..Settings::default() }).unwrap();
    let loads = async |app_id: &str, decoder: &str, priority| decode(&payloads, app_id, decoder, priority).await.0;
    let wrong = |number| format!("{} }}", decoder(number));
    assert!(loads("neighbour", &decoder(0), Priority::DryRun).await);
    assert!(loads("my-app", &decoder(1), Priority::DryRun).await);
    for number in 0..20 {
        assert!(loads("my-app", &wrong(number), Priority::DryRun).await, "{number}");
    }
    assert!(!loads("neighbour", &decoder(0), Priority::DryRun).await, "it is still loaded");
    assert!(!loads("my-app", &wrong(12), Priority::DryRun).await, "the last eight are remembered");
    assert!(loads("my-app", &decoder(1), Priority::DryRun).await);

    // Of live ones, each application has one that works and one that does not.
    assert!(loads("my-app", &decoder(2), Priority::Live).await && loads("my-app", &wrong(2), Priority::Live).await);
    assert!(!loads("my-app", &decoder(2), Priority::Live).await && !loads("my-app", &wrong(2), Priority::Live).await);
    assert!(loads("my-app", &wrong(3), Priority::Live).await && loads("my-app", &wrong(2), Priority::Live).await);
    assert!(!loads("my-app", &decoder(2), Priority::Live).await);
}

// Conformance: Stored uplinks are decoded again with other functions
#[tokio::test]
async fn those_of_one_application_take_a_sixteenth_of_the_memory_for_dry_runs() {
    let pool = Arc::new(pool());
    let sources = Sources { decoder: decoder(0), ..Sources::default() };
    let limits = pool.engine().limits().clone();
    let request = LoadRequest { hash: sources.hash(), sources, limits, is_cached: false };
    let loaded = pool.load(&Tenant::alone("my-app", Priority::DryRun), request).await.unwrap().unwrap();
    // Dry runs have an eighth of the memory.
    let with_room = |bytes: usize| {
        let loading = Loading { bytes_max: 8 * bytes, ..Loading::default() };
        Payloads::new(pool.clone(), &Settings { loading, ..Settings::default() }).unwrap()
    };
    let loads = async |payloads: &Payloads, app_id: &str, number| {
        decode(payloads, app_id, &decoder(number), Priority::DryRun).await.0
    };

    let payloads = with_room(16 * loaded.idle_bytes() * 5 / 2);
    assert!(loads(&payloads, "neighbour", 9).await);
    for number in 0..3 {
        assert!(loads(&payloads, "my-app", number).await, "{number}");
    }
    assert!(!loads(&payloads, "my-app", 1).await && !loads(&payloads, "my-app", 2).await, "two stay");
    assert!(loads(&payloads, "my-app", 0).await && !loads(&payloads, "neighbour", 9).await);

    let payloads = with_room(4 * loaded.idle_bytes());
    assert!(loads(&payloads, "my-app", 0).await && !loads(&payloads, "my-app", 0).await, "one stays, however large");
    assert!(loads(&payloads, "my-app", 1).await && loads(&payloads, "my-app", 0).await);
}

/// Limits that differ by number.
fn limits(number: u64) -> LimitsByName {
    LimitsByName::from([("fuel".to_owned(), number)])
}

/// Stores the limits of these numbers, as a handler does that starts at this time.
async fn keep(applications: &Applications, numbers: Range<u64>, time: i64) {
    let in_use = numbers.map(|number| (number.to_be_bytes(), limits(number))).collect();
    applications.store_limits(in_use, Timestamp::from_millis(time)).await.unwrap();
}

/// The numbers of the limits that are stored, of these.
async fn kept(applications: &Applications, numbers: Range<u64>) -> Vec<u64> {
    let mut kept = Vec::new();
    for number in numbers {
        if let Some(past) = applications.past_limits(number.to_be_bytes()).await.unwrap() {
            assert_eq!(past, limits(number));
            kept.push(number);
        }
    }
    let all = applications.all_limits().await.unwrap();
    assert!(kept.iter().all(|number| all.get(&number.to_be_bytes()) == Some(&limits(*number))));
    kept
}

// Conformance: Stored uplinks are decoded again with other functions
#[tokio::test]
async fn limits_of_the_past_are_kept_until_there_are_too_many() {
    let applications = Fixture::new().await.applications;
    // Those of lower numbers, which come first in the store, are used later.
    keep(&applications, 1..4, 1).await;
    keep(&applications, 0..2, 2).await;
    assert_eq!(kept(&applications, 0..5).await, [0, 1, 2, 3]);
    keep(&applications, 10..508, 3).await;
    assert_eq!(kept(&applications, 0..10).await, [0, 1], "those that nobody has used for the longest time are dropped");
    // What the handler has stays, however much that is.
    keep(&applications, 1000..2200, 4).await;
    assert_eq!(kept(&applications, 0..2200).await, Vec::from_iter(1000..2200));
    keep(&applications, 1500..1501, 5).await;
    let kept = kept(&applications, 0..2200).await;
    assert!(kept.len() == 500 && kept.contains(&1500), "{kept:?}");
}

// Conformance: Stored uplinks are decoded again with other functions
#[tokio::test]
async fn limits_that_another_handler_begins_to_use_meanwhile_are_kept() {
    let fixture = Fixture::new().await;
    keep(&fixture.applications, 0..1, 1).await;
    let other = fixture.applications.clone();
    fixture.store.interrupt_list(async move { keep(&other, 0..1, 3).await }.boxed());
    keep(&fixture.applications, 1..501, 2).await;
    assert_eq!(kept(&fixture.applications, 0..1).await, [0]);
}

#[tokio::test]
async fn limits_that_cannot_be_read_are_not_known() {
    let fixture = Fixture::new().await;
    keep(&fixture.applications, 0..2, 1).await;
    let damaged = Key::new(&Tag::service("handler").unwrap(), "handler/limits/0000000000000001").unwrap();
    let put = fixture.store.commit(Batch::new().put(damaged, "damaged")).await.unwrap();
    assert_eq!((put, kept(&fixture.applications, 0..2).await), (Commit::Done, vec![0]));
}
