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
    /// True if headers were typed, which have to be typed again.
    pub(super) lost_headers: bool,
    /// The same for the key.
    pub(super) lost_secret: bool,
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
        let (headers, secret) = (text("headers"), text("secret"));
        let (lost_headers, lost_secret) = (!headers.is_empty(), !secret.is_empty());
        Self { id, url, events, headers: Secret::new(headers), secret: Secret::new(secret), lost_headers, lost_secret }
    }

    /// The form as a draft. That lacks what is secret and was typed, and has these fields if they were empty.
    pub(super) fn of_draft(sent: &Sent) -> Self {
        let is_lost = |name: &str| sent.values(name).next().is_none();
        Self { lost_headers: is_lost("headers"), lost_secret: is_lost("secret"), ..Self::of(sent) }
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
            ..WebhookForm::default()
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

    #[test]
    fn only_what_was_typed_has_to_be_typed_again() {
        let sent = |fields: &[(&str, &str)]| {
            Sent(fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect())
        };
        let lost = |form: WebhookForm| (form.lost_headers, form.lost_secret);
        assert_eq!(lost(WebhookForm::of(&sent(&[("headers", " \r\n"), ("secret", "key")]))), (false, true));
        assert_eq!(lost(WebhookForm::of_draft(&sent(&[("url", "x"), ("headers", "")]))), (false, true));
        assert_eq!(lost(WebhookForm::from(WebhookTemplate::named("n8n").unwrap())), (false, false));
    }
}
