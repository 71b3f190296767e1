//! What is kept about an application, and what an uplink reads of it.

use std::{num::NonZeroUsize, path::PathBuf, sync::Arc};

use futures::FutureExt;
use handler::{
    Error, Loading, Settings,
    application::{Application, Applications, Functions, JoinKey},
    device::{Change, Device, Devices, Lorawan},
    payload::Payloads,
    uplink::{Frame, Payload, Uplinks},
};
use runtime::{Engine, Limits, Pool, Urgency};
use serde_json::{Value, json};
use store::{Batch, Commit, Key, Store, Tag};
use types::{AppId, Kind, Kinded, Timestamp};

use crate::{recording_output::RecordingOutput, spied::Spied, stage::vault};

/// Cayenne LPP for a temperature of 27.2 on channel 3.
const PAYLOAD: [u8; 4] = [0x03, 0x67, 0x01, 0x10];

const OUTLINE_AND_DEVICE: &str = "handler/application, handler/device/dev";
const OUTLINE_AND_FUNCTIONS: &str = "handler/application, handler/functions";

/// The way of uplinks over a store that tells what was read, with three applications of one device each.
struct Rig {
    store: Arc<Spied>,
    applications: Applications,
    output: Arc<RecordingOutput>,
    uplinks: Uplinks,
}

impl Rig {
    async fn new() -> Self {
        Self::with(Settings::default()).await
    }

    async fn with(settings: Settings) -> Self {
        let store = Arc::new(Spied::new());
        let vault = vault(store.as_ref()).await;
        let (applications, devices) =
            (Applications::new(store.clone(), vault.clone()), Devices::new(store.clone(), vault));
        for app_id in ["app-one", "app-two", "app-three"] {
            applications.register(&id(app_id)).await.unwrap();
            devices.set(device(app_id)).await.unwrap();
        }
        let output = Arc::new(RecordingOutput::default());
        let payloads = Arc::new(Payloads::new(pool(), &settings).unwrap());
        let uplinks = Uplinks { applications: applications.clone(), devices, payloads, output: output.clone() };
        Self { store, applications, output, uplinks }
    }

    /// Saves a decoder, which may be empty.
    async fn save(&self, app_id: &str, payload_format: &str, decoder: &str) {
        self.applications.set(application(app_id, payload_format, decoder), JoinKey::Replaced).await.unwrap();
    }

    /// The fields of one uplink, null for none.
    async fn fields(&self, app_id: &str) -> Result<Value, Error> {
        let time = Timestamp::from_millis(1);
        let frame = Frame::simulated(id(app_id), "dev".parse().unwrap(), 1, PAYLOAD.to_vec(), time).unwrap();
        self.uplinks.handle(frame).await?;
        let message = self.output.take().pop().unwrap();
        Ok(serde_json::to_value(message.event).unwrap()["payload_fields"].clone())
    }

    /// Damages the store: the texts of an application's functions are gone.
    async fn lose_functions(&self, app_id: &str) {
        let key = Key::new(&tag(app_id), "handler/functions").unwrap();
        assert!(self.store.get(std::slice::from_ref(&key)).await.unwrap()[0].is_some());
        assert_eq!(self.store.commit(Batch::new().delete(key)).await.unwrap(), Commit::Done);
        self.store.take_reads();
    }
}

pub fn pool() -> Pool {
    // The compiled guest is kept between test runs, functions are not, and a busy machine does not run into the clock.
    let limits = Limits { time_ms_max: 60_000, load_time_ms_max: 60_000, ..Limits::default() };
    let settings = runtime::Settings {
        cache_dir: Some(PathBuf::from(env!("CARGO_TARGET_TMPDIR"))),
        cache_bytes_max: 0,
        workers: 1,
        limits,
        ..Default::default()
    };
    Pool::start(Arc::new(Engine::new(&settings).unwrap())).unwrap()
}

pub fn id(app_id: &str) -> AppId {
    app_id.parse().unwrap()
}

fn tag(app_id: &str) -> Tag {
    Tag::application(app_id).unwrap()
}

pub fn application(app_id: &str, payload_format: &str, decoder: &str) -> Application {
    let functions = Functions { decoder: decoder.to_owned(), ..Functions::default() };
    Application { payload_format: payload_format.to_owned(), functions, ..Application::new(id(app_id)) }
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
        lorawan: Lorawan { dev_eui: "0102030405060708".parse().unwrap(), ..Lorawan::default() },
    }
}

/// A decoder that tells itself from others.
fn decoder(number: u32) -> String {
    format!("function Decoder() {{ return {{ n: {number} }}; }}")
}

