//! The second half of a move, from the commit that decided it. Any process may do it, also several at once.

use std::time::Duration;

use bytes::Bytes;
use server::status::ErrorChain;
use store::{Batch, Commit, Entry};
use types::{AppEui, AppId, DevEui, DevId, DevicePath, Kind, Kinded, Timestamp};

use super::{
    Reservation,
    in_flight::{self, Arriving, Leaving, Move, bytes},
};
use crate::{
    Error,
    registry::{
        application::{euis::Euis, store_keys},
        device::{
            devices::{CHANGE_ATTEMPTS_MAX, Devices},
            frame_counters::FrameCounters,
            model::{Device, record},
            sender::Sender,
        },
    },
};

/// Maximum number of moves read at once.
const READ_MAX: usize = 256;
/// Age at which a move that was noted and is not decided never will be.
const ABANDONED_AGE: Duration = Duration::from_secs(3600);

/// A move that this process has ended. No other one reports it.
#[derive(Debug)]
pub struct EndedMove {
    /// The device in its new application, without its keys and counters.
    pub device: Device,
    /// The record of the downlinks that waited for it. They were dropped.
    pub(crate) downlinks: Option<Bytes>,
}

/// The record of a device that leaves, and what it becomes.
struct LeavingDevice {
    entry: Entry,
    leaving: Leaving,
    /// The device in its new application, without its keys and counters.
    device: Device,
    euis: Option<Euis>,
    last_seen: Option<Timestamp>,
}

/// Results of withdrawing a reservation.
enum Withdrawal {
    Withdrawn,
    /// The device has it.
    Arrived,
    /// Others interfered.
    Changed,
}

impl Devices {
    /// Moves that were noted and have not ended, in order of their ids, after this one.
    pub async fn moves(&self, after: Option<&Move>) -> Result<Vec<Move>, Error> {
        let after = after.map(|after| store_keys::device_move(after.ids())).transpose()?;
        let noted = self.store.list(&store_keys::device_moves()?, after.as_ref(), READ_MAX).await?;
        let moving = |entry: &Entry| -> Result<Move, Error> {
            let [from, to] = store_keys::moved_ids_of(&entry.key)?;
            Ok(Move { from, to })
        };
        noted.iter().map(moving).collect()
    }

    /// Completes a move that was decided; none if there is none, or another process has ended it. The error that brought
    /// the device back to its old application.
    pub async fn complete_move(&self, moving: &Move) -> Result<Option<EndedMove>, Error> {
        let completed = store::retry(CHANGE_ATTEMPTS_MAX, || self.try_complete(moving)).await?;
        let back = completed.ok_or_else(|| Error::device_conflict((&moving.to).into()))?;
        back.transpose()
    }

    /// The outer option is none if others interfered, the inner one if nothing leaves.
    async fn try_complete(&self, moving: &Move) -> Result<Option<Option<Result<EndedMove, Error>>>, Error> {
        let Some(left) = self.left(moving).await? else {
            // If a process decides the move now after all, whoever completes it makes the reservation once more.
            self.release_reservation(moving, None).await?;
            self.adopt_arrived(moving).await?;
            self.forget_move(moving).await?;
            return Ok(Some(None));
        };
        let Some(outcome) = self.try_settle(moving, left).await? else { return Ok(None) };
        self.forget_move(moving).await?;
        Ok(Some(Some(outcome)))
    }

