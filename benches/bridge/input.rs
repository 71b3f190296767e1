//! The uplinks: forty codecs, many devices, every message of a codec in turn.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use runtime::Dialect;
use serde_json::{Value, json};
use testing::{CHIRPSTACK_APPLICATION, CHIRPSTACK_TENANT, chirpstack_uplink};
use workbench::{Codec, Expected};

use crate::records;

/// Maximum number of messages of a codec.
const MESSAGES_MAX: usize = 8;
const ENDLESS: &str = "function decodeUplink(input) { while (true) {} }";

pub(crate) struct Profile {
    pub(crate) script: String,
    /// Port and payload.
    messages: Messages,
}

pub(crate) struct Input {
    pub(crate) profiles: Vec<Profile>,
    pub(crate) devices: usize,
    /// Fraction of the uplinks that are decoded: numerator and denominator.
    decodable: (usize, usize),
}

impl Input {
    /// Profiles with real codecs, the same ones again if there are fewer.
    pub(crate) fn new(profiles: usize, devices: usize) -> Self {
        let is_chirpstacks = |codec: &Codec| codec.dialect == Some(Dialect::Ts013);
        let codecs: Vec<_> = records::read().into_iter().filter(is_chirpstacks).filter_map(profile).collect();
        let again = codecs.iter().cycle().take(profiles);
        let profiles: Vec<_> =
            again.map(|(script, messages)| Profile { script: script.clone(), messages: messages.clone() }).collect();
        let decodable = (profiles.len(), profiles.len());
        Self { profiles, devices, decodable }
    }

    pub(crate) fn with_endless(&self) -> Self {
        let copy = |profile: &Profile| Profile { script: profile.script.clone(), messages: profile.messages.clone() };
        let mut profiles: Vec<_> = self.profiles.iter().map(copy).collect();
        let decodable = (profiles.len(), profiles.len() + 1);
        profiles.push(Profile { script: ENDLESS.to_owned(), messages: vec![(1, vec![1])] });
        Self { devices: self.devices / self.profiles.len() * profiles.len(), profiles, decodable }
    }

    /// Returns the number of decoded uplinks among this many.
    pub(crate) fn decoded(&self, uplinks: usize) -> usize {
        uplinks / self.decodable.1 * self.decodable.0
    }

    pub(crate) fn profile_of(&self, device: usize) -> usize {
        device % self.profiles.len()
    }

    /// An uplink as ChirpStack sends it over MQTT.
    pub(crate) fn uplink(&self, number: usize) -> Value {
        let device = number % self.devices;
        let profile = self.profile_of(device);
        let messages = &self.profiles[profile].messages;
        let (port, data) = &messages[number / self.devices % messages.len()];
        json!({
            "deduplicationId": format!("6f1d6cd4-7bb3-4d5a-9a9c-{number:012}"),
            "time": "2026-11-22T16:45:55.231022372+00:00",
            "deviceInfo": {
                "tenantId": CHIRPSTACK_TENANT, "tenantName": "tenant", "applicationId": CHIRPSTACK_APPLICATION,
                "applicationName": "application", "deviceProfileId": profile_id(profile),
                "deviceProfileName": format!("profile {profile}"), "deviceName": format!("device {device}"),
                "devEui": dev_eui(device), "deviceClassEnabled": "CLASS_A", "tags": {},
            },
            "devAddr": "00030000", "adr": false, "dr": 5, "fCnt": number / self.devices, "fPort": port,
            "confirmed": false, "data": STANDARD.encode(data),
            "rxInfo": [{
                "gatewayId": "0102030405060708", "uplinkId": 604252606, "nsTime": "2026-11-22T16:45:55.026368273+00:00",
                "rssi": -60, "snr": 7.5, "channel": 1, "location": {"latitude": 52.5, "longitude": 13.4},
                "context": "JAQpvg==", "crcStatus": "CRC_OK",
            }],
            "txInfo": {"frequency": 868300000, "modulation": {
                "lora": {"bandwidth": 125000, "spreadingFactor": 7, "codeRate": "CR_4_5"},
            }},
            "regionConfigId": "eu868",
        })
    }

    /// The same in a Redis stream.
    pub(crate) fn encoded(&self, number: usize) -> Vec<u8> {
        chirpstack_uplink(&self.uplink(number))
    }
}

pub(crate) fn profile_id(profile: usize) -> String {
    format!("9f1d6cd4-7bb3-4d5a-9a9c-{profile:012}")
}

pub(crate) fn dev_eui(device: usize) -> String {
    format!("a3{device:014x}")
}

/// Ports and payloads.
type Messages = Vec<(u8, Vec<u8>)>;

/// A codec's script and the messages that it decodes without errors.
fn profile(mut codec: Codec) -> Option<(String, Messages)> {
    codec.examples.retain(|example| match &example.expected {
        Expected::Value(value) => value["data"].is_object() && value["errors"].as_array().is_none_or(Vec::is_empty),
        _ => false,
    });
    let calls = records::uplinks(&codec).take(MESSAGES_MAX);
    let messages: Vec<_> = calls.filter(|call| call.port > 0).map(|call| (call.port, call.payload)).collect();
    (!messages.is_empty()).then_some((codec.script, messages))
}
