//! Decodes events with devices and codecs that are given instead of imported: for demonstrations, without a ChirpStack.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc, time::Duration};

use api::chirpstack::{CodecRuntime, DeviceProfile, GetDeviceProfileResponse, GetDeviceResponse};
use bridge::{
    Error,
    codec::{outcome::Run, single_flight::LookUpLimits},
};
use client::{Trust, chirpstack::ChirpStackClient};
use runtime::Pool;
use types::{Clock, Secret};

use super::{
    codec::{
        decoder::Decoder,
        directory::{Codecs, Directory, DirectoryLimits},
    },
    event::{UplinkEvent, topic::Topic},
};

/// Nobody is asked, because everything is known.
const API: &str = "http://localhost:1";
const WAIT_MAX: Duration = Duration::from_secs(10);

/// A device of a network that is played.
#[derive(Clone, Debug)]
pub struct OfflineDevice {
    /// Its EUI, in lower case.
    pub dev_eui: String,
    /// The application that it belongs to.
    pub application_id: String,
    /// Its device profile.
    pub profile_id: String,
    /// The codec of the device profile.
    pub script: String,
    /// Values that its codec reads, by name.
    pub variables: BTreeMap<String, String>,
}

/// A decoded event.
#[derive(Clone, Debug)]
pub struct OfflineUplink {
    /// The event with its object.
    pub event: Vec<u8>,
    /// The fuel that the codec used.
    pub fuel: u64,
    /// The time in the sandbox.
    pub elapsed: Duration,
}

/// Decodes events.
pub struct OfflineDecoder {
    decoder: Decoder,
}

impl OfflineDecoder {
    /// Knows these devices and no others.
    pub fn new(devices: Vec<OfflineDevice>, pool: Arc<Pool>, clock: Arc<dyn Clock>) -> Result<Self, Error> {
        let api = ChirpStackClient::connect(API, &Trust::System, Secret::default())?;
        let limits = DirectoryLimits {
            profiles_max: devices.len(),
            devices_max: devices.len(),
            look_ups: LookUpLimits { waiting_max: 1, wait_max: WAIT_MAX, refused_for: WAIT_MAX },
        };
        let codecs = Codecs { pool, wait_max: WAIT_MAX, kept_scripts: true };
        let directory = Directory::open((api, PathBuf::new()), codecs, &limits, PathBuf::new());
        devices.into_iter().for_each(|device| add(&directory, device));
        Ok(Self { decoder: Decoder { directory: Arc::new(directory), clock } })
    }

    /// Decodes an `up` event that came on a topic; the error has the reason.
    pub async fn decode(&self, topic: &str, event: &[u8]) -> Result<OfflineUplink, String> {
        let topic = Topic::parse(topic, "").ok_or_else(|| "the topic is not ChirpStack's".to_owned())?;
        let event = UplinkEvent::parse(event).map_err(|error| error.to_string())?;
        let mut ran = Run::default();
        let decoded = self.decoder.decode(&event, topic, &mut ran).await.map_err(|error| error.to_string())?;
        let event = event.into_payload(decoded.object, false).map_err(|error| error.to_string())?;
        let Run { fuel, elapsed, .. } = ran;
        Ok(OfflineUplink { event: event.bytes().to_vec(), fuel, elapsed })
    }
}

/// Adds a device and its profile, as ChirpStack's API describes them.
fn add(directory: &Directory, device: OfflineDevice) {
    let OfflineDevice { dev_eui, application_id, profile_id, script, variables } = device;
    let profile = DeviceProfile {
        id: profile_id.clone(),
        payload_codec_runtime: CodecRuntime::Js.into(),
        payload_codec_script: script,
        ..DeviceProfile::default()
    };
    let device = api::chirpstack::Device {
        dev_eui,
        application_id,
        device_profile_id: profile_id,
        variables,
        ..api::chirpstack::Device::default()
    };
    directory.add_profile(GetDeviceProfileResponse { device_profile: Some(profile), updated_at: None });
    directory.add_device(GetDeviceResponse { device: Some(device), updated_at: None });
}
