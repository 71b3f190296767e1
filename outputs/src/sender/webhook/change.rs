//! Changes of a webhook: what they leave out stays as it is.

use std::collections::BTreeMap;

use types::{Change, Grant, Secret, WebhookId};

use super::{
    address,
    records::{Webhook, named_twice},
};
use crate::Error;

type Headers = BTreeMap<String, Secret>;

/// Changes of a webhook; the rest of it stays.
#[derive(Clone, Debug, Default)]
pub struct WebhookChange {
    /// The revision that it starts from; any if there is none.
    pub revision: Option<String>,
    /// URL of the receiver, which cannot be removed.
    pub url: Change<String>,
    /// Events that it gets; removed, it gets all.
    pub events: Change<Vec<String>>,
    /// Headers to set, and to remove if they have no value; removed, there are none at all.
    pub headers: Change<BTreeMap<String, Option<Secret>>>,
    /// The key that signs requests.
    pub secret: Change<Secret>,
    /// Grant of the user who changes it. It sends messages while they may read them.
    pub set_by: Grant,
}

impl WebhookChange {
    /// The webhook after the change. The values of headers stay with the server that they were for: whoever may change
    /// a webhook could otherwise have them sent to a server of their own, and so read what nobody is shown.
    pub(crate) fn apply(&self, id: &WebhookId, stored: Webhook) -> Result<Webhook, Error> {
        if self.revision.as_ref().is_some_and(|revision| *revision != stored.revision) {
            return Err(Error::Changed(id.to_string()));
        }
        let url = self.url.clone().apply(Some(stored.url.clone()));
        let url = url.ok_or_else(|| Error::invalid("URL", "a webhook must have one"))?;
        if let Change::Set(named) = &self.headers
            && let Some(name) = named_twice(named.keys())
        {
            return Err(Error::invalid("Headers", format_args!("`{name}` is named twice")));
        }
        let kept = self.kept_headers(stored.headers);
        if let (true, Some(name)) = (address::is_elsewhere(&stored.url, &url), kept.keys().next()) {
            let rule = "does not stay when messages go to another server: set its value again, or remove it";
            return Err(Error::invalid("Headers", format_args!("`{name}` {rule}")));
        }
        let events = self.events.clone().apply(Some(stored.events)).unwrap_or_default();
        let secret = self.secret.clone().apply(stored.secret);
        let headers = kept.into_iter().chain(self.set_headers()).collect();
        Ok(Webhook { url, events, headers, secret, set_by: self.set_by.clone(), revision: String::new() })
    }

    /// Those that are neither set nor removed, whatever the case of their names.
    fn kept_headers(&self, mut stored: Headers) -> Headers {
        match &self.headers {
            Change::Keep => {}
            Change::Remove => stored.clear(),
            Change::Set(named) => stored.retain(|name, _| !named.keys().any(|other| other.eq_ignore_ascii_case(name))),
        }
        stored
    }

    fn set_headers(&self) -> Headers {
        let Change::Set(named) = &self.headers else { return Headers::new() };
        named.iter().filter_map(|(name, value)| Some((name.clone(), value.clone()?))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored() -> Webhook {
        let headers =
            [("Authorization", "Bearer a"), ("X-Key", "b")].map(|(name, value)| (name.to_owned(), Secret::new(value)));
        Webhook {
            url: "https://example.com/a".to_owned(),
            events: vec!["up".to_owned()],
            headers: headers.into(),
            secret: Some(Secret::new("c")),
            revision: "1".to_owned(),
            ..Webhook::default()
        }
    }

    fn apply(change: &WebhookChange) -> Result<Webhook, Error> {
        change.apply(&"my-hook".parse().unwrap(), stored())
    }

    fn headers(named: &[(&str, Option<&str>)]) -> Change<BTreeMap<String, Option<Secret>>> {
        Change::Set(named.iter().map(|(name, value)| ((*name).to_owned(), value.map(Secret::new))).collect())
    }

    #[test]
    fn what_is_left_out_stays() {
        let same = apply(&WebhookChange::default()).unwrap();
        let was = stored();
        assert_eq!((same.url, same.events, same.headers, same.secret), (was.url, was.events, was.headers, was.secret));
    }

    #[test]
    fn headers_are_set_and_removed_by_name_in_any_case() {
        let change = WebhookChange {
            headers: headers(&[("x-key", Some("new")), ("authorization", None), ("gone", None)]),
            secret: Change::Remove,
            events: Change::Remove,
            ..WebhookChange::default()
        };
        let changed = apply(&change).unwrap();
        assert_eq!(changed.headers, [("x-key".to_owned(), Secret::new("new"))].into());
        assert!(changed.events.is_empty() && changed.secret.is_none());
        assert!(apply(&WebhookChange { headers: Change::Remove, ..change }).unwrap().headers.is_empty());
        assert!(apply(&WebhookChange { url: Change::Remove, ..WebhookChange::default() }).is_err());
        let twice = headers(&[("X-Key", Some("new")), ("x-key", None)]);
        let error = apply(&WebhookChange { headers: twice, ..WebhookChange::default() }).unwrap_err();
        assert!(error.to_string().contains("`x-key` is named twice"), "{error}");
    }

    #[test]
    fn headers_do_not_go_to_another_server() {
        let to = |url: &str| WebhookChange { url: Change::Set(url.to_owned()), ..WebhookChange::default() };
        assert!(apply(&to("https://example.com/b?event={event}")).is_ok());
        for url in ["https://example.org/a", "http://example.com/a", "https://example.com:8443/a"] {
            let error = apply(&to(url)).unwrap_err().to_string();
            assert!(error.contains("`Authorization` does not stay"), "{error}");
            let again = headers(&[("Authorization", Some("Bearer d")), ("X-Key", None)]);
            let changed = apply(&WebhookChange { headers: again, ..to(url) }).unwrap();
            assert_eq!((changed.headers.len(), changed.secret), (1, stored().secret));
        }
    }

    #[test]
    fn another_revision_is_a_conflict() {
        for (revision, is_right) in [(None, true), (Some("1"), true), (Some("2"), false), (Some(""), false)] {
            let change = WebhookChange { revision: revision.map(str::to_owned), ..WebhookChange::default() };
            assert_eq!(apply(&change).is_ok(), is_right, "{revision:?}");
        }
    }
}