#[tokio::test]
async fn what_was_set_is_what_is_got() {
    let rig = Rig::new().await;
    let functions = Functions {
        decoder: decoder(1),
        converter: "function Converter(decoded) { return decoded; }".to_owned(),
        validator: "function Validator() { return true; }".to_owned(),
        encoder: "function Encoder() { return []; }".to_owned(),
    };
    let application = Application {
        payload_format: "v2".to_owned(),
        functions,
        register_on_join_access_key: Some("account.key".parse().unwrap()),
        ..Application::new(id("app-one"))
    };
    rig.applications.set(application.clone(), JoinKey::Replaced).await.unwrap();
    assert_eq!(rig.applications.get(&id("app-one")).await.unwrap(), application);
    assert_eq!(rig.applications.outline(&id("app-one")).await.unwrap(), application.outline());
    assert_eq!(rig.applications.get(&id("app-two")).await.unwrap(), Application::new(id("app-two")));
}

#[tokio::test]
async fn texts_are_read_only_when_nobody_has_loaded_them() {
    let rig = Rig::new().await;
    rig.save("app-one", "custom", &decoder(1)).await;
    for further in [Some(OUTLINE_AND_FUNCTIONS), None, None] {
        rig.store.take_reads();
        assert_eq!(rig.fields("app-one").await.unwrap(), json!({"n": 1}));
        let expected: Vec<&str> = [OUTLINE_AND_DEVICE].into_iter().chain(further).collect();
        assert_eq!(rig.store.take_reads(), expected);
    }
    for (format, decoder) in [("cayennelpp", ""), ("", ""), ("custom", ""), ("unheard of", "function Decoder() {")] {
        rig.save("app-one", format, decoder).await;
        rig.store.take_reads();
        rig.fields("app-one").await.unwrap();
        assert_eq!(rig.store.take_reads(), [OUTLINE_AND_DEVICE], "{format}");
    }
}

#[tokio::test]
async fn an_uplink_after_a_save_meets_the_new_functions() {
    let rig = Rig::new().await;
    for number in [1, 2, 1] {
        rig.save("app-one", "custom", &decoder(number)).await;
        assert_eq!(rig.fields("app-one").await.unwrap(), json!({"n": number}));
    }
    rig.save("app-one", "cayennelpp", &decoder(1)).await;
    assert_eq!(rig.fields("app-one").await.unwrap(), json!({"temperature_3": 27.2}));
}

#[tokio::test]
async fn an_application_that_is_saved_between_the_two_reads_is_met_as_it_is_then() {
    let rig = Rig::new().await;
    let saves = [
        ("custom", decoder(100), json!({"n": 100})),
        ("ts013", "function decodeUplink() { return { data: { ts: 13 } }; }".to_owned(), json!({"ts": 13})),
        ("cayennelpp", decoder(100), json!({"temperature_3": 27.2})),
        ("", String::new(), Value::Null),
        ("custom", String::new(), Value::Null),
    ];
    for (number, (format, text, expected)) in (0..).zip(saves) {
        // One that nobody has loaded, so that it has to be read.
        rig.save("app-one", "custom", &decoder(number)).await;
        let (applications, new) = (rig.applications.clone(), application("app-one", format, &text));
        rig.store.interrupt(async move { applications.set(new, JoinKey::Replaced).await.unwrap() }.boxed());
        assert_eq!(rig.fields("app-one").await.unwrap(), expected, "{format} {text}");
    }
    rig.save("app-one", "custom", &decoder(5)).await;
    let applications = rig.applications.clone();
    rig.store.interrupt(async move { applications.delete(&id("app-one")).await.unwrap() }.boxed());
    assert_eq!(rig.fields("app-one").await.unwrap_err().kind(), Kind::NotFound);
}

#[tokio::test]
async fn equal_functions_within_equal_limits_are_loaded_once() {
    let fuel = Limits::default().fuel;
    let limits = |fuel: u64| serde_json::from_value(json!({ "fuel": fuel })).unwrap();
    let limits = [(id("app-two"), limits(fuel)), (id("app-three"), limits(fuel - 1))].into();
    let rig = Rig::with(Settings { limits, ..Settings::default() }).await;
    for app_id in ["app-one", "app-two", "app-three"] {
        rig.save(app_id, "custom", &decoder(1)).await;
    }
    rig.fields("app-one").await.unwrap();
    for (app_id, expected) in
        [("app-two", &[OUTLINE_AND_DEVICE][..]), ("app-three", &[OUTLINE_AND_DEVICE, OUTLINE_AND_FUNCTIONS][..])]
    {
        rig.store.take_reads();
        assert_eq!(rig.fields(app_id).await.unwrap(), json!({"n": 1}));
        assert_eq!(rig.store.take_reads(), expected, "{app_id}");
    }
    // The same text is another function where another style is chosen.
    rig.save("app-two", "ts013", &decoder(1)).await;
    assert_eq!(rig.fields("app-two").await.unwrap(), Value::Null);
}

