//! Filters of messages: what a form says, as a query and as the parameters of links.

use std::time::Duration;

use api::history::Query;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use types::{AppId, Timestamp};

use crate::{Error, Result, form::drafts::Fields};

/// Number of messages on a page.
pub(crate) const PAGE: u32 = 50;
/// The names of the parameters, in the order of the form.
const NAMES: [&str; 10] = ["device", "since", "until", "kind", "port", "failed", "text", "field", "version", CHANGES];
/// The parameter that adds events of devices that were created, changed or deleted. A change of many devices has as
/// many, among which nobody would find a message.
pub(crate) const CHANGES: &str = "changes";
/// The parameter with which a page continues the one before.
const BEFORE: &str = "before";

/// Filter of messages, as somebody wrote it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Filter {
    fields: Fields,
}

impl Filter {
    /// Keeps the parameters that are known and not empty.
    pub(crate) fn new(fields: Fields) -> Self {
        let is_known = |name: &str| NAMES.contains(&name) || name == BEFORE;
        let fields = fields.into_iter().map(|(name, value)| (name, value.trim().to_owned()));
        Self { fields: fields.filter(|(name, value)| is_known(name) && !value.is_empty()).collect() }
    }

    /// The value of a parameter; empty if it is not given.
    pub(crate) fn value(&self, name: &str) -> &str {
        self.fields.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value)
    }

    /// Returns true if the filter leaves anything out.
    pub(crate) fn is_set(&self) -> bool {
        self.fields.iter().any(|(name, _)| name != BEFORE && name != CHANGES)
    }

    /// Returns true if a field is set that the form does not show at once.
    pub(crate) fn has_more(&self) -> bool {
        ["since", "until", "field", "kind", "port", "version"].iter().any(|name| !self.value(name).is_empty())
    }

    /// Returns true if events of devices that were created, changed or deleted are wanted, or a kind that may be one.
    pub(crate) fn has_changes(&self) -> bool {
        !self.value(CHANGES).is_empty() || !self.value("kind").is_empty()
    }

    /// Returns true if the page begins with the newest messages.
    pub(crate) fn is_first_page(&self) -> bool {
        self.value(BEFORE).is_empty()
    }

    /// The parameters of a link to the page that begins at `before`.
    pub(crate) fn continued(&self, before: &str) -> String {
        let kept = self.fields.iter().filter(|(name, _)| name != BEFORE);
        let kept = kept.map(|(name, value)| (name.as_str(), value.as_str()));
        parameters(kept.chain((!before.is_empty()).then_some((BEFORE, before))))
    }

    /// The query, for the handler.
    pub(crate) fn query(&self, app_id: &AppId, now: Timestamp) -> Result<Query> {
        Ok(Query {
            app_id: app_id.to_string(),
            dev_id: self.value("device").to_owned(),
            since: self.time("since", now)?,
            until: self.time("until", now)?,
            kind: self.value("kind").to_owned(),
            port: self.number("port")?,
            failed: !self.value("failed").is_empty(),
            text: self.value("text").to_owned(),
            field: self.value("field").to_owned(),
            version: self.number("version")?.unwrap_or_default(),
            limit: PAGE,
            before: self.value(BEFORE).to_owned(),
            without_changes: !self.has_changes(),
        })
    }

    fn time(&self, name: &'static str, now: Timestamp) -> Result<Option<i64>> {
        Ok(time(name, self.value(name), now)?.map(Timestamp::as_nanos))
    }

    fn number(&self, name: &'static str) -> Result<Option<u32>> {
        let text = self.value(name);
        if text.is_empty() {
            return Ok(None);
        }
        text.parse().map(Some).map_err(|_| Error::Invalid { what: name, must: "must be a number".to_owned() })
    }
}

/// A time as somebody writes it; none if they wrote nothing.
pub(crate) fn time(name: &'static str, text: &str, now: Timestamp) -> Result<Option<Timestamp>> {
    if text.is_empty() {
        return Ok(None);
    }
    let time = ago(text).map(|ago| now.minus(ago)).or_else(|| text.parse().ok());
    let must = || "must be a time such as 2026-01-31T12:00:00Z, or how long ago: 90m, 2h, 7d".to_owned();
    time.map(Some).ok_or_else(|| Error::Invalid { what: name, must: must() })
}

/// Pairs as the query of a URL, without the question mark.
pub(crate) fn parameters<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    let encode = |text| utf8_percent_encode(text, NON_ALPHANUMERIC);
    let pairs = pairs.into_iter().map(|(name, value)| format!("{}={}", encode(name), encode(value)));
    pairs.collect::<Vec<_>>().join("&")
}

/// A duration such as `90m`.
fn ago(text: &str) -> Option<Duration> {
    let unit = text.chars().last()?;
    let seconds = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3600,
        'd' => 24 * 3600,
        _ => return None,
    };
    let number: u64 = text.strip_suffix(unit)?.parse().ok()?;
    Some(Duration::from_secs(number.checked_mul(seconds)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(pairs: &[(&str, &str)]) -> Filter {
        Filter::new(pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect())
    }

    #[test]
    fn a_filter_is_a_query() {
        let now = Timestamp::from_millis(7_200_000);
        let filter = filter(&[("device", " d1 "), ("since", "1h"), ("failed", "1"), ("port", "2"), ("other", "x")]);
        let query = filter.query(&"my-app".parse().unwrap(), now).unwrap();
        assert_eq!((query.dev_id.as_str(), query.since, query.until), ("d1", Some(3_600_000_000_000), None));
        assert!(query.failed && query.port == Some(2) && query.version == 0 && query.without_changes);
        assert_eq!(filter.continued("a&b"), "device=d1&since=1h&failed=1&port=2&before=a%26b");
    }

    #[test]
    fn changes_of_devices_are_left_out_unless_they_may_be_wanted() {
        for (pairs, is_without, leaves_out) in [
            (&[][..], true, false),
            (&[("changes", "1")][..], false, false),
            (&[("kind", "create")][..], false, true),
            (&[("device", "d1")][..], true, true),
        ] {
            let filter = filter(pairs);
            let query = filter.query(&"my-app".parse().unwrap(), Timestamp::from_millis(0)).unwrap();
            assert_eq!((query.without_changes, filter.is_set()), (is_without, leaves_out), "{pairs:?}");
        }
    }

    #[test]
    fn what_is_no_time_or_number_is_named() {
        for (name, value) in [("since", "yesterday"), ("until", "h"), ("port", "x"), ("version", "-1")] {
            let error = filter(&[(name, value)]).query(&"my-app".parse().unwrap(), Timestamp::from_millis(0));
            assert!(error.unwrap_err().to_string().starts_with(name), "{name}");
        }
    }
}