    /// Brings a device that leaves to where it is to be; none if others interfered, or it is to go back from now on.
    async fn try_settle(&self, moving: &Move, left: LeavingDevice) -> Result<Option<Result<EndedMove, Error>>, Error> {
        if left.leaving.goes_back {
            return self.try_return(moving, &left).await;
        }
        match self.try_arrive(moving, &left).await {
            Ok(true) => self.try_end(moving, &left).await,
            Ok(false) => Ok(None),
            Err(error) if matches!(error.kind(), Kind::NotFound | Kind::AlreadyExists) => {
                self.turn_back(left).await?;
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// The device that leaves with this move; none if nothing does.
    async fn left(&self, moving: &Move) -> Result<Option<LeavingDevice>, Error> {
        let [entry] = self.store.get_array(&[store_keys::leaving((&moving.from).into())?]).await?;
        let Some(entry) = entry else { return Ok(None) };
        let leaving: Leaving = serde_json::from_slice(&entry.value)?;
        if leaving.to != moving.to {
            return Ok(None);
        }
        let device = record::read_without_keys(&leaving.device)?;
        let counters = leaving.counters.as_ref().map(|counters| serde_json::from_str::<FrameCounters>(counters.get()));
        let nanos = counters.transpose()?.map_or(device.lorawan.last_seen, |counters| counters.last_seen);
        let last_seen = Some(nanos).filter(|nanos| *nanos > 0).map(Timestamp::from_nanos);
        let euis = device.euis();
        Ok(Some(LeavingDevice { entry, leaving, device, euis, last_seen }))
    }

    /// Brings the device into its new application; false if others interfered.
    async fn try_arrive(&self, moving: &Move, left: &LeavingDevice) -> Result<bool, Error> {
        let (LeavingDevice { leaving, euis, .. }, path) = (left, DevicePath::from(&moving.to));
        // Once more, because it may have expired, and so that of several processes one goes on.
        match self.reserve_arrival(moving, leaving.at, *euis, None).await? {
            Reservation::Arrived => return Ok(true),
            Reservation::Changed => return Ok(false),
            Reservation::Reserved => {}
        }
        let arriving_key = store_keys::arriving(path)?;
        let [summary, arriving] =
            self.store.get_array(&[store_keys::summary(path.app_id)?, arriving_key.clone()]).await?;
        let (Some(summary), Some(arriving)) = (summary, arriving) else { return Ok(false) };
        let mut reservation = Arriving { from: moving.from.clone(), at: leaving.at, is_there: false, euis: *euis };
        // After it was read: before a device goes back, its reservation is withdrawn.
        if Arriving::read(Some(&arriving))?.as_ref() != Some(&reservation) || !self.still_leaves(left).await? {
            return Ok(false);
        }
        reservation.is_there = true;
        let batch = Batch::new()
            .expect(summary.key, summary.version)
            .expect(arriving_key.clone(), arriving.version)
            .put(arriving_key, serde_json::to_vec(&reservation)?);
        let batch = put_device(batch, path, left, leaving.device.clone())?;
        let batch = self.with_first_alarm(batch, &summary.value, &left.device, left.last_seen)?;
        Ok(self.store.commit(batch).await? == Commit::Done)
    }

    /// Decides that a device goes back: from now on, nobody begins to bring it into its new application. After a
    /// conflict, others have decided or ended the move.
    async fn turn_back(&self, LeavingDevice { entry, mut leaving, .. }: LeavingDevice) -> Result<(), Error> {
        leaving.goes_back = true;
        let batch = Batch::new().expect(entry.key.clone(), entry.version).put(entry.key, serde_json::to_vec(&leaving)?);
        _ = self.store.commit(batch).await?;
        Ok(())
    }

    /// Brings the device back into its old application, unless it has arrived after all; none if others interfered. The
    /// error says why it goes back.
    async fn try_return(&self, moving: &Move, left: &LeavingDevice) -> Result<Option<Result<EndedMove, Error>>, Error> {
        match self.withdraw_reservation(moving, left).await? {
            Withdrawal::Arrived => return self.try_end(moving, left).await,
            Withdrawal::Changed => return Ok(None),
            Withdrawal::Withdrawn => {}
        }
        let path = DevicePath::from(&moving.from);
        let mut device = record::read(&self.sealer, &left.leaving.device)?;
        (device.app_id, device.dev_id) = moving.from.clone();
        let batch = Batch::new().expect(left.entry.key.clone(), left.entry.version).delete(left.entry.key.clone());
        let batch = put_device(batch, path, left, record::write(&self.sealer, &device)?)?;
        let batch = match &left.leaving.downlinks {
            Some(downlinks) => batch.put(store_keys::downlinks(path)?, bytes(downlinks)),
            None => batch,
        };
        let [summary] = self.store.get_array(&[store_keys::summary(path.app_id)?]).await?;
        let batch = match summary {
            Some(summary) => self.with_first_alarm(batch, &summary.value, &device, left.last_seen)?,
            // It is being deleted, and the device with it.
            None => batch,
        };
        let (to_app_id, to_dev_id) = &moving.to;
        let [there] = self.store.get_array(&[store_keys::summary(to_app_id)?]).await?;
        let reason = match there {
            None => Error::application_not_found(to_app_id),
            Some(_) => Error::already_exists("Device", format_args!("{to_app_id}:{to_dev_id}")),
        };
        Ok((self.store.commit(batch).await? == Commit::Done).then_some(Err(reason)))
    }

    /// Withdraws the reservation in the new application for good, so that nobody who has begun to bring the device there
    /// can go on; [`Withdrawal::Arrived`] if somebody has.
    async fn withdraw_reservation(&self, moving: &Move, left: &LeavingDevice) -> Result<Withdrawal, Error> {
        let key = store_keys::arriving((&moving.to).into())?;
        let [entry] = self.store.get_array(std::array::from_ref(&key)).await?;
        let Some(arriving) = Arriving::read(entry.as_ref())? else { return Ok(Withdrawal::Withdrawn) };
        if !arriving.is_of(&moving.from, left.leaving.at) {
            return Ok(Withdrawal::Withdrawn);
        }
        if arriving.is_there {
            return Ok(Withdrawal::Arrived);
        }
        let batch = Batch::new().expect_entry(&key, entry.as_ref()).delete(key);
        let batch = self.without_claim(batch, moving, &arriving).await?;
        Ok(if self.store.commit(batch).await? == Commit::Done { Withdrawal::Withdrawn } else { Withdrawal::Changed })
    }

    /// Frees the id and the EUIs in the new application, if they are reserved for this move, which began at this time, if
    /// that is known.
    async fn release_reservation(&self, moving: &Move, at: Option<Timestamp>) -> Result<(), Error> {
        let [entry] = self.store.get_array(&[store_keys::arriving((&moving.to).into())?]).await?;
        let (Some(arriving), Some(entry)) = (Arriving::read(entry.as_ref())?, entry) else { return Ok(()) };
        if arriving.is_there || !arriving.is_of(&moving.from, at.unwrap_or(arriving.at)) {
            return Ok(());
        }
        let batch = Batch::new().expect(entry.key.clone(), entry.version).delete(entry.key);
        let batch = self.without_claim(batch, moving, &arriving).await?;
        // After a conflict, the device has come, or somebody else has released the reservation.
        _ = self.store.commit(batch).await?;
        Ok(())
    }

    /// Adds to a batch that ends a reservation that the EUIs are free, too. Another move of the device may claim them.
    async fn without_claim(&self, batch: Batch, moving: &Move, arriving: &Arriving) -> Result<Batch, Error> {
        let Some(euis) = arriving.euis else { return Ok(batch) };
        let [claim] = self.store.get_array(&[store_keys::claiming(&moving.to.0, euis)?]).await?;
        let claim = claim.filter(|claim| *claim.value == *moving.claim(arriving.at).as_bytes());
        Ok(match claim {
            Some(claim) => batch.expect(claim.key.clone(), claim.version).delete(claim.key),
            None => batch,
        })
    }

    /// Ends the move of a device that has arrived; none if others interfered.
    async fn try_end(&self, moving: &Move, left: &LeavingDevice) -> Result<Option<Result<EndedMove, Error>>, Error> {
        let is_done = self.hand_over(left, &moving.to.0).await? && self.forget_left(moving, left).await?;
        let downlinks = left.leaving.downlinks.as_ref().map(|downlinks| bytes(downlinks).into());
        Ok(is_done.then(|| Ok(EndedMove { device: left.device.clone(), downlinks })))
    }

    /// Makes the new application the holder of the EUIs of a device that has arrived. Until then, the claim of the old
    /// one keeps them from all others. False if the device does not leave any more, or others interfered.
    async fn hand_over(&self, left: &LeavingDevice, app_id: &AppId) -> Result<bool, Error> {
        let Some(key) = left.euis.map(store_keys::holder).transpose()? else { return Ok(true) };
        let [holder] = self.store.get_array(std::array::from_ref(&key)).await?;
        // After the holder was read: whoever moves the device on rewrites the holder.
        if !self.still_leaves(left).await? {
            return Ok(false);
        }
        if holder.as_ref().is_some_and(|holder| *holder.value == *app_id.as_str().as_bytes()) {
            return Ok(true);
        }
        let batch = Batch::new().expect_entry(&key, holder.as_ref()).put(key, app_id.as_str().as_bytes().to_vec());
        Ok(self.store.commit(batch).await? == Commit::Done)
    }

    /// Makes the new application the holder of the EUIs of a device that has arrived, if the old one was deleted before
    /// it handed them over.
    async fn adopt_arrived(&self, moving: &Move) -> Result<(), Error> {
        let app_id = &moving.to.0;
        let [device] = self.store.get_array(&[store_keys::device((&moving.to).into())?]).await?;
        let device = device.map(|device| record::read_without_keys(&device.value)).transpose()?;
        let Some(euis) = device.as_ref().and_then(Device::euis) else { return Ok(()) };
        let [holder] = self.store.get_array(&[store_keys::holder(euis)?]).await?;
        let holder = holder.filter(|holder| *holder.value == *moving.from.0.as_str().as_bytes());
        let Some(holder) = holder else { return Ok(()) };
        if !self.is_held_by_other(app_id, euis, &holder).await? {
            let batch = Batch::new().expect(holder.key.clone(), holder.version);
            // After a conflict, somebody else holds them.
            _ = self.store.commit(batch.put(holder.key, app_id.as_str().as_bytes().to_vec())).await?;
        }
        Ok(())
    }

    /// Returns true if a device leaves as it did when it was read.
    async fn still_leaves(&self, left: &LeavingDevice) -> Result<bool, Error> {
        let [still] = self.store.get_array(std::array::from_ref(&left.entry.key)).await?;
        Ok(still.is_some_and(|still| still.version == left.entry.version))
    }

    /// Succeeds unless the device that came under an id is still known to leave its old application; [`Error::Moving`]
    /// if it is. Until then, the record of its arrival stays.
    pub(super) async fn check_ended(&self, to: &(AppId, DevId), arriving: Option<&Arriving>) -> Result<(), Error> {
        let Some(Arriving { from, at, is_there: true, .. }) = arriving else { return Ok(()) };
        let left = self.left(&Move { from: from.clone(), to: to.clone() }).await?;
        match left.is_some_and(|left| left.leaving.at == *at) {
            true => Err(in_flight::error(to.into())),
            false => Ok(()),
        }
    }

    /// The old application forgets a device that has arrived.
    async fn forget_left(&self, moving: &Move, left: &LeavingDevice) -> Result<bool, Error> {
        let batch = Batch::new().expect(left.entry.key.clone(), left.entry.version).delete(left.entry.key.clone());
        let batch = match left.euis {
            Some(euis) => batch.delete(store_keys::claiming(&moving.from.0, euis)?),
            None => batch,
        };
        Ok(self.store.commit(batch).await? == Commit::Done)
    }

    /// Forgets a move that has ended, or that never was decided.
    async fn forget_move(&self, moving: &Move) -> Result<(), Error> {
        let [noted] = self.store.get_array(&[store_keys::device_move(moving.ids())?]).await?;
        let Some(noted) = noted else { return Ok(()) };
        let at: Timestamp = serde_json::from_slice(&noted.value)?;
        let [entry] = self.store.get_array(&[store_keys::arriving((&moving.to).into())?]).await?;
        // After both were read: whatever leaves now may be theirs, and has not ended.
        if self.left(moving).await?.is_some() {
            return Ok(());
        }
        let is_ours = |arriving: &Arriving| arriving.is_there && arriving.from == moving.from;
        let arrived = Arriving::read(entry.as_ref())?.filter(is_ours);
        // Otherwise, the note may be of a move that is still to be decided.
        let is_over =
            arrived.as_ref().is_some_and(|arrived| arrived.at == at) || self.clock.now().since(at) > ABANDONED_AGE;
        // The note last, because nothing else finds the other.
        for entry in entry.filter(|_| arrived.is_some()).into_iter().chain(is_over.then_some(noted)) {
            self.forget(entry).await?;
        }
        Ok(())
    }

    /// Frees the id and the EUIs in the new application at once, if nothing came. After a failure, they are free by
    /// themselves later.
    pub(super) async fn give_up_reservation(&self, moving: &Move, at: Timestamp) {
        if let Err(error) = self.release_reservation(moving, Some(at)).await {
            tracing::warn!(error = %ErrorChain(&error), "cannot give up the reservation of a device that does not move");
        }
    }

    /// The device of another application that has a pair of EUIs now, which its network may still name as it was before
    /// a move; [`Error::Moving`] while it moves. None if there is no such device.
    pub(crate) async fn sender_elsewhere(
        &self,
        euis: (AppEui, DevEui),
        path: DevicePath<'_>,
    ) -> Result<Option<Sender>, Error> {
        let euis = Euis { app_eui: euis.0, dev_eui: euis.1 };
        let [holder] = self.store.get_array(&[store_keys::holder(euis)?]).await?;
        let Some(holder) = holder else { return Ok(None) };
        let holder: AppId = String::from_utf8_lossy(&holder.value).parse()?;
        let keys = [store_keys::eui(&holder, euis)?, store_keys::claiming(&holder, euis)?];
        let [named, claiming] = self.store.get_array(&keys).await?;
        if claiming.as_ref().is_some_and(in_flight::is_moving) {
            return Err(in_flight::error(path));
        }
        let Some(named) = named.filter(|_| holder != *path.app_id) else { return Ok(None) };
        let named: DevId = String::from_utf8_lossy(&named.value).parse()?;
        self.sender(DevicePath { app_id: &holder, dev_id: &named }).await.map(Some)
    }
}

/// Adds to a batch that an application has the device, and its EUIs.
fn put_device(
    batch: Batch,
    path: DevicePath<'_>,
    LeavingDevice { leaving, euis, .. }: &LeavingDevice,
    device: Vec<u8>,
) -> Result<Batch, Error> {
    let key = store_keys::device(path)?;
    let mut batch = batch.expect_absent(key.clone()).put(key, device);
    if let Some(counters) = &leaving.counters {
        batch = batch.put(store_keys::frame_counters(path)?, bytes(counters));
    }
    if let Some(nonces) = &leaving.nonces {
        batch = batch.put(store_keys::nonces(path)?, bytes(nonces));
    }
    if let Some(euis) = euis {
        let key = store_keys::eui(path.app_id, *euis)?;
        batch = batch.delete(store_keys::claiming(path.app_id, *euis)?);
        batch = batch.expect_absent(key.clone()).put(key, path.dev_id.as_str().as_bytes().to_vec());
    }
    Ok(batch)
}
