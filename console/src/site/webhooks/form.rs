//! The form of a new webhook.

use api::rest::handler::NewWebhook;
use types::{Secret, WebhookId};

use crate::{
    Error, Result,
    form::webhook::{events, header_lines, template::WebhookTemplate},
    site::viewer::Sent,
};

/// The form, with what was entered.
#[derive(Clone, Debug, Default)]
pub(super) struct WebhookForm {
    pub(super) id: String,
    pub(super) url: String,
    /// Separated by spaces or commas; all if there are none.
    pub(super) events: String,
    /// One `Name: value` per line. No page has them.
    headers: Secret,
    /// No page has it.
    secret: Secret,
}

impl From<WebhookTemplate> for WebhookForm {
    fn from(WebhookTemplate { name, url, events, .. }: WebhookTemplate) -> Self {
        Self { id: name.to_owned(), url: url.to_owned(), events: events.to_owned(), ..Self::default() }
    }
}

impl WebhookForm {
    pub(super) fn of(sent: &Sent) -> Self {
        let text = |name: &str| sent.value(name).trim().to_owned();
        let (id, url, events) = (text("id"), text("url"), text("events"));
        Self { id, url, events, headers: Secret::new(text("headers")), secret: Secret::new(text("secret")) }
    }

    /// The webhook. The handler checks the rest.
    pub(super) fn webhook(&self) -> Result<(WebhookId, NewWebhook)> {
        let must = || "must have 2 to 36 lowercase letters, digits, dashes or underscores".to_owned();
        let id = self.id.parse().map_err(|_| Error::Invalid { what: "id", must: must() })?;
        let headers = header_lines(&self.headers)?;
        let secret = Some(self.secret.clone()).filter(|secret| !secret.expose().is_empty());
        Ok((id, NewWebhook { url: self.url.clone(), events: events(&self.events), headers, secret }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_is_a_webhook() {
        let form = WebhookForm {
            id: "my-hook".into(),
            url: "https://example.com".into(),
            events: "up, down/acks".into(),
            headers: Secret::new("Authorization: Bearer a:b\r\n\r\nx-y:z"),
            secret: Secret::default(),
        };
        let (id, webhook) = form.webhook().unwrap();
        assert_eq!((id.as_str(), webhook.url.as_str()), ("my-hook", "https://example.com"));
        assert_eq!(webhook.events, ["up", "down/acks"]);
        let headers: Vec<_> = webhook.headers.iter().map(|(name, value)| (name.as_str(), value.expose())).collect();
        assert_eq!(headers, [("Authorization", "Bearer a:b"), ("x-y", "z")]);
        assert!(webhook.secret.is_none());
        assert!(WebhookForm { headers: Secret::new("no"), ..form.clone() }.webhook().is_err());
        assert!(WebhookForm { id: "NO".into(), ..form }.webhook().is_err());
    }
}
