//! Keys of the handler's records in the store.
//!
//! All records of an application share its tag, so one commit can change several of them and one prefix finds them all.
//! Only the holders of EUIs, the deletions and moves that have begun, and limits have other tags. The deletion of a
//! device has a record of each kind, and so has its move.

use runtime::SourcesHash;
use store::{Key, Tag};
use types::{AppEui, AppId, DevId, DevicePath, Timestamp};

use super::euis::Euis;
use crate::Error;

/// The prefix of every record of an application.
pub(crate) fn all(app_id: &AppId) -> Result<Key, Error> {
    key(app_id, "")
}

pub(crate) fn summary(app_id: &AppId) -> Result<Key, Error> {
    key(app_id, "application")
}

pub(crate) fn functions(app_id: &AppId) -> Result<Key, Error> {
    key(app_id, "functions")
}

/// The list of the versions of an application's functions.
pub(crate) fn versions(app_id: &AppId) -> Result<Key, Error> {
    key(app_id, "versions")
}

/// The functions of older versions that have this hash.
pub(crate) fn version_text(app_id: &AppId, hash: SourcesHash) -> Result<Key, Error> {
    version_text_of(app_id, hash.as_bytes())
}

/// The same for the bytes of a hash.
pub(crate) fn version_text_of(app_id: &AppId, hash: &[u8; 32]) -> Result<Key, Error> {
    key(app_id, &format!("version/{}", hex::encode(hash)))
}

/// Returns the key of the counts of uplinks by candidate and live version.
pub(crate) fn candidate_counts(app_id: &AppId) -> Result<Key, Error> {
    key(app_id, "candidate")
}

/// The prefix of an application's devices.
pub(crate) fn devices(app_id: &AppId) -> Result<Key, Error> {
    key(app_id, "device/")
}

pub(crate) fn device(DevicePath { app_id, dev_id }: DevicePath<'_>) -> Result<Key, Error> {
    key(app_id, &format!("device/{dev_id}"))
}

/// The id of the device in such a key.
pub(crate) fn dev_id_of(device: &Key) -> Result<DevId, Error> {
    let id = device.path().strip_prefix("handler/device/").unwrap_or_default();
    id.parse().map_err(|error| Error::invalid("Device", error))
}

/// The id of the device that has this pair of EUIs.
pub(crate) fn eui(app_id: &AppId, euis: Euis) -> Result<Key, Error> {
    key(app_id, &format!("eui/{euis}"))
}

/// The prefix of the pairs of EUIs of an application's devices, ordered by AppEUI.
pub(crate) fn euis(app_id: &AppId) -> Result<Key, Error> {
    key(app_id, "eui/")
}

/// The AppEUI in such a key.
pub(crate) fn app_eui_of(pair: &Key) -> Result<AppEui, Error> {
    let euis = pair.path().strip_prefix("handler/eui/").unwrap_or_default();
    euis.split('-').next().unwrap_or_default().parse().map_err(|error| Error::invalid("AppEUI", error))
}

/// Exists while the application is claiming this pair of EUIs.
pub(crate) fn claiming(app_id: &AppId, euis: Euis) -> Result<Key, Error> {
    key(app_id, &format!("claiming/{euis}"))
}

/// The id of the application that holds this pair of EUIs. It has a tag of its own.
pub(crate) fn holder(euis: Euis) -> Result<Key, Error> {
    holder_of_text(&euis.to_string())
}

/// The same for the pair in the key of an application's record; none if that is another record.
pub(crate) fn holder_of(record: &Key) -> Option<Result<Key, Error>> {
    record.path().strip_prefix("handler/eui/").map(holder_of_text)
}

pub(crate) fn nonces(DevicePath { app_id, dev_id }: DevicePath<'_>) -> Result<Key, Error> {
    key(app_id, &format!("nonces/{dev_id}"))
}

pub(crate) fn downlinks(DevicePath { app_id, dev_id }: DevicePath<'_>) -> Result<Key, Error> {
    key(app_id, &format!("downlinks/{dev_id}"))
}

