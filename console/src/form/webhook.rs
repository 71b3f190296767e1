//! A webhook as the fields of a form, and what somebody else changed since the form was opened.

pub(crate) mod template;

use std::collections::BTreeMap;

use api::rest::handler::{Webhook, WebhookChange};
use serde::{Deserialize, Serialize};
use types::{Change, Secret};

use crate::{Error, Result, form::device::Difference};

/// Properties of a webhook on pages, by their names for people.
const SHOWN: [&str; 4] = ["Address", "Events", "Headers", "Signed"];

/// A webhook as it was when a form was opened. The form brings it back. Values of headers and the key are not in it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Base {
    revision: String,
    url: String,
    events: Vec<String>,
    pub(crate) header_names: Vec<String>,
    pub(crate) is_signed: bool,
}

/// The entry in a form.
#[derive(Clone, Debug, Default)]
pub(crate) struct WebhookEntry {
    pub(crate) url: String,
    /// Separated by spaces or commas; all if there are none.
    pub(crate) events: String,
    /// One `Name: value` per line. No page has them.
    headers: Secret,
    /// Names of headers whose box is ticked.
    pub(crate) removed: Vec<String>,
    /// No page has it.
    secret: Secret,
    pub(crate) removes_secret: bool,
}

impl Base {
    pub(crate) fn of(webhook: Webhook) -> Self {
        let Webhook { revision, url, events, header_names, is_signed, .. } = webhook;
        Self { revision, url, events, header_names, is_signed }
    }

    /// A base that cannot be read has a revision that no webhook has, so that nothing is replaced unseen.
    pub(crate) fn read(json: &str) -> Self {
        serde_json::from_str(json).unwrap_or_default()
    }

    pub(crate) fn json(&self) -> String {
        // Texts can always be written.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// The events as a form shows them.
    fn events(&self) -> String {
        self.events.join(" ")
    }

    /// Changes by somebody else until now: all that is not as the form wants it. What is loses nothing, and may be
    /// from this form, sent before without an answer. What is as it was when the form was opened counts, too: somebody
    /// else may have put it back since. Of values that no page has, only that they were set is known: nobody can say that
    /// those that were typed are the same.
    pub(crate) fn differences(&self, now: &Self, entry: &WebhookEntry) -> Vec<Difference> {
        if self.revision == now.revision {
            return Vec::new();
        }
        let (before, wanted) = (self.texts(), entry.wanted(self).texts());
        let now_texts = now.texts();
        let may_lose_values = before == now_texts || entry.sets_values();
        let all = SHOWN.into_iter().zip(before).zip(now_texts).zip(wanted).zip(entry.kept());
        let lost = all.filter(|(((_, now), wanted), _)| wanted != now);
        let shown = lost.map(|((((label, before), now), _), kept)| {
            let typed = kept.filter(|kept| *kept != before);
            Difference { label, before, now, typed }
        });
        let values = may_lose_values.then(|| {
            let [before, now] = ["as they were", "may have been set again"].map(str::to_owned);
            Difference { label: "Header values and key", before, now, typed: None }
        });
        shown.chain(values).collect()
    }

    /// Texts for people, in the order of [`SHOWN`].
    fn texts(&self) -> [String; 4] {
        let signed = if self.is_signed { "yes" } else { "no" };
        [self.url.clone(), shown(&self.events), names(&self.header_names), signed.to_owned()]
    }
}

impl WebhookEntry {
    /// The form of a webhook in which nobody has typed.
    pub(crate) fn untouched(base: &Base) -> Self {
        Self { url: base.url.clone(), events: base.events(), ..Self::default() }
    }

    /// The entry in a sent form, whose `value` is empty where nothing was typed.
    pub(crate) fn sent<'a>(value: impl Fn(&str) -> &'a str, removed: Vec<String>) -> Self {
        let text = |name: &str| value(name).trim().to_owned();
        Self {
            url: text("url"),
            events: text("events"),
            headers: Secret::new(text("headers")),
            removed,
            secret: Secret::new(text("secret")),
            removes_secret: !value("remove_secret").is_empty(),
        }
    }

    /// The typed texts; where nobody has typed, those of the webhook now.
    pub(crate) fn merge(self, before: &Base, now: &Base) -> Self {
        let url = if self.url == before.url { now.url.clone() } else { self.url };
        let events = if events(&self.events) == before.events { now.events() } else { self.events };
        Self { url, events, ..self }
    }

