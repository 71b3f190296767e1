//! Records in the history of a bridge: uplinks with what became of them, and other events.

mod applications;
pub mod event;
mod id;
mod questions;

use std::{collections::BTreeMap, future::ready, sync::Arc};

use futures::{FutureExt, future::BoxFuture};
use history::{
    History, Kind, Loss, NewRecord, Outcome, OwnerOf, RecordId, Settings, StoredHistory, logs_text, microseconds,
    warnings_text,
};
use runtime::{LimitsByName, LimitsHash};
use serde::Serialize;
use serde_json::value::RawValue;
use server::status::ErrorChain;
use types::{AppId, DevId, DevicePath, Metadata, Timestamp};

pub use self::applications::HasDevice;
use self::{
    applications::Applications,
    event::{ReceivedEvent, compact},
    id::id,
};
use crate::{
    Environment, Error, StateDir,
    codec::outcome::{CodecError, Decoded, Run},
    metrics,
};

/// Records what a bridge has processed.
pub struct Recorder {
    /// None if nothing is kept.
    history: Option<Arc<History>>,
    /// The first bytes of the hash of the limits of functions.
    limits: [u8; 8],
    /// None if all that comes is of applications that the settings name.
    applications: Option<Arc<Applications>>,
}

/// An uplink as its network received it.
pub struct ReceivedUplink<'a> {
    /// Time of reception, as functions saw it.
    pub received: Timestamp,
    /// The LoRaWAN port; zero for none.
    pub port: u8,
    /// The frame counter.
    pub counter: u32,
    /// True if the device requested an acknowledgement.
    pub confirmed: bool,
    /// The decrypted payload.
    pub payload: &'a [u8],
    /// Metadata of the reception, without its time.
    pub metadata: Metadata,
    /// Id of the profile by which the network chooses the codec; empty for none.
    pub profile_id: String,
    /// Its name for people; empty for none.
    pub profile_name: String,
}

/// Result of the codec of an uplink.
pub struct UplinkResult<'a> {
    /// The run of its functions.
    pub ran: &'a Run,
    /// The object, or the failure.
    pub decoded: Result<&'a Decoded, &'a CodecError>,
    /// Normalized measurements.
    pub normalized: &'a [Box<RawValue>],
    /// Warnings about these.
    pub normalized_warnings: &'a [String],
}

impl Recorder {
    /// Opens the history of a bridge: in its own directory, or below the one of the settings. `has_device` is asked which
    /// applications exist; without it, all do that messages name.
    pub fn open(environment: &Environment, state_dir: &StateDir, has_device: Option<HasDevice>) -> Result<Self, Error> {
        let set = environment.pool.engine().limits();
        let limits = LimitsHash::of(set).prefix();
        let Some(settings) = environment.history.clone() else {
            return Ok(Self { history: None, limits, applications: None });
        };
        let settings = apart(settings, &state_dir.name());
        let dir = settings.dir.clone().unwrap_or_else(|| state_dir.history());
        let stored = || StoredHistory::open(&dir).and_then(|stored| stored.applications()).unwrap_or_default();
        let applications = has_device.map(|has_device| {
            Applications::open(state_dir.applications(), has_device, environment.clock.clone(), stored).map(Arc::new)
        });
        let applications = applications.transpose()?;
        let owner_of: OwnerOf = match &applications {
            Some(applications) => owner_of(applications),
            None => Arc::new(ToString::to_string),
        };
        let services =
            history::Environment { clock: environment.clock.clone(), random: environment.random.as_ref(), owner_of };
        let history = History::open(&dir, settings, services).map_err(|source| Error::History { dir, source })?;
        tokio::spawn(write_limits(history.clone(), BTreeMap::from([(limits, set.by_name())])));
        Ok(Self { history: Some(history), limits, applications })
    }

    /// Records an uplink of an application and a device, as their network names them, unless the settings keep nothing
    /// of the application. What this returns resolves when the record is on disk, or is counted as lost.
    pub fn record<'a>(
        &self,
        names: (&str, &str),
        uplink: impl FnOnce() -> ReceivedUplink<'a>,
        result: &UplinkResult<'_>,
    ) -> BoxFuture<'static, ()> {
        match self.place(names, result.ran.functions.is_some()) {
            Some((history, ids)) => self.append(history, (&ids).into(), uplink(), result).map(drop).boxed(),
            None => ready(()).boxed(),
        }
    }

    /// Records an event of a device, unless there is none, in the same way. One that is no JSON is counted.
    pub fn record_event(
        &self,
        names: (&str, &str),
        event: impl FnOnce() -> Option<ReceivedEvent>,
    ) -> BoxFuture<'static, ()> {
        let Some(event) = self.history.as_ref().and_then(|_| event()) else { return ready(()).boxed() };
        match self.place(names, false) {
            Some((history, ids)) => append_event(history, (&ids).into(), &event),
            None => ready(()).boxed(),
        }
    }

    /// The history that keeps what is of a device, and the ids of its application and of the device there. `has_run` says
    /// that a codec ran, which networks choose for devices that they have.
    fn place(&self, (application, device): (&str, &str), has_run: bool) -> Option<(&History, (AppId, DevId))> {
        let history = self.history.as_deref()?;
        let (app_id, dev_id) = (id::<AppId>(application)?, id::<DevId>(device)?);
        if !history.keeps(&app_id) {
            return None;
        }
        let admits = |known: &Arc<Applications>| known.admits(&app_id, (application, device), has_run);
        if self.applications.as_ref().is_none_or(admits) {
            return Some((history, (app_id, dev_id)));
        }
        history.count_loss(Loss::Unknown);
        None
    }

    fn append(
        &self,
        history: &History,
        path: DevicePath<'_>,
        uplink: ReceivedUplink<'_>,
        UplinkResult { ran, decoded, normalized, normalized_warnings }: &UplinkResult<'_>,
    ) -> impl Future<Output = Result<RecordId, Loss>> + Send + use<> {
        let (object, warnings, failure) = match decoded {
            Ok(Decoded { object, warnings }) => (object.as_deref(), warnings.as_slice(), None),
            Err(error) => (None, Default::default(), Some(error.to_string())),
        };
        let warnings: Vec<&String> = warnings.iter().chain(*normalized_warnings).collect();
        let functions = ran.functions.map(|hash| *hash.as_bytes());
        let ReceivedUplink { received, port, counter, confirmed, payload, .. } = uplink;
        history.append(&NewRecord {
            port,
            counter,
            confirmed,
            payload,
            metadata: &metadata_text(uplink),
            extra: &ran.extra,
            seed: functions.map(|_| ran.seed),
            functions,
            limits: functions.map(|_| self.limits),
            outcome: outcome(object, failure.is_some()),
            result: object.map_or("", RawValue::get),
            normalized: &normalized_text(normalized),
            failure: failure.as_deref(),
            logs: &logs_text(ran.logs.iter().map(|entry| (entry.slot.name(), &*entry.fields))),
            warnings: &warnings_text(&warnings),
            fuel: ran.fuel,
            microseconds: microseconds(ran.elapsed),
            ..NewRecord::new(path.app_id, path.dev_id, &Kind::Uplink, received)
        })
    }

    /// Writes what waits. Later uplinks are not recorded.
    pub async fn close(&self) {
        if let Some(history) = &self.history
            && let Err(error) = history.close().await
        {
            tracing::error!(error = %ErrorChain(&error), "history was not closed");
        }
    }
}

