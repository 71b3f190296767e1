//! A client of the webhooks of an application, which a handler serves over HTTP only.

use std::time::Duration;

use api::{
    discovery::Announcement,
    rest::handler::{
        DeadLetterList, NewWebhook, RecentDeliveryList, Resend, Resent, Webhook, WebhookAnswer, WebhookChange,
        WebhookList,
    },
};
use reqwest::{Method, RequestBuilder, header::AUTHORIZATION};
use types::{AppId, Credential, WebhookId};

use crate::{Result, handler::Page, transport::http::Http};

/// Maximum duration of a test. With the handler's usual settings, waiting for a turn and one attempt take less.
const TEST_TIMEOUT: Duration = Duration::from_secs(30);

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

    /// Gets a webhook, without its secrets.
    pub async fn get(&self, id: &WebhookId) -> Result<Webhook> {
        self.http.json(self.request(Method::GET, &[id.as_str()])).await
    }

    /// Creates or replaces a webhook.
    pub async fn set(&self, id: &WebhookId, webhook: &NewWebhook) -> Result<Webhook> {
        self.http.json(self.request(Method::PUT, &[id.as_str()]).json(webhook)).await
    }

    /// Changes a webhook; what the change leaves out stays.
    pub async fn update(&self, id: &WebhookId, change: &WebhookChange) -> Result<Webhook> {
        self.http.json(self.request(Method::PATCH, &[id.as_str()]).json(change)).await
    }

    /// Deletes a webhook, with the messages that wait for it.
    pub async fn delete(&self, id: &WebhookId) -> Result<()> {
        self.http.done(self.request(Method::DELETE, &[id.as_str()])).await
    }

    /// Sends a sample message to a webhook, and returns its answer.
    pub async fn test(&self, id: &WebhookId) -> Result<WebhookAnswer> {
        let request = self.request(Method::POST, &[id.as_str(), "test"]);
        self.http.json(request.timeout(TEST_TIMEOUT)).await
    }

    /// Returns what a webhook took, or did not take in the end, as far as the handler that delivers remembers it, the
    /// newest first, and the oldest messages that wait for it.
    pub async fn deliveries(&self, id: &WebhookId) -> Result<RecentDeliveryList> {
        self.http.json(self.request(Method::GET, &[id.as_str(), "deliveries"])).await
    }

    /// Returns messages that a webhook did not take, the oldest first, and the number of all of them.
    pub async fn dead_letters(&self, id: &WebhookId, page: Page) -> Result<DeadLetterList> {
        let mut url = self.http.url(&self.path(&[id.as_str(), "dead-letters"]));
        let numbers = [("limit", page.limit), ("offset", page.offset)];
        url.query_pairs_mut().extend_pairs(numbers.map(|(name, number)| (name, number.to_string())));
        let request = self.http.request_to(Method::GET, url);
        self.http.json(request.header(AUTHORIZATION, self.credential.to_header())).await
    }

    /// Deletes the messages that a webhook did not take.
    pub async fn delete_dead_letters(&self, id: &WebhookId) -> Result<()> {
        self.http.done(self.request(Method::DELETE, &[id.as_str(), "dead-letters"])).await
    }

    /// Sends such messages again: those with these ids, or all if there are none. Returns their number.
    pub async fn resend(&self, id: &WebhookId, ids: Vec<String>) -> Result<usize> {
        let request = self.request(Method::POST, &[id.as_str(), "dead-letters", "resend"]);
        let resent: Resent = self.http.json(request.json(&Resend { ids })).await?;
        Ok(resent.resent)
    }

    fn request(&self, method: Method, below: &[&str]) -> RequestBuilder {
        self.http.request(method, &self.path(below)).header(AUTHORIZATION, self.credential.to_header())
    }

    fn path<'a>(&'a self, below: &[&'a str]) -> Vec<&'a str> {
        [&["applications", self.app_id.as_str(), "webhooks"], below].concat()
    }
}
