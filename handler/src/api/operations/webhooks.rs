//! The webhooks of an application. Its messages leave through them, so they belong to its settings.

use outputs::{DeadLetter, Webhook};
use server::auth::{Caller, Purpose};
use types::{AppId, ApplicationRight, WebhookId};

use super::Operations;
use crate::Error;

/// Maximum number of dead letters in a response.
const PAGE_MAX: usize = 100;

impl Operations {
    pub(crate) async fn list_webhooks(
        &self,
        caller: Caller,
        app_id: &AppId,
    ) -> Result<Vec<(WebhookId, Webhook)>, Error> {
        self.allow_webhooks(caller, app_id, Purpose::Read).await?;
        Ok(self.webhooks.list(app_id).await?)
    }

    pub(crate) async fn get_webhook(&self, caller: Caller, app_id: &AppId, id: &WebhookId) -> Result<Webhook, Error> {
        self.allow_webhooks(caller, app_id, Purpose::Read).await?;
        Ok(self.webhooks.get(app_id, id).await?)
    }

    pub(crate) async fn set_webhook(
        &self,
        caller: Caller,
        app_id: &AppId,
        id: &WebhookId,
        webhook: Webhook,
    ) -> Result<(), Error> {
        self.allow_webhooks(caller, app_id, Purpose::Change).await?;
        Ok(self.webhooks.set(app_id, id, webhook).await?)
    }

    pub(crate) async fn delete_webhook(&self, caller: Caller, app_id: &AppId, id: &WebhookId) -> Result<(), Error> {
        self.allow_webhooks(caller, app_id, Purpose::Change).await?;
        Ok(self.webhooks.delete(app_id, id).await?)
    }

    /// Lists messages that a webhook did not take, and says how many there are. A `limit` of zero means as many as one
    /// response may have.
    pub(crate) async fn list_dead_letters(
        &self,
        caller: Caller,
        (app_id, id): (&AppId, &WebhookId),
        offset: usize,
        limit: usize,
    ) -> Result<(Vec<DeadLetter>, usize), Error> {
        let usage = caller.usage.clone();
        self.allow_webhooks(caller, app_id, Purpose::Read).await?;
        let limit = if limit == 0 { PAGE_MAX } else { limit.min(PAGE_MAX) };
        let (letters, total) = self.webhooks.dead_letters(app_id, id, offset, limit).await?;
        usage.add_entries(letters.len());
        Ok((letters, total))
    }

    /// Sends messages again, those with these ids or all.
    pub(crate) async fn resend_dead_letters(
        &self,
        caller: Caller,
        (app_id, id): (&AppId, &WebhookId),
        ids: &[String],
    ) -> Result<usize, Error> {
        self.allow_webhooks(caller, app_id, Purpose::Change).await?;
        Ok(self.webhooks.resend(app_id, id, Some(ids).filter(|ids| !ids.is_empty())).await?)
    }

    pub(crate) async fn delete_dead_letters(
        &self,
        caller: Caller,
        app_id: &AppId,
        id: &WebhookId,
    ) -> Result<(), Error> {
        self.allow_webhooks(caller, app_id, Purpose::Change).await?;
        Ok(self.webhooks.delete_dead_letters(app_id, id).await?)
    }

    async fn allow_webhooks(&self, caller: Caller, app_id: &AppId, purpose: Purpose) -> Result<(), Error> {
        self.access.allow(caller, app_id, &[ApplicationRight::Settings], purpose).await?;
        self.applications.check_registered(app_id).await
    }
}