#[tokio::test]
async fn a_deletion_leaves_nothing_behind() {
    let rig = Rig::new().await;
    rig.save("app-one", "custom", &decoder(1)).await;
    let everything = Key::new(&tag("app-one"), "").unwrap();
    assert_eq!(rig.store.list(&everything, None, 10).await.unwrap().len(), 4);
    rig.applications.delete(&id("app-one")).await.unwrap();
    assert_eq!(rig.store.list(&everything, None, 10).await.unwrap(), []);
    assert_eq!(rig.fields("app-one").await.unwrap_err().kind(), Kind::NotFound);
    rig.applications.register(&id("app-one")).await.unwrap();
    assert_eq!(rig.applications.get(&id("app-one")).await.unwrap(), Application::new(id("app-one")));
}

#[tokio::test]
async fn trials_push_out_nothing_that_messages_meet() {
    let loading = Loading { sets_max: NonZeroUsize::MIN, ..Loading::default() };
    let rig = Rig::with(Settings { loading, ..Settings::default() }).await;
    rig.save("app-one", "custom", &decoder(1)).await;
    rig.fields("app-one").await.unwrap();
    rig.store.take_reads();
    let payload = Payload::dry(Some(vec![1]), 1, Timestamp::from_millis(1)).unwrap();
    for number in 2..5 {
        let tried = application("app-two", "custom", &decoder(number));
        let decoded = rig.uplinks.payloads.decode(&tried, &payload, Urgency::Dry).await.unwrap();
        assert_eq!(decoded.fields.unwrap().get(), format!(r#"{{"n":{number}}}"#));
    }
    assert_eq!(rig.fields("app-one").await.unwrap(), json!({"n": 1}));
    assert_eq!(rig.store.take_reads(), [OUTLINE_AND_DEVICE]);
}

#[tokio::test]
async fn a_device_that_is_set_during_a_deletion_goes_with_the_application() {
    let rig = Rig::new().await;
    let devices = rig.uplinks.devices.clone();
    devices.delete(&id("app-one"), &"dev".parse().unwrap()).await.unwrap();
    let late = devices.clone();
    rig.store
        .interrupt_list(async move { assert_eq!(late.set(device("app-one")).await.unwrap(), Change::Created) }.boxed());
    rig.applications.delete(&id("app-one")).await.unwrap();
    assert_eq!(rig.store.list(&Key::new(&tag("app-one"), "").unwrap(), None, 10).await.unwrap(), []);
}

#[tokio::test]
async fn a_key_for_joins_that_is_set_meanwhile_stays() {
    let rig = Rig::new().await;
    let with_key = |key: &str| Application {
        register_on_join_access_key: Some(key.parse().unwrap()),
        ..application("app-one", "custom", "")
    };
    let (applications, new) = (rig.applications.clone(), with_key("ttn-account-v2.new"));
    rig.store.interrupt(async move { applications.set(new, JoinKey::Replaced).await.unwrap() }.boxed());
    let old = Application { payload_format: "cayennelpp".to_owned(), ..with_key("ttn-account-v2.old") };
    rig.applications.set(old, JoinKey::Kept).await.unwrap();
    let kept = rig.applications.get(&id("app-one")).await.unwrap();
    assert_eq!(
        (kept.payload_format.as_str(), kept.register_on_join_access_key),
        ("cayennelpp", Some("ttn-account-v2.new".parse().unwrap()))
    );
}

#[tokio::test]
async fn an_application_whose_functions_are_missing_says_so_until_they_are_saved_again() {
    let rig = Rig::new().await;
    rig.save("app-one", "custom", &decoder(1)).await;
    rig.lose_functions("app-one").await;
    let told = "the payload functions of application app-one are missing in the store: save them again";
    for error in [rig.fields("app-one").await.unwrap_err(), rig.applications.get(&id("app-one")).await.unwrap_err()] {
        assert_eq!((error.kind(), error.to_string().as_str()), (Kind::Internal, told));
    }
    rig.save("app-one", "custom", &decoder(2)).await;
    assert_eq!(rig.fields("app-one").await.unwrap(), json!({"n": 2}));

    rig.lose_functions("app-one").await;
    rig.applications.delete(&id("app-one")).await.unwrap();
    assert_eq!(rig.applications.get(&id("app-one")).await.unwrap_err().kind(), Kind::NotFound);
}
