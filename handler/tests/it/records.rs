//! Stored records of applications and devices, and the parts of them that an uplink reads.

mod deletions;

use std::{future::poll_fn, num::NonZeroUsize, pin::pin, sync::Arc};

use futures::FutureExt;
use handler::{
    Error, Loading, Settings,
    application::{Application, Applications, JoinKeyChange, VersionOrigin},
    device::{Device, Devices, Lorawan},
    payload::{Payload, Payloads, Run},
    uplink::{Frame, LastHeardTimes, Reader, RunCounters, Uplinks},
};
use runtime::{Engine, Limits, Pool, Priority, Sources};
use serde_json::{Value, json};
use server::usage::Usage;
use store::{Batch, Commit, Key, Store, StoreClock, Tag};
use testing::{FailingStore, ManualClock, RecordingStore};
use tokio::sync::oneshot;
use types::{AppId, DevEui, Kind, Kinded, Timestamp};

use crate::harness::{recording_output::RecordingOutput, sealer};

/// Cayenne LPP for a temperature of 27.2 on channel 3.
const PAYLOAD: [u8; 4] = [0x03, 0x67, 0x01, 0x10];

const SUMMARY_AND_DEVICE: &str = "handler/application, handler/device/dev";
const SUMMARY_AND_FUNCTIONS: &str = "handler/application, handler/functions";

/// Handles uplinks over a store that records its reads, with three applications of one device each.
struct Fixture {
    store: Arc<RecordingStore>,
    applications: Applications,
    output: Arc<RecordingOutput>,
    uplinks: Uplinks,
}

impl Fixture {
    async fn new() -> Self {
        Self::with(Settings::default()).await
    }

    async fn with(settings: Settings) -> Self {
        let store = Arc::new(RecordingStore::new(StoreClock::new(|| 0)));
        let sealer = sealer(store.as_ref()).await;
        let (applications, devices) =
            (Applications::new(store.clone(), sealer.clone()), Devices::new(store.clone(), sealer, ManualClock::new()));
        for app_id in ["app-one", "app-two", "app-three"] {
            applications.register(&id(app_id)).await.unwrap();
            devices.set(device(app_id)).await.unwrap();
        }
        let output = Arc::new(RecordingOutput::default());
        let payloads = Arc::new(Payloads::new(pool(), &settings).unwrap());
        let uplinks = Uplinks {
            applications: applications.clone(),
            devices,
            payloads,
            output: output.clone(),
            history: None,
            shows_version: false,
            trials: Default::default(),
            runs: Arc::new(RunCounters::new(ManualClock::new())),
            last_heard: Arc::new(LastHeardTimes::new(ManualClock::new())),
        };
        Self { store, applications, output, uplinks }
    }

    /// Saves a decoder, which may be empty.
    async fn save(&self, app_id: &str, payload_format: &str, decoder: &str) {
        self.applications
            .set(application(app_id, payload_format, decoder), JoinKeyChange::Replace, VersionOrigin::default())
            .await
            .unwrap();
    }

    /// The fields of one uplink, null for none.
    async fn fields(&self, app_id: &str) -> Result<Value, Error> {
        let time = Timestamp::from_millis(1);
        let frame = Frame::simulated(id(app_id), "dev".parse().unwrap(), 1, PAYLOAD.to_vec(), time).unwrap();
        self.uplinks.handle(frame, &Usage::default()).await?;
        let message = self.output.take().pop().unwrap();
        Ok(serde_json::to_value(message.event).unwrap()["payload_fields"].clone())
    }

    /// Damages the store: deletes the sources of an application's functions.
    async fn lose_functions(&self, app_id: &str) {
        let key = Key::new(&tag(app_id), "handler/functions").unwrap();
        assert!(self.store.get(std::slice::from_ref(&key)).await.unwrap()[0].is_some());
        assert_eq!(self.store.commit(Batch::new().delete(key)).await.unwrap(), Commit::Done);
        self.store.take_reads();
    }
}

pub fn pool() -> Pool {
    // The time limits are out of reach on a busy machine.
    let limits = Limits { time_ms_max: 60_000, load_time_ms_max: 60_000, ..Limits::default() };
    let settings = runtime::Settings { workers: 1, limits, ..Default::default() };
    Pool::start(Arc::new(Engine::new(&settings).unwrap())).unwrap()
}