    /// The typed changes, and the webhook that they start from. The handler checks the rest.
    pub(crate) fn change(&self, base: &Base) -> Result<WebhookChange> {
        let events = events(&self.events);
        let events = match events.is_empty() {
            _ if events == base.events => Change::Keep,
            true => Change::Remove,
            false => Change::Set(events),
        };
        let url = if self.url == base.url { Change::Keep } else { Change::Set(self.url.clone()) };
        let secret = match (self.secret.expose(), self.removes_secret) {
            ("", false) => Change::Keep,
            ("", true) => Change::Remove,
            (_, false) => Change::Set(self.secret.clone()),
            (_, true) => {
                return Err(invalid("Secret", "must be empty to stop signing requests".to_owned()));
            }
        };
        Ok(WebhookChange { revision: Some(base.revision.clone()), url, events, headers: self.headers()?, secret })
    }

    /// Returns true if it sets values that no page has.
    fn sets_values(&self) -> bool {
        !self.headers.expose().is_empty() || !self.secret.expose().is_empty()
    }

    /// Entries that stay in the form when the page is shown again, as texts for people in the order of [`SHOWN`].
    fn kept(&self) -> [Option<String>; 4] {
        let removed = (!self.removed.is_empty()).then(|| format!("without {}", self.removed.join(", ")));
        let signed = self.removes_secret.then(|| "no".to_owned());
        [Some(self.url.clone()), Some(shown(&events(&self.events))), removed, signed]
    }

    /// The webhook that the form asks for, as far as pages show it.
    fn wanted(&self, base: &Base) -> Base {
        let set: Vec<_> = header_lines(&self.headers).unwrap_or_default().into_keys().collect();
        let is_named = |name: &String| self.removed.iter().chain(&set).any(|other| other.eq_ignore_ascii_case(name));
        let mut header_names: Vec<_> = base.header_names.iter().filter(|name| !is_named(name)).cloned().collect();
        header_names.extend(set);
        header_names.sort_unstable();
        Base {
            revision: base.revision.clone(),
            url: self.url.clone(),
            events: events(&self.events),
            header_names,
            is_signed: (base.is_signed || !self.secret.expose().is_empty()) && !self.removes_secret,
        }
    }

    fn headers(&self) -> Result<Change<BTreeMap<String, Option<Secret>>>> {
        let mut headers: BTreeMap<_, _> = self.removed.iter().map(|name| (name.clone(), None)).collect();
        for (name, value) in header_lines(&self.headers)? {
            if self.removed.iter().any(|removed| removed.eq_ignore_ascii_case(&name)) {
                return Err(invalid("Headers", format!("`{name}` must be either set or removed")));
            }
            headers.insert(name, Some(value));
        }
        Ok(if headers.is_empty() { Change::Keep } else { Change::Set(headers) })
    }
}

/// Events that are separated by spaces or commas.
pub(crate) fn events(text: &str) -> Vec<String> {
    text.split([' ', ',']).filter(|event| !event.is_empty()).map(str::to_owned).collect()
}

/// Headers, one on each line.
pub(crate) fn header_lines(lines: &Secret) -> Result<BTreeMap<String, Secret>> {
    let lines = lines.expose().lines().filter(|line| !line.trim().is_empty());
    let header = |line: &str| {
        let (name, value) = line.split_once(':')?;
        Some((name.trim().to_owned(), Secret::new(value.trim())))
    };
    let must = || "must be one on each line, such as Authorization: Bearer my-token".to_owned();
    lines.map(|line| header(line).ok_or_else(|| invalid("Headers", must()))).collect()
}

fn shown(events: &[String]) -> String {
    if events.is_empty() { "all".to_owned() } else { events.join(", ") }
}

fn names(names: &[String]) -> String {
    if names.is_empty() { "–".to_owned() } else { names.join(", ") }
}

