//! Device profiles and devices, in memory and in the cache file.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use api::chirpstack::{CodecRuntime, GetDeviceProfileResponse, GetDeviceResponse, Timestamp};
use bridge::codec::script::Script;
use runtime::Pool;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::codec::{Codec, javascript};

/// Time of the last change of an object: seconds and nanoseconds since 1970.
pub(super) type ChangeTime = (i64, i32);

/// Makes codecs for device profiles.
#[derive(Clone)]
pub(crate) struct Codecs {
    pub(crate) pool: Arc<Pool>,
    pub(crate) wait_max: Duration,
    /// True if a script runs although the profile's codec is `None`.
    pub(crate) kept_scripts: bool,
}

/// A device profile with its codec.
pub(crate) struct Profile {
    pub(super) record: ProfileRecord,
    pub(crate) codec: Codec,
}

/// The part of a device that its events need, as ChirpStack's API describes it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Device {
    pub(super) dev_eui: Box<str>,
    pub(crate) name: Box<str>,
    pub(crate) application_id: Box<str>,
    pub(crate) profile_id: Box<str>,
    /// A JSON object of strings. These are secrets.
    pub(crate) variables: Box<RawValue>,
    pub(crate) tags: BTreeMap<String, String>,
    /// Empty for a device that does not join.
    #[serde(default)]
    pub(crate) join_eui: Box<str>,
    pub(super) changed: ChangeTime,
}

/// A device profile as the cache file has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ProfileRecord {
    pub(super) id: String,
    pub(super) tenant_id: String,
    pub(super) name: String,
    pub(super) runtime: Runtime,
    pub(super) script: String,
    pub(super) tags: BTreeMap<String, String>,
    pub(super) changed: ChangeTime,
}

/// The codec of a device profile, as ChirpStack names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Runtime {
    None,
    CayenneLpp,
    JavaScript,
}

impl Codecs {
    pub(super) fn profile(&self, response: GetDeviceProfileResponse) -> Profile {
        self.load(ProfileRecord::from(response))
    }

    pub(super) fn load(&self, record: ProfileRecord) -> Profile {
        let is_kept = self.kept_scripts && !record.script.trim().is_empty();
        let codec = match record.runtime {
            Runtime::None if !is_kept => Codec::None,
            Runtime::CayenneLpp => Codec::CayenneLpp,
            Runtime::None | Runtime::JavaScript => Codec::JavaScript(Arc::new(self.script(&record))),
        };
        Profile { record, codec }
    }

    fn script(&self, record: &ProfileRecord) -> Script {
        javascript::script(&record.script, &record.id, self.pool.clone(), self.wait_max)
    }
}

impl Profile {
    pub(crate) fn name(&self) -> &str {
        &self.record.name
    }

    pub(crate) fn tenant_id(&self) -> &str {
        &self.record.tenant_id
    }

    pub(crate) fn tags(&self) -> &BTreeMap<String, String> {
        &self.record.tags
    }

    /// This profile if it has the same codec as `other`, with the codec that `other` has loaded already.
    pub(super) fn with_codec_of(self, other: &Self) -> Self {
        let is_same = (self.record.runtime, &self.record.script) == (other.record.runtime, &other.record.script);
        if is_same { Self { codec: other.codec.clone(), ..self } } else { self }
    }
}

impl From<GetDeviceProfileResponse> for ProfileRecord {
    fn from(response: GetDeviceProfileResponse) -> Self {
        let profile = response.device_profile.unwrap_or_default();
        Self {
            runtime: match profile.payload_codec_runtime() {
                CodecRuntime::None => Runtime::None,
                CodecRuntime::CayenneLpp => Runtime::CayenneLpp,
                CodecRuntime::Js => Runtime::JavaScript,
            },
            id: profile.id,
            tenant_id: profile.tenant_id,
            name: profile.name,
            script: profile.payload_codec_script,
            tags: profile.tags,
            changed: changed(response.updated_at),
        }
    }
}

impl From<GetDeviceResponse> for Device {
    fn from(response: GetDeviceResponse) -> Self {
        let device = response.device.unwrap_or_default();
        Self {
            dev_eui: device.dev_eui.into(),
            name: device.name.into(),
            application_id: device.application_id.into(),
            profile_id: device.device_profile_id.into(),
            // A map of strings can always be written.
            variables: serde_json::value::to_raw_value(&device.variables).unwrap_or_default(),
            tags: device.tags,
            join_eui: device.join_eui.into(),
            changed: changed(response.updated_at),
        }
    }
}

pub(super) fn changed(timestamp: Option<Timestamp>) -> ChangeTime {
    timestamp.map_or((0, 0), |timestamp| (timestamp.seconds, timestamp.nanos))
}
