//! Changes an attribute of a device, and nothing else: what is counted meanwhile stays.

use std::collections::BTreeMap;

use store::{Batch, Commit};
use types::DevicePath;

use super::{CHANGE_ATTEMPTS_MAX, Devices};
use crate::{
    Error,
    registry::{
        application::store_keys,
        device::model::{Device, record},
    },
};

/// Sets or removes an attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AttributeChange {
    pub(crate) key: String,
    /// Its new value; none removes it.
    pub(crate) value: Option<String>,
}

/// A device before and after a change.
pub(crate) struct ChangedAttributes {
    pub(crate) before: Device,
    pub(crate) after: Device,
}

impl AttributeChange {
    fn apply(&self, attributes: &mut BTreeMap<String, String>) {
        match &self.value {
            Some(value) => _ = attributes.insert(self.key.clone(), value.clone()),
            None => _ = attributes.remove(&self.key),
        }
    }
}

impl Devices {
    /// Changes an attribute of a device; none if it is so already. [`Error::NotFound`] if the device or its application
    /// does not exist, [`Error::Invalid`] if the attributes break a rule.
    pub(crate) async fn change_attribute(
        &self,
        path: DevicePath<'_>,
        change: &AttributeChange,
    ) -> Result<Option<ChangedAttributes>, Error> {
        let attempt = || self.try_change_attribute(path, change);
        let changed = store::retry(CHANGE_ATTEMPTS_MAX, attempt).await?;
        changed.ok_or_else(|| Error::device_conflict(path))
    }

    /// The outer none if something that was read has changed in between.
    async fn try_change_attribute(
        &self,
        path: DevicePath<'_>,
        change: &AttributeChange,
    ) -> Result<Option<Option<ChangedAttributes>>, Error> {
        let keys = [store_keys::summary(path.app_id)?, store_keys::device(path)?];
        let [application, stored] = self.store.get_array(&keys).await?;
        let application = application.ok_or_else(|| Error::application_not_found(path.app_id))?;
        let Some(stored) = stored else { return Err(self.absent(path).await) };
        let before = record::read(&self.sealer, &stored.value)?;
        let mut after = before.clone();
        change.apply(&mut after.attributes);
        if after.attributes == before.attributes {
            return Ok(Some(None));
        }
        after.check()?;
        let batch = Batch::new()
            .expect(application.key.clone(), application.version)
            .expect(stored.key.clone(), stored.version);
        let batch = self.with_look(batch, &application.value, &before, &after)?;
        let batch = batch.put(stored.key, record::write(&self.sealer, &after)?).growing();
        let is_done = self.store.commit(batch).await? == Commit::Done;
        Ok(is_done.then_some(Some(ChangedAttributes { before, after })))
    }
}