fn owner_of(applications: &Arc<Applications>) -> OwnerOf {
    let applications = applications.clone();
    Arc::new(move |app_id: &AppId| applications.owner(app_id))
}

fn append_event(history: &History, path: DevicePath<'_>, event: &ReceivedEvent) -> BoxFuture<'static, ()> {
    let ReceivedEvent { kind, received, body, failure } = event;
    let Some(result) = compact(body) else {
        metrics::event("malformed");
        return ready(()).boxed();
    };
    let kind = Kind::Event((*kind).to_owned());
    let outcome = if failure.is_some() { Outcome::Failed } else { Outcome::NotConverted };
    let new = NewRecord::new(path.app_id, path.dev_id, &kind, *received);
    let new = NewRecord { outcome, result: &result, failure: failure.as_deref(), ..new };
    history.append(&new).map(drop).boxed()
}

/// The settings for a bridge of this name. A handler may have the same ones, and an application of somebody else with
/// the same id, so what a bridge records is never in the same directory or folder.
fn apart(mut settings: Settings, name: &str) -> Settings {
    settings.dir = settings.dir.map(|dir| dir.join("bridge").join(name));
    let url = &mut settings.bucket.url;
    if !url.is_empty() {
        *url = format!("{}/bridge/{name}", url.trim_end_matches('/'));
    }
    settings
}

fn outcome(object: Option<&RawValue>, has_failed: bool) -> Outcome {
    match object {
        _ if has_failed => Outcome::Failed,
        Some(_) => Outcome::Decoded,
        None => Outcome::NotConverted,
    }
}

/// Metadata as the handler records it, with the profile, by which `airlock replay` chooses codecs.
fn metadata_text(uplink: ReceivedUplink<'_>) -> String {
    #[derive(Serialize)]
    struct WithProfile {
        #[serde(skip_serializing_if = "String::is_empty")]
        device_profile_id: String,
        #[serde(skip_serializing_if = "String::is_empty")]
        device_profile_name: String,
        #[serde(flatten)]
        metadata: Metadata,
    }
    let ReceivedUplink { received, metadata, profile_id, profile_name, .. } = uplink;
    let metadata = Metadata { time: received.to_rfc3339(), ..metadata };
    let metadata = WithProfile { device_profile_id: profile_id, device_profile_name: profile_name, metadata };
    // Numbers and texts can always be written.
    serde_json::to_string(&metadata).unwrap_or_default()
}

/// An array; empty for none.
fn normalized_text(measurements: &[Box<RawValue>]) -> String {
    // They are JSON already.
    if measurements.is_empty() { String::new() } else { serde_json::to_string(measurements).unwrap_or_default() }
}

/// Writes the limits of functions beside the files, in the background: another process may be changing those.
async fn write_limits(history: Arc<History>, limits: BTreeMap<[u8; 8], LimitsByName>) {
    if let Err(error) = history.write_limits(limits).await {
        let error = ErrorChain(&error);
        tracing::warn!(%error, "other programs do not find the limits of functions beside the files of history");
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use history::BucketSettings;

    use super::*;

    #[test]
    fn a_bridge_records_below_what_handlers_share() {
        let with = |url: &str| Settings {
            dir: Some("/srv/history".into()),
            bucket: BucketSettings { url: url.to_owned(), ..BucketSettings::default() },
            ..Settings::default()
        };
        for (url, expected) in [
            ("s3://bucket/folder", "s3://bucket/folder/bridge/chirpstack"),
            ("s3://bucket/", "s3://bucket/bridge/chirpstack"),
            ("", ""),
        ] {
            let settings = apart(with(url), "chirpstack");
            assert_eq!(settings.bucket.url, expected);
            assert_eq!(settings.dir.as_deref(), Some(Path::new("/srv/history/bridge/chirpstack")));
        }
        assert_eq!(apart(Settings::default(), "chirpstack"), Settings::default());
    }
}
