//! Moving devices to other applications.

use std::sync::Arc;

use server::{
    auth::{Caller, Purpose},
    status::ErrorChain,
};
use types::{AppId, ApplicationRight, Credential, DevicePath, Downlink, Kind, Kinded};

use super::{Operations, uncancellable::uncancellable};
use crate::{
    Error,
    downlink::Downlinks,
    output::Event,
    registry::device::{Change, Device, EndedMove, Move},
};

impl Operations {
    /// Moves a device to another application of this handler. Returns the number of downlinks that waited for it, and
    /// were dropped. Its messages stay where they were kept.
    pub(crate) async fn move_device(self: &Arc<Self>, caller: Caller, moving: Move) -> Result<usize, Error> {
        let (this, credential) = (self.clone(), caller.credential.clone());
        let (from, to) = (&moving.from.0, &moving.to.0);
        self.access.allow(caller.clone(), from, &[ApplicationRight::Devices], Purpose::Change).await?;
        moving.check()?;
        let allowed = self.access.allow(caller, to, &[ApplicationRight::Devices], Purpose::Change).await;
        allowed.map_err(|error| denied_there(error, to))?;
        for app_id in [from, to] {
            self.applications.check_registered(app_id).await?;
        }
        uncancellable(async move { this.move_allowed(credential, &moving).await }).await
    }

    async fn move_allowed(&self, credential: Option<Credential>, moving: &Move) -> Result<usize, Error> {
        let permits = self.permits(credential, moving).await?;
        let moved = self.relocate_device(permits, moving).await.inspect_err(|error| {
            // It may be between the two applications.
            if matches!(error.kind(), Kind::Unavailable | Kind::Internal | Kind::Conflict) {
                self.applications.note_interruption();
            }
        })?;
        self.note_moved(moving);
        let dropped = Downlinks::dropped(moved.downlinks.as_deref())?;
        let count = dropped.len();
        if moved.is_ended_here {
            self.report_moved(moving, &moved.device, dropped);
        }
        Ok(count)
    }

    /// Tells both applications of a move that this process has ended.
    fn report_moved(&self, moving: &Move, device: &Device, dropped: Vec<Downlink>) {
        let Move { from: (app_id, dev_id), to: (to, to_dev_id) } = moving;
        self.publish(app_id.clone(), dev_id.clone(), Event::Delete);
        let created = Change::Created.event(device, self.clock.now());
        self.publish(to.clone(), to_dev_id.clone(), created);
        self.downlinks.report_moved(DevicePath { app_id, dev_id }, dropped);
    }

    /// Completes the moves that were interrupted. One that fails does not hold up the others; the first error is
    /// returned.
    pub(super) async fn resume_moves(&self) -> Result<(), Error> {
        let (mut last, mut result) = (None, Ok(()));
        loop {
            let moves = self.devices.moves(last.as_ref()).await?;
            for moving in &moves {
                result = result.and(self.resume_move(moving).await);
            }
            last = moves.into_iter().last();
            if last.is_none() {
                return result;
            }
        }
    }

    async fn resume_move(&self, moving: &Move) -> Result<(), Error> {
        let Move { from: (app_id, dev_id), to: (to, _) } = moving;
        match self.devices.complete_move(moving).await {
            Ok(Some(EndedMove { device, downlinks })) => {
                self.note_moved(moving);
                tracing::info!(%app_id, %dev_id, %to, "completed the move of a device");
                self.report_moved(moving, &device, Downlinks::dropped(downlinks.as_deref())?);
            }
            Ok(None) => {}
            Err(error) if matches!(error.kind(), Kind::NotFound | Kind::AlreadyExists) => {
                self.note_moved(moving);
                let error = ErrorChain(&error);
                tracing::warn!(%app_id, %dev_id, %to, %error, "brought a device back that cannot be moved");
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Has the alarm of a device looked at, wherever it is now.
    fn note_moved(&self, Move { from, to }: &Move) {
        for ids in [from, to] {
            self.uplinks.last_heard.note_changed(ids.into());
        }
    }
}

/// The error for a caller that has no rights to the new application, which the access key of another one never has.
fn denied_there(error: Error, app_id: &AppId) -> Error {
    match error.kind() {
        Kind::Unauthenticated => {
            Error::Denied { right: ApplicationRight::Devices.as_str().to_owned(), app_id: app_id.clone() }
        }
        _ => error,
    }
}