/// The prefix of the queues of an application's devices.
pub(crate) fn all_downlinks(app_id: &AppId) -> Result<Key, Error> {
    key(app_id, "downlinks/")
}

/// The downlinks of a device that its network has taken, and has not reported the end of.
pub(crate) fn sent_downlinks(DevicePath { app_id, dev_id }: DevicePath<'_>) -> Result<Key, Error> {
    key(app_id, &format!("sent/{dev_id}"))
}

/// The counters of a device whose frames the handler opens.
pub(crate) fn frame_counters(DevicePath { app_id, dev_id }: DevicePath<'_>) -> Result<Key, Error> {
    key(app_id, &format!("frame-counters/{dev_id}"))
}

/// The prefix of the counters of an application's devices.
pub(crate) fn all_frame_counters(app_id: &AppId) -> Result<Key, Error> {
    key(app_id, "frame-counters/")
}

/// The id of the device in the key of its counters.
pub(crate) fn counted_dev_id_of(counters: &Key) -> Result<DevId, Error> {
    Ok(counters.path().strip_prefix("handler/frame-counters/").unwrap_or_default().parse()?)
}

pub(crate) fn alarm(DevicePath { app_id, dev_id }: DevicePath<'_>) -> Result<Key, Error> {
    key(app_id, &format!("alarm/{dev_id}"))
}

/// The prefix of the alarms of an application's devices.
pub(crate) fn alarms(app_id: &AppId) -> Result<Key, Error> {
    key(app_id, "alarm/")
}

/// The place of an alarm among those of an application, in the order of the time at which they are due.
pub(crate) fn due_alarm(app_id: &AppId, due: Timestamp, dev_id: &DevId) -> Result<Key, Error> {
    key(app_id, &format!("due-alarm/{:014}/{dev_id}", due.as_millis().max(0)))
}

/// The place before all alarms that are due at this time or later.
pub(crate) fn due_alarms_from(app_id: &AppId, due: Timestamp) -> Result<Key, Error> {
    key(app_id, &format!("due-alarm/{:014}", due.as_millis().max(0)))
}

/// The prefix of these places.
pub(crate) fn due_alarms(app_id: &AppId) -> Result<Key, Error> {
    key(app_id, "due-alarm/")
}

/// The time and the device of such a place.
pub(crate) fn due_alarm_of(place: &Key) -> Result<(Timestamp, DevId), Error> {
    let place = place.path().strip_prefix("handler/due-alarm/").unwrap_or_default();
    let (millis, dev_id) = place.split_once('/').unwrap_or_default();
    let millis: i64 = millis.parse().map_err(|error| Error::invalid("Alarm", error))?;
    Ok((Timestamp::from_millis(millis), dev_id.parse()?))
}

/// Names an application whose devices have alarms, or had.
pub(crate) fn watched(app_id: &AppId) -> Result<Key, Error> {
    // Stores that exist have this word.
    service_key(&format!("listened/{app_id}"))
}

/// The prefix of all of them.
pub(crate) fn all_watched() -> Result<Key, Error> {
    service_key("listened/")
}

/// The application in such a key.
pub(crate) fn watched_app_of(watched: &Key) -> Result<AppId, Error> {
    Ok(watched.path().strip_prefix("handler/listened/").unwrap_or_default().parse()?)
}

/// Names the process that hands over the next downlink of a device.
pub(crate) fn downlink_claim(DevicePath { app_id, dev_id }: DevicePath<'_>) -> Result<Key, Error> {
    key(app_id, &format!("handing-over/{dev_id}"))
}

/// Names the process that does this work on stored messages of an application.
pub(crate) fn work_claim(app_id: &AppId, work: &str) -> Result<Key, Error> {
    key(app_id, &format!("working/{work}"))
}

/// Names an application whose deletion has begun, so that it is completed after a restart.
pub(crate) fn deletion(app_id: &AppId) -> Result<Key, Error> {
    service_key(&format!("deletion/{app_id}"))
}

/// The prefix of all of them.
pub(crate) fn deletions() -> Result<Key, Error> {
    service_key("deletion/")
}

