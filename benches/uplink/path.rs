//! The path of an uplink through the handler, with the store in memory, for the benches in this directory.

use std::sync::Arc;

use handler::{
    application::{Application, Applications, JoinKeyChange, VersionOrigin},
    device::{Device, Devices, Lorawan},
    output::Output,
    payload::Payloads,
    sealer::Sealer,
    uplink::{Frame, LastHeardTimes, RunCounters, Uplinks},
};
use runtime::{Engine, Pool, Settings, Sources};
use server::{
    seal::{KeyOwner, SealingKeys},
    system::{OsRandom, SystemClock},
};
use store::{Embedded, StoreClock};
use types::{AppId, DevId, Timestamp};

/// The only application.
pub(crate) const APP_ID: &str = "bench-app";

/// An application's functions, and a payload for them.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    decoder: &'static str,
    converter: &'static str,
    validator: &'static str,
    pub(crate) payload: &'static [u8],
}

pub(crate) const CASES: [Case; 2] = [
    Case {
        name: "demo 1 KiB",
        decoder: include_str!("../../cli/commands/demo/decoder.js"),
        converter: include_str!("../../cli/commands/demo/converter.js"),
        validator: include_str!("../../cli/commands/demo/validator.js"),
        payload: &[0x01, 0x9a, 0xa8, 0xa0],
    },
    Case {
        name: "meter 38 KiB",
        decoder: include_str!("../codecs/meter.js"),
        converter: "",
        validator: "",
        payload: include_bytes!("../codecs/meter.bin"),
    },
];
/// The port of all uplinks.
pub(crate) const PORT: u8 = 1;

pub(crate) fn pool(workers: usize) -> Pool {
    let settings = Settings { workers, ..Settings::default() };
    Pool::start(Arc::new(Engine::new(&settings).unwrap())).unwrap()
}

impl Case {
    pub(crate) fn sources(&self) -> Sources {
        Sources {
            decoder: self.decoder.to_owned(),
            converter: self.converter.to_owned(),
            validator: self.validator.to_owned(),
            ..Sources::default()
        }
    }

    /// The path of uplinks from `devices` devices of one application to `output`.
    pub(crate) async fn uplinks(&self, pool: Pool, devices: usize, output: Arc<dyn Output>) -> Uplinks {
        let store = Arc::new(Embedded::in_memory(StoreClock::new(|| 0)).unwrap());
        let keys = SealingKeys::new(KeyOwner::Handler, &[7; 32]).unwrap();
        let sealer = Sealer::for_store(keys, store.as_ref(), Arc::new(OsRandom)).await.unwrap();
        let applications = Applications::new(store.clone(), sealer.clone());
        let registered = Devices::new(store, sealer, Arc::new(SystemClock));
        let app_id = APP_ID.parse().unwrap();
        applications.register(&app_id).await.unwrap();
        let application = Application::with_functions(app_id.clone(), String::new(), self.sources());
        applications.set(application, JoinKeyChange::Replace, VersionOrigin::default()).await.unwrap();
        for number in 0..devices {
            registered.set(device(&app_id, number)).await.unwrap();
        }
        let payloads = Arc::new(Payloads::new(pool, &handler::Settings::default()).unwrap());
        Uplinks {
            applications,
            devices: registered,
            payloads,
            output,
            history: None,
            shows_version: false,
            trials: Default::default(),
            runs: Arc::new(RunCounters::new(Arc::new(SystemClock))),
            last_heard: Arc::new(LastHeardTimes::new(Arc::new(SystemClock))),
        }
    }

    pub(crate) fn frame(&self, device: usize) -> Frame {
        let (app_id, dev_id) = (APP_ID.parse().unwrap(), dev_id(device));
        Frame::simulated(app_id, dev_id, PORT.into(), self.payload.to_vec(), Timestamp::from_millis(1)).unwrap()
    }
}

fn device(app_id: &AppId, number: usize) -> Device {
    Device {
        app_id: app_id.clone(),
        dev_id: dev_id(number),
        description: String::new(),
        latitude: 52.37,
        longitude: 4.89,
        altitude: 3,
        attributes: Default::default(),
        lorawan: Lorawan::default(),
    }
}

fn dev_id(number: usize) -> DevId {
    format!("dev-{number}").parse().unwrap()
}
