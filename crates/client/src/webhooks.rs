//! A client of the webhooks of an application, which a handler serves over HTTP only.

use api::{
    discovery::Announcement,
    rest::handler::{DeadLetterList, NewWebhook, Resend, Resent, Webhook, WebhookList},
};
use reqwest::{Method, RequestBuilder, header::AUTHORIZATION};
use types::{AppId, Credential, WebhookId};

use crate::{Result, http::Http};

/// A client of the webhooks of one application. Limits and retries are those of `HandlerClient`.
#[derive(Clone, Debug)]
pub struct WebhookClient {
    http: Http,
    app_id: AppId,
    credential: Credential,
}

impl WebhookClient {
    /// Creates a client for an announced handler, trusting the announced certificate. The first call connects.
    pub fn connect(announcement: &Announcement, app_id: AppId, credential: Credential) -> Result<Self> {
        Ok(Self { http: Http::of_handler(announcement)?, app_id, credential })
    }

    /// Lists the webhooks.
    pub async fn list(&self) -> Result<Vec<Webhook>> {
        let list: WebhookList = self.http.json(self.request(Method::GET, &[])).await?;
        Ok(list.webhooks)
    }

    /// Creates or replaces a webhook.
    pub async fn set(&self, id: &WebhookId, webhook: &NewWebhook) -> Result<Webhook> {
        self.http.json(self.request(Method::PUT, &[id.as_str()]).json(webhook)).await
    }

    /// Deletes a webhook, with what waits for it.
    pub async fn delete(&self, id: &WebhookId) -> Result<()> {
        self.http.done(self.request(Method::DELETE, &[id.as_str()])).await
    }

    /// The oldest messages that a webhook did not take, and how many there are.
    pub async fn dead_letters(&self, id: &WebhookId) -> Result<DeadLetterList> {
        self.http.json(self.request(Method::GET, &[id.as_str(), "dead-letters"])).await
    }

    /// Sends such messages again: those with these ids, or all if there are none. Returns how many.
    pub async fn resend(&self, id: &WebhookId, ids: Vec<String>) -> Result<usize> {
        let request = self.request(Method::POST, &[id.as_str(), "dead-letters", "resend"]);
        let resent: Resent = self.http.json(request.json(&Resend { ids })).await?;
        Ok(resent.resent)
    }

    fn request(&self, method: Method, below: &[&str]) -> RequestBuilder {
        let path = [&["applications", self.app_id.as_str(), "webhooks"], below].concat();
        self.http.request(method, &path).header(AUTHORIZATION, self.credential.to_header())
    }
}