/// Says when a device was deleted whose records history may still have.
pub(crate) fn deleted_device(DevicePath { app_id, dev_id }: DevicePath<'_>) -> Result<Key, Error> {
    key(app_id, &format!("deleted/{dev_id}"))
}

/// Names a device whose deletion has begun, so that it is completed after a restart.
pub(crate) fn device_deletion(DevicePath { app_id, dev_id }: DevicePath<'_>) -> Result<Key, Error> {
    service_key(&format!("device-deletion/{app_id}/{dev_id}"))
}

/// The prefix of all of them.
pub(crate) fn device_deletions() -> Result<Key, Error> {
    service_key("device-deletion/")
}

/// The ids of application and device in such a key.
pub(crate) fn deleted_ids_of(deletion: &Key) -> Result<(AppId, DevId), Error> {
    let ids = deletion.path().strip_prefix("handler/device-deletion/").unwrap_or_default();
    let (app_id, dev_id) = ids.split_once('/').unwrap_or_default();
    Ok((app_id.parse()?, dev_id.parse()?))
}

/// The key under which an application keeps a device that leaves for another one.
pub(crate) fn leaving(DevicePath { app_id, dev_id }: DevicePath<'_>) -> Result<Key, Error> {
    key(app_id, &format!("leaving/{dev_id}"))
}

/// Keeps an id free for a device that comes from another application, and then says that it came.
pub(crate) fn arriving(DevicePath { app_id, dev_id }: DevicePath<'_>) -> Result<Key, Error> {
    key(app_id, &format!("arriving/{dev_id}"))
}

/// Names the move of a device from one application and id to another, so that it is completed after a restart.
pub(crate) fn device_move([from, to]: [&(AppId, DevId); 2]) -> Result<Key, Error> {
    service_key(&format!("device-move/{}/{}/{}/{}", from.0, from.1, to.0, to.1))
}

/// The prefix of all of them.
pub(crate) fn device_moves() -> Result<Key, Error> {
    service_key("device-move/")
}

/// The ids of application and device before and after the move in such a key.
pub(crate) fn moved_ids_of(device_move: &Key) -> Result<[(AppId, DevId); 2], Error> {
    let ids = device_move.path().strip_prefix("handler/device-move/").unwrap_or_default();
    let mut ids = ids.split('/');
    let mut next = || ids.next().unwrap_or_default();
    let [from, to] = [(next(), next()), (next(), next())];
    Ok([(from.0.parse()?, from.1.parse()?), (to.0.parse()?, to.1.parse()?)])
}

/// A pair of EUIs that the operator has released.
pub(crate) fn released(euis: Euis) -> Result<Key, Error> {
    service_key(&format!("released/{euis}"))
}

/// The prefix of all of them.
pub(crate) fn all_released() -> Result<Key, Error> {
    service_key("released/")
}

/// Limits within which functions have run, by the first bytes of their hash.
pub(crate) fn limits(hash: [u8; 8]) -> Result<Key, Error> {
    service_key(&format!("limits/{}", hex::encode(hash)))
}

/// The first bytes of the hash in such a key; none if it has others.
pub(crate) fn limits_hash_of(limits: &Key) -> Option<[u8; 8]> {
    let mut hash = [0; 8];
    hex::decode_to_slice(limits.path().strip_prefix("handler/limits/")?, &mut hash).ok()?;
    Some(hash)
}

/// The prefix of all of them.
pub(crate) fn all_limits() -> Result<Key, Error> {
    service_key("limits/")
}

fn service_key(path: &str) -> Result<Key, Error> {
    Ok(Key::new(&Tag::service("handler")?, &format!("handler/{path}"))?)
}

fn holder_of_text(euis: &str) -> Result<Key, Error> {
    Ok(Key::new(&Tag::named("e", euis)?, "handler/holder")?)
}

fn key(app_id: &AppId, path: &str) -> Result<Key, Error> {
    Ok(Key::new(&Tag::application(app_id.as_str())?, &format!("handler/{path}"))?)
}
