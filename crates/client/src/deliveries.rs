//! A client that asks what became of messages at the outputs, which a handler serves over HTTP only.

use api::{
    discovery::Announcement,
    rest::handler::{Delivery, DeliveryList},
};
use reqwest::{Method, header::AUTHORIZATION};
use types::{AppId, Credential};

use crate::{Result, transport::http::Http};

/// A client of the deliveries of one application. Limits and retries are those of `HandlerClient`.
#[derive(Clone, Debug)]
pub struct DeliveryClient {
    http: Http,
    app_id: AppId,
    credential: Credential,
}

impl DeliveryClient {
    /// Creates a client for an announced handler, trusting the announced certificate. The first call connects.
    pub fn connect(announcement: &Announcement, app_id: AppId, credential: Credential) -> Result<Self> {
        Ok(Self { http: Http::of_handler(announcement)?, app_id, credential })
    }

    /// Says what became of the message with this record at each receiver.
    pub async fn of(&self, record_id: &str) -> Result<Vec<Delivery>> {
        let path = ["applications", self.app_id.as_str(), "history", record_id, "deliveries"];
        let request = self.http.request(Method::GET, &path).header(AUTHORIZATION, self.credential.to_header());
        let list: DeliveryList = self.http.json(request).await?;
        Ok(list.deliveries)
    }
}
