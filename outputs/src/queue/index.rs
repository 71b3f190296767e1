//! The applications that may have messages in queues.

use std::sync::Arc;

use store::{Batch, Commit, Store, Version};
use types::{AppId, Clock, Timestamp};

use crate::{
    Error,
    destination::{self, last_level},
};

const READ_MAX: usize = 256;

/// Remembers applications.
pub(crate) struct Index {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Clock>,
}

/// An application that is remembered.
pub(crate) struct Indexed {
    pub(crate) app_id: AppId,
    /// Time when a message was last queued for it, to about a day; none if an earlier version stored it.
    pub(crate) queued: Option<Timestamp>,
    version: Version,
}

impl Index {
    /// Remembers that an application may have messages in queues.
    pub(crate) async fn put(&self, app_id: &AppId) -> Result<(), Error> {
        let now = self.clock.now().as_millis().to_string();
        // It expects nothing, so it cannot conflict.
        _ = self.store.commit(Batch::new().put(destination::index(app_id.as_str())?, now)).await?;
        Ok(())
    }

    /// Forgets an application, unless something was queued for it meanwhile.
    pub(crate) async fn forget(&self, indexed: &Indexed) -> Result<bool, Error> {
        let key = destination::index(indexed.app_id.as_str())?;
        Ok(self.store.commit(Batch::new().expect(key.clone(), indexed.version).delete(key)).await? == Commit::Done)
    }

    /// All applications.
    pub(crate) async fn all(&self) -> Result<Vec<Indexed>, Error> {
        let (prefix, mut after) = (destination::index("")?, None);
        let mut all = Vec::new();
        loop {
            let entries = self.store.list(&prefix, after.as_ref(), READ_MAX).await?;
            let Some(last) = entries.last() else { return Ok(all) };
            after = Some(last.key.clone());
            all.extend(entries.iter().filter_map(|entry| {
                let app_id = last_level(&entry.key).parse().ok()?;
                let millis = str::from_utf8(&entry.value).ok().and_then(|text| text.parse().ok());
                Some(Indexed { app_id, queued: millis.map(Timestamp::from_millis), version: entry.version })
            }));
        }
    }
}
