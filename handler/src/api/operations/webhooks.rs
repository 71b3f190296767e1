//! The webhooks of an application. They belong to its settings, and its messages leave through them: setting one, and
//! reading what it did not take, needs the right to read messages, too.

use outputs::{DeadLetters, Failing, FirstWaiting, RecentDelivery, Standing, Webhook, WebhookChange};
use server::auth::{Caller, Purpose};
use types::{AppId, ApplicationRight, Claims, Grant, WebhookId};

use super::{Operations, actor};
use crate::Error;

/// Maximum number of dead letters in a response.
const PAGE_MAX: usize = 100;
/// Maximum number of waiting messages in a response.
const WAITING_MAX: usize = 20;

#[derive(Clone, Debug)]
pub(crate) struct WebhookState {
    pub(crate) standing: Standing,
    /// Number of messages that wait for it.
    pub(crate) waiting: usize,
    /// Since when nothing gets through, if that is so.
    pub(crate) failing: Option<Failing>,
}

impl Operations {
    pub(crate) async fn list_webhooks(
        &self,
        caller: Caller,
        app_id: &AppId,
    ) -> Result<Vec<(WebhookId, Webhook, WebhookState)>, Error> {
        self.allow_webhooks(caller, app_id, Purpose::Read).await?;
        let mut all = Vec::new();
        for (id, webhook) in self.webhooks.list(app_id).await? {
            let state = self.webhook_state(app_id, &id, &webhook).await?;
            all.push((id, webhook, state));
        }
        Ok(all)
    }

    pub(crate) async fn get_webhook(
        &self,
        caller: Caller,
        app_id: &AppId,
        id: &WebhookId,
    ) -> Result<(Webhook, WebhookState), Error> {
        self.allow_webhooks(caller, app_id, Purpose::Read).await?;
        let webhook = self.webhooks.get(app_id, id).await?;
        let state = self.webhook_state(app_id, id, &webhook).await?;
        Ok((webhook, state))
    }

    async fn webhook_state(&self, app_id: &AppId, id: &WebhookId, webhook: &Webhook) -> Result<WebhookState, Error> {
        let standing = self.webhooks.standing(app_id, webhook).await;
        let failing = self.webhooks.failing(app_id, id);
        Ok(WebhookState { standing, waiting: self.webhooks.waiting(app_id, id).await?, failing })
    }

    /// Sends a sample message to a webhook. What is inside is why the receiver did not take it.
    pub(crate) async fn test_webhook(
        &self,
        caller: Caller,
        app_id: &AppId,
        id: &WebhookId,
    ) -> Result<Result<(), String>, Error> {
        let claims = self.allow_webhooks(caller, app_id, Purpose::Change).await?;
        let webhook = self.webhooks.get(app_id, id).await?;
        match self.webhooks.standing(app_id, &webhook).await {
            Standing::Holds => {}
            Standing::Withdrawn => {
                return Err(Error::invalid("Test", "the webhook is stopped: change it, or set it again, to go on"));
            }
            Standing::Unknown => return Err(Error::WebhookUnknown),
        }
        // So that nobody has this server send many requests to another one.
        let _running = self.webhook_tests.begin("a test of a webhook", app_id).await?;
        self.audit.note("webhook tested", &actor(&claims), &format_args!("{app_id}/{id}"));
        Ok(self.webhooks.send_sample(app_id, id).await?)
    }

    /// Creates or replaces a webhook. From then on it sends messages while the caller may read them.
    pub(crate) async fn set_webhook(
        &self,
        caller: Caller,
        app_id: &AppId,
        id: &WebhookId,
        webhook: Webhook,
    ) -> Result<(Webhook, WebhookState), Error> {
        let (claims, set_by) = self.allow_setting(caller, app_id).await?;
        let webhook = Webhook { set_by, ..webhook };
        let change = self.audit.change("webhook set", &actor(&claims), &format_args!("{app_id}/{id}"))?;
        let webhook = change.run(self.webhooks.set(app_id, id, webhook)).await?;
        Ok((webhook, self.state_when_set(app_id, id).await))
    }

