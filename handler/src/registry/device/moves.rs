//! Moving a device to another application, so that one of the two has it whenever the process is killed.
//!
//! Applications have tags of their own, so no commit covers both. The new application first reserves the id and the
//! EUIs, and the move is noted under the tag of the service, where it is found after a kill. One commit of the old
//! application decides: it replaces the device by a copy that leaves. From then on, this process or another completes
//! the move: the new application gets the copy, the EUIs change hands, and the old one forgets it. If the new
//! application is gone by then, or the id is taken, another commit of the old one decides that the device goes back.

mod completion;
mod embedded;
pub(super) mod in_flight;

use std::time::Duration;

use bytes::Bytes;
use store::{Batch, Commit, Entry};
use types::{AppId, DevId, DevicePath, Kind, Kinded, Timestamp};

use self::in_flight::{Arriving, Leaving, raw};
pub use self::{completion::EndedMove, in_flight::Move};
use super::{
    devices::{CHANGE_ATTEMPTS_MAX, Devices},
    eui_claim::taken,
    frame_counters,
    model::{Device, record},
};
use crate::{
    Error,
    registry::application::{euis::Euis, store_keys},
};

/// Time that an application reserves an id and EUIs if nobody ends the move; far longer than a move.
const RESERVED_AGE_MAX: Duration = Duration::from_secs(600);

/// A device that was moved.
pub struct Moved {
    /// The device as its old application had it.
    pub before: Device,
    /// The same device in its new application.
    pub device: Device,
    /// The record of the downlinks that waited for it. They were dropped.
    pub(crate) downlinks: Option<Bytes>,
    /// False if another process has ended the move, and reports it.
    pub(crate) is_ended_here: bool,
}

/// The records of a device that is to leave.
struct LeavingRecords {
    summary: Entry,
    device: Entry,
    counters: Option<Entry>,
    nonces: Option<Entry>,
    downlinks: Option<Entry>,
}

/// Results of reserving an id and EUIs.
enum Reservation {
    Reserved,
    /// The device of this very move has it.
    Arrived,
    /// Others interfered.
    Changed,
}

impl Devices {
    /// Moves a device with its keys, session, counters and EUIs. Downlinks that wait for it are dropped.
    ///
    /// [`Error::NotFound`] if the device or one of the applications does not exist, [`Error::AlreadyExists`] if the id
    /// is taken in the new application. After any other error, [`Self::moves`] may have the move, which is completed
    /// later.
    pub async fn move_device(&self, moving: &Move) -> Result<Moved, Error> {
        moving.check()?;
        let at = self.clock.now();
        let left = store::retry(CHANGE_ATTEMPTS_MAX, || self.try_leave(moving, at)).await;
        let left = left.and_then(|left| left.ok_or_else(|| Error::device_conflict((&moving.from).into())));
        if left.as_ref().is_err_and(is_refusal) {
            self.give_up_reservation(moving, at).await;
        }
        let moved = left?;
        let ended = self.complete_move(moving).await.map_err(|error| match error {
            // It has left, so nothing is to be repeated.
            Error::Conflict(_) => in_flight::error((&moving.from).into()),
            error => error,
        })?;
        // Another process may have completed it, and the device may have gone back.
        self.check_exists((&moving.to).into()).await?;
        Ok(Moved { is_ended_here: ended.is_some(), ..moved })
    }