pub fn id(app_id: &str) -> AppId {
    app_id.parse().unwrap()
}

fn tag(app_id: &str) -> Tag {
    Tag::application(app_id).unwrap()
}

pub fn application(app_id: &str, payload_format: &str, decoder: &str) -> Application {
    let sources = Sources { decoder: decoder.to_owned(), ..Sources::default() };
    Application::with_functions(id(app_id), payload_format.to_owned(), sources)
}

pub fn device(app_id: &str) -> Device {
    Device {
        app_id: id(app_id),
        dev_id: "dev".parse().unwrap(),
        description: String::new(),
        latitude: 0.0,
        longitude: 0.0,
        altitude: 0,
        attributes: Default::default(),
        lorawan: Lorawan { dev_eui: dev_eui(app_id), ..Lorawan::default() },
    }
}

/// Another EUI for each application.
fn dev_eui(app_id: &str) -> DevEui {
    let mut bytes = [0; 8];
    bytes.iter_mut().zip(app_id.bytes()).for_each(|(to, from)| *to = from);
    DevEui::new(bytes)
}

/// A decoder that returns its number.
fn decoder(number: u32) -> String {
    format!("function Decoder() {{ return {{ n: {number} }}; }}")
}

#[tokio::test]
async fn the_source_of_a_function_that_failed_is_read_when_its_uplink_is_published() {
    let fixture = Fixture::new().await;
    let decoder = "function Decoder(bytes, port) { if (port === 2) throw 'no'; return { n: port }; }";
    fixture.save("app-one", "custom", decoder).await;
    fixture.fields("app-one").await.unwrap();
    let (store, output) = (fixture.store.clone(), fixture.output.clone());
    let (sender, published) = oneshot::channel();
    // The first read is of the device, the second one of the source.
    let at_source = async move { sender.send(output.take().len()).unwrap() };
    fixture.store.interrupt(async move { store.interrupt(at_source.boxed()) }.boxed());
    let frame = Frame::simulated(id("app-one"), "dev".parse().unwrap(), 2, PAYLOAD.to_vec(), Timestamp::from_millis(1))
        .unwrap();
    let handled = fixture.uplinks.handle_for(frame, &Usage::default(), Reader::Caller).await.unwrap();
    assert_eq!(published.await, Ok(2), "the message, and an event about the failure");
    let failure = handled.result.unwrap().failure.unwrap();
    assert!(
        failure.contains("the decoder failed") && failure.contains("1 | function Decoder(bytes, port)"),
        "{failure}"
    );
}

// Conformance: `app_id`, the four functions, `payload_format` stored verbatim
#[tokio::test]
async fn gets_what_was_set() {
    let fixture = Fixture::new().await;
    let sources = Sources {
        decoder: decoder(1),
        converter: "function Converter(decoded) { return decoded; }".to_owned(),
        validator: "function Validator() { return true; }".to_owned(),
        encoder: "function Encoder() { return []; }".to_owned(),
        ..Sources::default()
    };
    let application = Application::with_functions(id("app-one"), "v2".to_owned(), sources)
        .with_join_key(Some("account.key".parse().unwrap()));
    fixture.applications.set(application.clone(), JoinKeyChange::Replace, VersionOrigin::default()).await.unwrap();
    let application = application.with_version(Some(1));
    assert_eq!(fixture.applications.get(&id("app-one")).await.unwrap(), application);
    assert_eq!(fixture.applications.summary(&id("app-one")).await.unwrap(), *application.summary());
    assert_eq!(fixture.applications.get(&id("app-two")).await.unwrap(), Application::new(id("app-two")));
}

#[tokio::test]
async fn reads_sources_only_if_functions_are_not_loaded() {
    let fixture = Fixture::new().await;
    fixture.save("app-one", "custom", &decoder(1)).await;
    for further in [Some(SUMMARY_AND_FUNCTIONS), None, None] {
        fixture.store.take_reads();
        assert_eq!(fixture.fields("app-one").await.unwrap(), json!({"n": 1}));
        let expected: Vec<&str> = [SUMMARY_AND_DEVICE].into_iter().chain(further).collect();
        assert_eq!(fixture.store.take_reads(), expected);
    }
    for (format, decoder) in [("cayennelpp", ""), ("", ""), ("custom", ""), ("unheard of", "function Decoder() {")] {
        fixture.save("app-one", format, decoder).await;
        fixture.store.take_reads();
        fixture.fields("app-one").await.unwrap();
        assert_eq!(fixture.store.take_reads(), [SUMMARY_AND_DEVICE], "{format}");
    }
}