    /// Changes a webhook. From then on it sends messages while the caller may read them.
    pub(crate) async fn update_webhook(
        &self,
        caller: Caller,
        app_id: &AppId,
        id: &WebhookId,
        change: WebhookChange,
    ) -> Result<(Webhook, WebhookState), Error> {
        let (claims, set_by) = self.allow_setting(caller, app_id).await?;
        let change = WebhookChange { set_by, ..change };
        let audited = self.audit.change("webhook changed", &actor(&claims), &format_args!("{app_id}/{id}"))?;
        let webhook = audited.run(self.webhooks.update(app_id, id, &change)).await?;
        Ok((webhook, self.state_when_set(app_id, id).await))
    }

    /// It is set, also if what waits for it cannot be counted now.
    async fn state_when_set(&self, app_id: &AppId, id: &WebhookId) -> WebhookState {
        let waiting = self.webhooks.waiting(app_id, id).await.unwrap_or_default();
        WebhookState { standing: Standing::Holds, waiting, failing: self.webhooks.failing(app_id, id) }
    }

    pub(crate) async fn delete_webhook(&self, caller: Caller, app_id: &AppId, id: &WebhookId) -> Result<(), Error> {
        let claims = self.allow_webhooks(caller, app_id, Purpose::Change).await?;
        let change = self.audit.change("webhook deleted", &actor(&claims), &format_args!("{app_id}/{id}"))?;
        Ok(change.run(self.webhooks.delete(app_id, id)).await?)
    }

    /// Lists messages that a webhook did not take, and says how many there are. A `limit` of zero means as many as one
    /// response may have.
    pub(crate) async fn list_dead_letters(
        &self,
        caller: Caller,
        (app_id, id): (&AppId, &WebhookId),
        offset: usize,
        limit: usize,
    ) -> Result<DeadLetters, Error> {
        let usage = caller.usage.clone();
        let claims = self.allow_webhooks(caller, app_id, Purpose::Read).await?;
        require_reading(&claims, app_id)?;
        let limit = if limit == 0 { PAGE_MAX } else { limit.min(PAGE_MAX) };
        let dead_letters = self.webhooks.dead_letters(app_id, id, offset, limit).await?;
        usage.add_entries(dead_letters.letters.len());
        Ok(dead_letters)
    }

    /// Lists what a webhook took, or did not take in the end, as far as this handler remembers it, and what it gets next.
    pub(crate) async fn list_webhook_deliveries(
        &self,
        caller: Caller,
        app_id: &AppId,
        id: &WebhookId,
    ) -> Result<(Vec<RecentDelivery>, FirstWaiting), Error> {
        let usage = caller.usage.clone();
        let claims = self.allow_webhooks(caller, app_id, Purpose::Read).await?;
        require_reading(&claims, app_id)?;
        let deliveries = self.webhooks.recent(app_id, id).await?;
        let waiting = self.webhooks.first_waiting(app_id, id, WAITING_MAX).await?;
        usage.add_entries(deliveries.len() + waiting.messages.len());
        Ok((deliveries, waiting))
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

    /// Allows callers to set webhooks that may read the messages, and returns the grant with which theirs act.
    async fn allow_setting(&self, caller: Caller, app_id: &AppId) -> Result<(Claims, Grant), Error> {
        let claims = self.allow_webhooks(caller, app_id, Purpose::Change).await?;
        require_reading(&claims, app_id)?;
        let set_by = Grant::of(&claims).ok_or(Error::WebhookCaller)?;
        Ok((claims, set_by))
    }

    async fn allow_webhooks(&self, caller: Caller, app_id: &AppId, purpose: Purpose) -> Result<Claims, Error> {
        let claims = self.access.allow(caller, app_id, &[ApplicationRight::Settings], purpose).await?;
        self.applications.check_registered(app_id).await?;
        Ok(claims)
    }
}

/// Refuses callers that may not read the messages of an application.
fn require_reading(claims: &Claims, app_id: &AppId) -> Result<(), Error> {
    let right = ApplicationRight::MessagesUpRead;
    match claims.allows(app_id, right) {
        true => Ok(()),
        false => Err(Error::Denied { right: right.as_str().to_owned(), app_id: app_id.clone() }),
    }
}