    /// Replaces the device by a copy that leaves; none if others interfered.
    async fn try_leave(&self, moving: &Move, at: Timestamp) -> Result<Option<Moved>, Error> {
        let path = DevicePath::from(&moving.from);
        let source = self.source(&moving.from).await?;
        let mut before = record::read(&self.sealer, &source.device.value)?;
        let mut device = before.clone();
        (device.app_id, device.dev_id) = moving.to.clone();
        let named = self.own_name(&before).await?;
        let leaving = serde_json::to_vec(&Leaving {
            to: moving.to.clone(),
            at,
            goes_back: false,
            device: record::write(&self.sealer, &device)?,
            counters: source.counters.as_ref().map(|counters| raw(&counters.value)).transpose()?,
            nonces: source.nonces.as_ref().map(|nonces| raw(&nonces.value)).transpose()?,
            downlinks: source.downlinks.as_ref().map(|downlinks| raw(&downlinks.value)).transpose()?,
        })?;
        // The downlinks do not arrive.
        let room = leaving.len().saturating_sub(source.downlinks.as_ref().map_or(0, |downlinks| downlinks.value.len()));
        if !matches!(self.reserve_arrival(moving, at, device.euis(), Some(room)).await?, Reservation::Reserved) {
            return Ok(None);
        }
        let batch = source.batch_without(path)?.put(store_keys::leaving(path)?, leaving);
        let batch = match named {
            // Until they change hands, the EUIs stay with the old application.
            Some((euis, named)) => batch
                .expect(named.key.clone(), named.version)
                .delete(named.key)
                .put(store_keys::claiming(path.app_id, euis)?, moving.claim(at)),
            None => batch,
        };
        if self.store.commit(batch).await? == Commit::Conflict {
            return Ok(None);
        }
        if let Some(counters) = frame_counters::read(source.counters.as_ref())? {
            counters.update(&mut before);
            counters.update(&mut device);
        }
        let downlinks = source.downlinks.map(|downlinks| downlinks.value);
        Ok(Some(Moved { before, device, downlinks, is_ended_here: false }))
    }

    /// The records of a device that is to leave; [`Error::NotFound`] if it does not exist.
    async fn source(&self, from: &(AppId, DevId)) -> Result<LeavingRecords, Error> {
        let path = DevicePath::from(from);
        let keys = [
            store_keys::summary(path.app_id)?,
            store_keys::device(path)?,
            store_keys::leaving(path)?,
            store_keys::frame_counters(path)?,
            store_keys::nonces(path)?,
            store_keys::downlinks(path)?,
            store_keys::arriving(path)?,
        ];
        let [summary, device, leaving, counters, nonces, downlinks, arriving] = self.store.get_array(&keys).await?;
        let summary = summary.ok_or_else(|| Error::application_not_found(path.app_id))?;
        if leaving.is_some() {
            return Err(in_flight::error(path));
        }
        let device = device.ok_or_else(|| Error::device_not_found(path))?;
        self.check_ended(from, Arriving::read(arriving.as_ref())?.as_ref()).await?;
        Ok(LeavingRecords { summary, device, counters, nonces, downlinks })
    }

    /// The EUIs of a device, with the record that says that they are its own; [`Error::AlreadyExists`] if they are
    /// those of another one, which only templates from before there were such records can share.
    async fn own_name(&self, device: &Device) -> Result<Option<(Euis, Entry)>, Error> {
        let Some(euis) = device.euis() else { return Ok(None) };
        let [named] = self.store.get_array(&[store_keys::eui(&device.app_id, euis)?]).await?;
        let named = named.filter(|named| *named.value == *device.dev_id.as_str().as_bytes());
        Ok(Some((euis, named.ok_or_else(|| taken(euis))?)))
    }

    /// Reserves the id and the EUIs in the new application; [`Error::AlreadyExists`] if another device has the id or
    /// is about to. `room` is what the device takes there, in bytes, as long as the move may be refused.
    async fn reserve_arrival(
        &self,
        moving: &Move,
        at: Timestamp,
        euis: Option<Euis>,
        room: Option<usize>,
    ) -> Result<Reservation, Error> {
        let path = DevicePath::from(&moving.to);
        let arriving_key = store_keys::arriving(path)?;
        let keys = [store_keys::summary(path.app_id)?, store_keys::device(path)?, arriving_key.clone()];
        let [summary, device, arriving] = self.store.get_array(&keys).await?;
        let summary = summary.ok_or_else(|| Error::application_not_found(path.app_id))?;
        let found = Arriving::read(arriving.as_ref())?;
        if found.as_ref().is_some_and(|found| found.is_there && found.is_of(&moving.from, at)) {
            return Ok(Reservation::Arrived);
        }
        let is_others = found.as_ref().is_some_and(|found| !found.is_there && found.from != moving.from);
        if device.is_some() || is_others {
            return Err(Error::already_exists("Device", path));
        }
        self.check_ended(&moving.to, found.as_ref()).await?;
        let until = self.reserved_until();
        let [_, device_key, _] = keys;
        let mut reservation = serde_json::to_vec(&Arriving { from: moving.from.clone(), at, is_there: false, euis })?;
        // The owner's budget is asked for as much as will come, because what comes cannot be refused any more.
        reservation.resize(reservation.len().max(room.unwrap_or_default()), b' ');
        let batch = Batch::new()
            .expect(summary.key, summary.version)
            .expect_absent(device_key)
            .expect_entry(&arriving_key, arriving.as_ref())
            .put_until(arriving_key, reservation, until);
        let batch = match euis {
            Some(euis) => batch.expect_absent(store_keys::eui(path.app_id, euis)?).put_until(
                store_keys::claiming(path.app_id, euis)?,
                moving.claim(at),
                until,
            ),
            None => batch,
        };
        let batch = match room {
            Some(_) => {
                self.note_move(moving, at).await?;
                batch.growing()
            }
            None => batch,
        };
        Ok(if self.store.commit(batch).await? == Commit::Done { Reservation::Reserved } else { Reservation::Changed })
    }

