//! A client of the time after which the devices of an application count as silent, which a handler serves over HTTP only.

use api::{discovery::Announcement, rest::handler::Silence};
use reqwest::{Method, RequestBuilder, header::AUTHORIZATION};
use types::{AppId, Credential, SilentAfter};

use crate::{Result, transport::http::Http};

/// A client of that time of one application. Limits and retries are those of `HandlerClient`.
#[derive(Clone, Debug)]
pub struct SilenceClient {
    http: Http,
    app_id: AppId,
    credential: Credential,
}

impl SilenceClient {
    /// Creates a client for an announced handler, trusting the announced certificate. The first call connects.
    pub fn connect(announcement: &Announcement, app_id: AppId, credential: Credential) -> Result<Self> {
        Ok(Self { http: Http::of_handler(announcement)?, app_id, credential })
    }

    /// Returns the time; none if devices never count as silent.
    pub async fn get(&self) -> Result<Option<SilentAfter>> {
        let silence: Silence = self.http.json(self.request(Method::GET)).await?;
        match silence.silent_after_s {
            0 => Ok(None),
            seconds => SilentAfter::try_from(seconds).map(Some).map_err(|error| self.http.unreadable(error)),
        }
    }

    /// Sets the time; none for never.
    pub async fn set(&self, after: Option<SilentAfter>) -> Result<()> {
        let silence = Silence { silent_after_s: after.map_or(0, SilentAfter::as_secs) };
        self.http.done(self.request(Method::PUT).json(&silence)).await
    }

    fn request(&self, method: Method) -> RequestBuilder {
        let path = ["applications", self.app_id.as_str(), "silence"];
        self.http.request(method, &path).header(AUTHORIZATION, self.credential.to_header())
    }
}