fn invalid(what: &'static str, must: String) -> Error {
    Error::Invalid { what, must }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn base(revision: &str, url: &str) -> Base {
        let events = vec!["up".to_owned(), "down/acks".to_owned()];
        let (revision, url) = (revision.to_owned(), url.to_owned());
        Base { revision, url, events, header_names: vec!["X-Key".to_owned()], is_signed: true }
    }

    fn entry(fields: &[(&str, &str)], removed: &[&str]) -> WebhookEntry {
        let value = |name: &str| fields.iter().find(|(known, _)| *known == name).map_or("", |(_, value)| *value);
        WebhookEntry::sent(value, removed.iter().map(|name| (*name).to_owned()).collect())
    }

    #[test]
    fn only_what_was_typed_is_a_change() {
        let base = base("1", "https://example.com");
        let untouched = [("url", "https://example.com"), ("events", "up, down/acks")];
        let change = entry(&untouched, &[]).change(&base).unwrap();
        let json = serde_json::to_string(&change).unwrap();
        assert_eq!(json, r#"{"revision":"1"}"#);
        let typed = [("url", "https://example.org"), ("headers", "a: b"), ("remove_secret", "yes")];
        let change = entry(&typed, &["X-Key"]).change(&base).unwrap();
        let json = serde_json::to_string(&change).unwrap();
        let headers = r#""events":null,"headers":{"X-Key":null,"a":"b"},"secret":null"#;
        assert_eq!(json, format!(r#"{{"revision":"1","url":"https://example.org",{headers}}}"#));
        for (typed, removed) in [
            (&[("headers", "no")][..], &[][..]),
            (&[("headers", "x-key: a")], &["X-Key"]),
            (&[("secret", "a"), ("remove_secret", "yes")], &[]),
        ] {
            assert!(entry(typed, removed).change(&base).is_err(), "{typed:?}");
        }
    }

    #[test]
    fn what_somebody_else_changed_is_shown_and_what_was_typed_stays() {
        let (before, now) = (base("1", "https://a.example"), base("2", "https://b.example"));
        let typed = entry(&[("url", "https://c.example"), ("events", "up down/acks")], &[]);
        let [difference] = &before.differences(&now, &typed)[..] else { panic!("there is one") };
        assert_eq!((difference.label, difference.typed.as_deref()), ("Address", Some("https://c.example")));
        assert_eq!(typed.merge(&before, &now).url, "https://c.example");
        let untouched = entry(&[("url", "https://a.example"), ("events", "up")], &[]).merge(&before, &now);
        assert_eq!((untouched.url.as_str(), untouched.events.as_str()), ("https://b.example", "up"));
    }

    #[test]
    fn what_is_there_already_is_no_difference() {
        let before = base("1", "https://a.example");
        let (url, header_names) = ("https://b.example".to_owned(), Vec::new());
        let now = Base { revision: "2".to_owned(), url, header_names, is_signed: false, ..before.clone() };
        let form = [("url", "https://b.example"), ("events", "up down/acks")];
        let same = entry(&[&form[..], &[("remove_secret", "yes")]].concat(), &["X-Key"]);
        assert_eq!(before.differences(&now, &same), []);
        let labels =
            |entry: &WebhookEntry| before.differences(&now, entry).iter().map(|one| one.label).collect::<Vec<_>>();
        assert_eq!(labels(&entry(&form, &["X-Key"])), ["Signed"]);
        assert_eq!(labels(&entry(&form, &[])), ["Headers", "Signed"]);
        let changed = Base { events: vec!["up".to_owned()], ..now.clone() };
        let [difference] = &before.differences(&changed, &same)[..] else { panic!("there is one") };
        assert_eq!((difference.label, difference.typed.as_deref()), ("Events", None), "nobody typed them");
    }

    #[test]
    fn what_somebody_else_has_put_back_is_a_difference() {
        let before = base("1", "https://a.example");
        let form = [("url", "https://b.example"), ("events", "up"), ("remove_secret", "yes")];
        let sent = entry(&form, &["X-Key"]);
        let mine = Base { revision: "2".to_owned(), ..sent.wanted(&before) };
        assert_eq!(before.differences(&mine, &sent), [], "nobody has");
        let theirs = Base { revision: "3".to_owned(), ..mine };
        let put_back = [
            ("Address", "https://b.example", Base { url: before.url.clone(), ..theirs.clone() }),
            ("Events", "up", Base { events: before.events.clone(), ..theirs.clone() }),
            ("Headers", "without X-Key", Base { header_names: before.header_names.clone(), ..theirs.clone() }),
            ("Signed", "no", Base { is_signed: true, ..theirs }),
        ];
        for (label, typed, now) in put_back {
            let [difference] = &before.differences(&now, &sent)[..] else { panic!("there is one: {label}") };
            assert_eq!((difference.label, difference.typed.as_deref()), (label, Some(typed)));
        }
    }

    #[test]
    fn values_that_were_typed_replace_no_others_unseen() {
        let before = base("1", "https://a.example");
        let now = Base { revision: "2".to_owned(), url: "https://b.example".to_owned(), ..before.clone() };
        let form = [("url", "https://b.example"), ("events", "up down/acks")];
        for typed in [("headers", "X-Key: 1"), ("secret", "a")] {
            let sets = entry(&[&form[..], &[typed]].concat(), &[]);
            let [difference] = &before.differences(&now, &sets)[..] else { panic!("there is one: {typed:?}") };
            assert_eq!(difference.label, "Header values and key");
            assert_eq!(now.differences(&now, &sets), [], "a form that knows of them sets others: {typed:?}");
        }
    }

    #[test]
    fn values_that_no_page_has_are_a_difference_by_their_revision() {
        let (before, now) = (base("1", "https://a.example"), base("2", "https://a.example"));
        let untouched = WebhookEntry::untouched(&before);
        let [difference] = &before.differences(&now, &untouched)[..] else { panic!("there is one") };
        assert_eq!((difference.label, difference.typed.as_deref()), ("Header values and key", None));
        assert!(before.differences(&before, &untouched).is_empty());
        assert_eq!(Base::read(&before.json()), before);
        assert!(!Base::read("<").differences(&before, &untouched).is_empty(), "an unknown base replaces nothing");
    }
}