#[tokio::test]
async fn uses_new_functions_as_soon_as_they_are_saved() {
    let fixture = Fixture::new().await;
    for number in [1, 2, 1] {
        fixture.save("app-one", "custom", &decoder(number)).await;
        assert_eq!(fixture.fields("app-one").await.unwrap(), json!({"n": number}));
    }
    fixture.save("app-one", "cayennelpp", &decoder(1)).await;
    assert_eq!(fixture.fields("app-one").await.unwrap(), json!({"temperature_3": 27.2}));
}

#[tokio::test]
async fn uses_an_application_as_saved_between_two_reads() {
    let fixture = Fixture::new().await;
    let saves = [
        ("custom", decoder(100), json!({"n": 100})),
        ("ts013", "function decodeUplink() { return { data: { ts: 13 } }; }".to_owned(), json!({"ts": 13})),
        ("cayennelpp", decoder(100), json!({"temperature_3": 27.2})),
        ("", String::new(), Value::Null),
        ("custom", String::new(), Value::Null),
    ];
    for (number, (format, text, expected)) in (0..).zip(saves) {
        // A decoder that is not loaded, so that its source has to be read.
        fixture.save("app-one", "custom", &decoder(number)).await;
        let (applications, new) = (fixture.applications.clone(), application("app-one", format, &text));
        let set = async move {
            applications.set(new, JoinKeyChange::Replace, VersionOrigin::default()).await.unwrap();
        };
        fixture.store.interrupt(set.boxed());
        assert_eq!(fixture.fields("app-one").await.unwrap(), expected, "{format} {text}");
    }
    fixture.save("app-one", "custom", &decoder(5)).await;
    let applications = fixture.applications.clone();
    fixture.store.interrupt(async move { applications.delete(&id("app-one")).await.unwrap() }.boxed());
    assert_eq!(fixture.fields("app-one").await.unwrap_err().kind(), Kind::NotFound);
}

#[tokio::test]
async fn loads_equal_functions_with_equal_limits_once() {
    let fuel = Limits::default().fuel;
    let limits = |fuel: u64| serde_json::from_value(json!({ "fuel": fuel })).unwrap();
    let limits = [(id("app-two"), limits(fuel)), (id("app-three"), limits(fuel - 1))].into();
    let fixture = Fixture::with(Settings { sandbox_limits: limits, ..Settings::default() }).await;
    for app_id in ["app-one", "app-two", "app-three"] {
        fixture.save(app_id, "custom", &decoder(1)).await;
    }
    fixture.fields("app-one").await.unwrap();
    for (app_id, expected) in
        [("app-two", &[SUMMARY_AND_DEVICE][..]), ("app-three", &[SUMMARY_AND_DEVICE, SUMMARY_AND_FUNCTIONS][..])]
    {
        fixture.store.take_reads();
        assert_eq!(fixture.fields(app_id).await.unwrap(), json!({"n": 1}));
        assert_eq!(fixture.store.take_reads(), expected, "{app_id}");
    }
    // In another dialect, the same source is another function.
    fixture.save("app-two", "ts013", &decoder(1)).await;
    assert_eq!(fixture.fields("app-two").await.unwrap(), Value::Null);
}

/// A task that is polled again has let all others that were ready go first.
#[tokio::test]
async fn a_large_list_of_devices_is_read_in_pieces() {
    let store = Arc::new(FailingStore::new(StoreClock::new(|| 0)));
    let sealer = sealer(store.as_ref()).await;
    Applications::new(store.clone(), sealer.clone()).register(&id("app-one")).await.unwrap();
    let devices = Devices::new(store, sealer, ManualClock::new());
    for number in 0..320 {
        let dev_id = format!("dev-{number}").parse().unwrap();
        devices.set(Device { dev_id, lorawan: Lorawan::default(), ..device("app-one") }).await.unwrap();
    }
    let (app_id, usage, mut polls) = (id("app-one"), Usage::default(), 0);
    let mut list = pin!(devices.list(&app_id, 0, 0x7fff, &usage));
    let page = poll_fn(|context| {
        polls += 1;
        list.as_mut().poll(context)
    });
    assert_eq!(page.await.unwrap().devices.len(), 320);
    // Seven times among the first 256, which are read at once, and once among the rest. The store may answer at once.
    assert!(polls > 8, "{polls}");
}

