//! The time after which the devices of an application count as silent. It belongs to its settings.

use server::auth::{Caller, Purpose};
use types::{AppId, ApplicationRight, SilentAfter};

use super::{Operations, actor};
use crate::Error;

impl Operations {
    /// Returns the time; none if devices never count as silent.
    pub(crate) async fn get_silent_after(&self, caller: Caller, app_id: &AppId) -> Result<Option<SilentAfter>, Error> {
        self.access.allow(caller, app_id, &[ApplicationRight::Settings], Purpose::Read).await?;
        Ok(self.applications.summary(app_id).await?.silent_after)
    }

    /// Sets the time.
    pub(crate) async fn set_silent_after(
        &self,
        caller: Caller,
        app_id: &AppId,
        after: Option<SilentAfter>,
    ) -> Result<(), Error> {
        let claims = self.access.allow(caller, app_id, &[ApplicationRight::Settings], Purpose::Change).await?;
        self.applications.check_registered(app_id).await?;
        let shown = after.map_or_else(|| "off".to_owned(), |after| after.to_string());
        let change = self.audit.change("silence set", &actor(&claims), &format!("{app_id} {shown}"))?;
        change.run(self.applications.set_silent_after(app_id, after)).await
    }
}