    /// Notes a move before anything is kept for it: only what is noted is found after a kill.
    async fn note_move(&self, moving: &Move, at: Timestamp) -> Result<(), Error> {
        let batch = Batch::new().put(store_keys::device_move(moving.ids())?, serde_json::to_vec(&at)?);
        // It expects nothing, so it cannot conflict.
        _ = self.store.commit(batch).await?;
        Ok(())
    }

    fn reserved_until(&self) -> u64 {
        self.clock.now().plus(RESERVED_AGE_MAX).as_unix_ms()
    }

    /// The error for a device that is not there: it may be about to come from another application.
    pub(super) async fn absent(&self, path: DevicePath<'_>) -> Error {
        match self.absent_several(path.app_id, &[path.dev_id]).await {
            Ok(errors) => errors.into_iter().next().unwrap_or_else(|| Error::device_not_found(path)),
            Err(error) => error,
        }
    }

    /// The same for several devices, in one read.
    pub(super) async fn absent_several(&self, app_id: &AppId, dev_ids: &[&DevId]) -> Result<Vec<Error>, Error> {
        if dev_ids.is_empty() {
            return Ok(Vec::new());
        }
        let keys = dev_ids.iter().map(|dev_id| store_keys::arriving(DevicePath { app_id, dev_id }));
        let found = self.store.get(&keys.collect::<Result<Vec<_>, _>>()?).await?;
        let error = |(dev_id, arriving): (&&DevId, Option<Entry>)| -> Result<Error, Error> {
            let path = DevicePath { app_id, dev_id };
            let is_about_to_come = Arriving::read(arriving.as_ref())?.is_some_and(|arriving| !arriving.is_there);
            Ok(if is_about_to_come { in_flight::error(path) } else { Error::device_not_found(path) })
        };
        dev_ids.iter().zip(found).map(error).collect()
    }
}

/// Returns true if the device has not left. If the store has failed, nobody knows.
fn is_refusal(error: &Error) -> bool {
    !matches!(error, Error::Store(_)) || matches!(error.kind(), Kind::Full | Kind::TooLarge)
}

impl LeavingRecords {
    /// A batch that deletes the records, if they are as they were read.
    fn batch_without(&self, path: DevicePath<'_>) -> Result<Batch, Error> {
        let batch = Batch::new()
            .expect(self.summary.key.clone(), self.summary.version)
            .expect(self.device.key.clone(), self.device.version)
            .expect_absent(store_keys::leaving(path)?)
            .delete(self.device.key.clone())
            .delete(store_keys::alarm(path)?)
            .delete(store_keys::sent_downlinks(path)?);
        let parts = [
            (store_keys::frame_counters(path)?, &self.counters),
            (store_keys::nonces(path)?, &self.nonces),
            (store_keys::downlinks(path)?, &self.downlinks),
        ];
        Ok(parts.into_iter().fold(batch, |batch, (key, part)| batch.expect_entry(&key, part.as_ref()).delete(key)))
    }
}