#[tokio::test]
async fn dry_runs_do_not_evict_functions_of_live_messages() {
    let loading = Loading { sets_max: NonZeroUsize::MIN, ..Loading::default() };
    let fixture = Fixture::with(Settings { loading, ..Settings::default() }).await;
    fixture.save("app-one", "custom", &decoder(1)).await;
    fixture.fields("app-one").await.unwrap();
    fixture.store.take_reads();
    let payload = Payload::without_device(Some(vec![1]), 1, Timestamp::from_millis(1)).unwrap();
    for number in 2..5 {
        let application = application("app-two", "custom", &decoder(number));
        let run = Run { priority: Priority::DryRun, usage: &Usage::default() };
        let decoded = fixture.uplinks.payloads.decode(&application, &payload, run).await.unwrap();
        assert_eq!(decoded.fields.unwrap().get(), format!(r#"{{"n":{number}}}"#));
    }
    assert_eq!(fixture.fields("app-one").await.unwrap(), json!({"n": 1}));
    assert_eq!(fixture.store.take_reads(), [SUMMARY_AND_DEVICE]);
}

#[tokio::test]
async fn an_application_that_changes_its_functions_evicts_only_its_own() {
    // Two of the large sets and the small one fit.
    let loading = Loading { bytes_max: 4_000_000, ..Loading::default() };
    let fixture = Fixture::with(Settings { loading, ..Settings::default() }).await;
    fixture.save("app-one", "custom", &decoder(1)).await;
    assert_eq!(fixture.fields("app-one").await.unwrap(), json!({"n": 1}));
    for number in 2..8 {
        let large = format!("var kept = new Array(100000).fill({number}.5); {}", decoder(number));
        fixture.save("app-two", "custom", &large).await;
        assert_eq!(fixture.fields("app-two").await.unwrap(), json!({"n": number}));
    }
    fixture.store.take_reads();
    assert_eq!(fixture.fields("app-one").await.unwrap(), json!({"n": 1}));
    assert_eq!(fixture.store.take_reads(), [SUMMARY_AND_DEVICE], "its functions are still loaded");
}

#[tokio::test]
async fn keeps_a_join_key_that_is_set_concurrently() {
    let fixture = Fixture::new().await;
    let with_key =
        |format: &str, key: &str| application("app-one", format, "").with_join_key(Some(key.parse().unwrap()));
    let (applications, new) = (fixture.applications.clone(), with_key("custom", "ttn-account-v2.new"));
    let set = async move {
        applications.set(new, JoinKeyChange::Replace, VersionOrigin::default()).await.unwrap();
    };
    fixture.store.interrupt(set.boxed());
    let old = with_key("cayennelpp", "ttn-account-v2.old");
    fixture.applications.set(old, JoinKeyChange::Keep, VersionOrigin::default()).await.unwrap();
    let kept = fixture.applications.summary(&id("app-one")).await.unwrap();
    assert_eq!(
        (kept.payload_format.as_str(), kept.register_on_join_access_key),
        ("cayennelpp", Some("ttn-account-v2.new".parse().unwrap()))
    );
}

#[tokio::test]
async fn reports_missing_functions_until_they_are_saved_again() {
    let fixture = Fixture::new().await;
    fixture.save("app-one", "custom", &decoder(1)).await;
    fixture.lose_functions("app-one").await;
    let expected = "the payload functions of application app-one are missing in the store: save them again";
    for error in
        [fixture.fields("app-one").await.unwrap_err(), fixture.applications.get(&id("app-one")).await.unwrap_err()]
    {
        assert_eq!((error.kind(), error.to_string().as_str()), (Kind::Internal, expected));
    }
    fixture.save("app-one", "custom", &decoder(2)).await;
    assert_eq!(fixture.fields("app-one").await.unwrap(), json!({"n": 2}));

    fixture.lose_functions("app-one").await;
    fixture.applications.delete(&id("app-one")).await.unwrap();
    assert_eq!(fixture.applications.get(&id("app-one")).await.unwrap_err().kind(), Kind::NotFound);
}
