//! Sends a message with an HTTP POST request.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use async_trait::async_trait;
use link::Trust;
use reqwest::{
    RequestBuilder, Response, StatusCode, Url,
    header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER},
    redirect,
};
use server::ledger::Owner;
use types::{Clock, Secret};

use super::{
    Webhook, address,
    grants::Gate,
    names::Names,
    reuse::{self, Reuse},
    signature::Signer,
    template,
};
use crate::{
    Error, Settings,
    message::Outgoing,
    sender::{SendError, SendReceipt, Sender},
};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum number of bytes read of an answer, so that its connection can be used again.
const RESPONSE_BYTES_MAX: usize = 16 << 10;
/// Maximum number of characters of the answer in the reason of a failure.
const QUOTED_CHARS_MAX: usize = 200;

/// Sends the requests of all webhooks.
pub(crate) struct WebhookClient {
    /// Keeps connections, and does not.
    keeping: reqwest::Client,
    closing: reqwest::Client,
    reuse: Reuse,
    names: Arc<Names>,
    clock: Arc<dyn Clock>,
    allow_private: bool,
}

/// Sends to one webhook.
pub(crate) struct WebhookSender {
    client: Arc<WebhookClient>,
    url: String,
    /// The name in it; none if it has an address.
    host: Option<String>,
    headers: BTreeMap<String, Secret>,
    signer: Option<Signer>,
    gate: Gate,
}

impl WebhookClient {
    pub(crate) fn new(settings: &Settings, names: Arc<Names>, clock: Arc<dyn Clock>) -> Result<Self, Error> {
        let http = |connections_max| {
            let builder = reqwest::Client::builder()
                .user_agent(concat!("airlock/", env!("CARGO_PKG_VERSION")))
                .connect_timeout(CONNECT_TIMEOUT)
                .timeout(Duration::from_millis(settings.timeout_ms.max(1)))
                .pool_max_idle_per_host(connections_max)
                .pool_idle_timeout(reuse::IDLE_TIME)
                .tcp_nodelay(true)
                // A redirect could lead to an address that is not allowed.
                .redirect(redirect::Policy::none())
                // A proxy would resolve names itself.
                .no_proxy()
                .dns_resolver(names.clone())
                .tls_backend_preconfigured(Trust::System.tls().map_err(|error| Error::Start(error.to_string()))?);
            builder.build().map_err(|error| Error::Start(error.to_string()))
        };
        let (keeping, closing) = (http(reuse::CONNECTIONS_MAX)?, http(0)?);
        let (reuse, allow_private) = (Reuse::default(), settings.allow_private_addresses);
        Ok(Self { keeping, closing, reuse, names, clock, allow_private })
    }

    fn http(&self, owner: &Owner, url: &Url) -> &reqwest::Client {
        let receiver = url.origin().ascii_serialization();
        if self.reuse.may_keep(owner, &receiver) { &self.keeping } else { &self.closing }
    }

    pub(super) fn allows_private(&self) -> bool {
        self.allow_private
    }
}

impl WebhookSender {
    pub(super) fn new(webhook: &Webhook, client: Arc<WebhookClient>, gate: Gate) -> Result<Self, Error> {
        let signer = webhook.secret.as_ref().map(Signer::new).transpose()?;
        let url = Url::parse(&webhook.url).map_err(|error| Error::invalid("URL", error))?;
        let (url, host) = (webhook.url.clone(), url.domain().map(str::to_owned));
        Ok(Self { client, url, host, headers: webhook.headers.clone(), signer, gate })
    }

    fn request(&self, Outgoing { id, app_id, owner, message }: &Outgoing) -> Result<RequestBuilder, SendError> {
        let refused = |reason: &dyn std::fmt::Display| SendError::refused(reason.to_string());
        let url = Url::parse(&template::fill(&self.url, app_id, message)).map_err(|error| refused(&error))?;
        if !self.client.allow_private {
            address::check_host(&url).map_err(|error| refused(&error))?;
        }
        let (time, body) = (self.client.clock.now(), message.body.get());
        let mut request = self.client.http(owner, &url).post(url).header(CONTENT_TYPE, "application/json");
        for (name, value) in &self.headers {
            let value = HeaderValue::try_from(template::fill(value.expose(), app_id, message));
            let mut value = value.map_err(|error| refused(&error))?;
            value.set_sensitive(true);
            request = request.header(name, value);
        }
        request = request
            .header("airlock-application", app_id.as_str())
            .header("airlock-event", &message.event)
            .header("webhook-id", id)
            .header("webhook-timestamp", time.as_secs());
        if let Some(dev_id) = &message.dev_id {
            request = request.header("airlock-device", dev_id.as_str());
        }
        if let Some(signer) = &self.signer {
            request = request.header("webhook-signature", signer.sign(id, time, body));
        }
        Ok(request.body(body.to_owned()))
    }
}

#[async_trait]
impl Sender for WebhookSender {
    /// Waits while the user who set the webhook may not read its messages. They stay in the queue.
    async fn ready(&self, owner: &Owner) {
        self.gate.opened().await;
        if let Some(host) = &self.host {
            self.client.names.prepare(owner, host).await;
        }
    }

    async fn send(&self, message: &Outgoing) -> Result<SendReceipt, SendError> {
        if let Some(failure) = self.host.as_ref().and_then(|host| self.client.names.failure(host)) {
            return Err(failure);
        }
        let response = self.request(message)?.send().await.map_err(|error| failed(&error))?;
        let (code, wait) = (response.status(), wait(&response));
        let (status, text) = (Some(code.as_u16()), read(response).await);
        match code {
            code if code.is_success() => Ok(SendReceipt { status }),
            StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS => {
                Err(SendError::Failed { reason: reason(code, &text), status, wait })
            }
            code if code.is_server_error() => Err(SendError::Failed { reason: reason(code, &text), status, wait }),
            // Redirects too: they are not followed.
            code => Err(SendError::Refused { reason: reason(code, &text), status }),
        }
    }
}

fn failed(error: &reqwest::Error) -> SendError {
    if error.is_connect() {
        return SendError::Unreachable("the receiver cannot be reached".to_owned());
    }
    let reason = if error.is_timeout() { "the receiver did not answer in time" } else { "the connection broke" };
    SendError::Failed { reason: reason.to_owned(), status: None, wait: None }
}

/// The seconds of a `Retry-After` header. Its other form, a date, counts as none.
fn wait(response: &Response) -> Option<Duration> {
    let seconds = response.headers().get(RETRY_AFTER)?.to_str().ok()?.parse().ok()?;
    Some(Duration::from_secs(seconds))
}

/// Reads the body up to the limit. The status has been received, so what is missing does not matter.
async fn read(mut response: Response) -> Vec<u8> {
    let mut body = Vec::new();
    while let Ok(Some(chunk)) = response.chunk().await {
        body.extend_from_slice(&chunk);
        if body.len() > RESPONSE_BYTES_MAX {
            break;
        }
    }
    body
}

fn reason(status: StatusCode, body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let text: String = text.chars().filter(|char| !char.is_control()).take(QUOTED_CHARS_MAX).collect();
    match text.trim() {
        "" => status.to_string(),
        text => format!("{status}: {text}"),
    }
}
