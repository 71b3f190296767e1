//! Changing an attribute of many devices at once.

use std::sync::Arc;

use futures::{StreamExt, stream};
use server::auth::{Caller, Purpose};
use types::{AppId, ApplicationRight, DevId, DevicePath};

use super::{Operations, uncancellable::uncancellable};
use crate::{
    Error,
    registry::device::{AttributeChange, Change, ChangedAttributes},
};

/// Maximum number of devices of a call.
pub(crate) const CHANGED_MAX: usize = 500;
/// Number of devices that are changed at the same time.
const PARALLEL: usize = 8;
/// Cost of a device, in entries of a list: about that of a request that changes it alone.
const CHANGE_ENTRIES: usize = 10;

/// The outcome for a device: true if it was changed, false if it was so already.
pub(crate) type AttributeOutcome = (DevId, Result<bool, Error>);

impl Operations {
    /// Changes an attribute of devices, each by itself.
    pub(crate) async fn change_attribute(
        self: &Arc<Self>,
        caller: Caller,
        app_id: &AppId,
        (dev_ids, change): (Vec<DevId>, AttributeChange),
    ) -> Result<Vec<AttributeOutcome>, Error> {
        let (this, app_id, usage) = (self.clone(), app_id.clone(), caller.usage.clone());
        self.access.allow(caller, &app_id, &[ApplicationRight::Devices], Purpose::Change).await?;
        self.applications.check_registered(&app_id).await?;
        uncancellable(async move {
            usage.add_entries(dev_ids.len().saturating_mul(CHANGE_ENTRIES));
            let (this, app_id, change) = (&this, &app_id, &change);
            let outcomes = stream::iter(dev_ids).map(|dev_id| async move {
                let outcome = this.change_attribute_of(app_id, &dev_id, change).await;
                (dev_id, outcome)
            });
            Ok(outcomes.buffered(PARALLEL).collect().await)
        })
        .await
    }

    async fn change_attribute_of(
        &self,
        app_id: &AppId,
        dev_id: &DevId,
        change: &AttributeChange,
    ) -> Result<bool, Error> {
        let path = DevicePath { app_id, dev_id };
        let changed = self.devices.change_attribute(path, change).await?;
        let Some(ChangedAttributes { before, after }) = changed else { return Ok(false) };
        self.uplinks.last_heard.note_changed(path);
        let event = Change::Updated(Box::new(before)).event(&after, self.clock.now());
        self.publish(app_id.clone(), dev_id.clone(), event);
        Ok(true)
    }
}
