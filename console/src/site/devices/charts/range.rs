//! Devices, field and period of charts, and the links to others.

use std::time::Duration;

use types::{DevId, Timestamp};

use crate::{
    Error, Result,
    chart::DEVICES_MAX,
    form::drafts::Fields,
    messages::history::{parameters, time},
    site::{devices::chosen::each_once, viewer::Sent},
};

/// Maximum number of devices that links name: more than a chart has, so that one can take the place of another.
const LINKED_MAX: usize = 32;
/// The span that is shown by default.
const DAY: Duration = Duration::from_secs(24 * 3600);

/// The content of charts, as somebody wrote it and as it is.
#[derive(Clone, Debug)]
pub(super) struct Range {
    pub(super) since_text: String,
    pub(super) until_text: String,
    pub(super) field: String,
    pub(super) since: Timestamp,
    pub(super) until: Timestamp,
    /// The devices, each once.
    pub(super) devices: Vec<DevId>,
    /// Devices beyond those that a chart may have.
    pub(super) left_out: Vec<DevId>,
    /// All devices, if they are more than links name: then there is no chart.
    pub(super) too_many: Vec<DevId>,
    /// True if links name the devices, because the path does not.
    names_devices: bool,
}

impl Range {
    /// The range of the device that the path names, or else of those that the fields name.
    pub(super) fn of(fields: Fields, of_path: Option<DevId>, now: Timestamp) -> Result<Self> {
        let sent = Sent(fields);
        let text = |name: &str| sent.value(name).trim().to_owned();
        // Names of fields may begin and end with spaces.
        let (mut since_text, until_text, field) = (text("since"), text("until"), sent.value("field").to_owned());
        let until = time("until", &until_text, now)?.unwrap_or(now);
        if since_text.is_empty() && until_text.is_empty() {
            "24h".clone_into(&mut since_text);
        }
        let since = time("since", &since_text, now)?.unwrap_or_else(|| until.minus(DAY));
        if since >= until {
            return Err(Error::Invalid { what: "since", must: "must be before until".to_owned() });
        }
        let names_devices = of_path.is_none();
        let mut devices = of_path.map_or_else(|| chosen(&sent), |dev_id| Ok(vec![dev_id]))?;
        let too_many = if devices.len() > LINKED_MAX { std::mem::take(&mut devices) } else { Vec::new() };
        let left_out = devices.split_off(devices.len().min(DEVICES_MAX));
        Ok(Self { since_text, until_text, field, since, until, devices, left_out, too_many, names_devices })
    }

    /// Number of devices that were to be in the chart.
    pub(super) fn asked(&self) -> usize {
        self.devices.len() + self.left_out.len() + self.too_many.len()
    }

    /// The parameters of a link to the same part of the time.
    pub(super) fn link(&self) -> String {
        self.linked(&self.since_text, &self.until_text, &self.field)
    }

    /// The parameters of a link to a span that ends now.
    pub(super) fn of_span(&self, span: &str) -> String {
        self.linked(span, "", &self.field)
    }

    /// The parameters of a link to one field.
    pub(super) fn of_field(&self, field: &str) -> String {
        self.linked(&self.since_text, &self.until_text, field)
    }

    pub(super) fn all_fields(&self) -> String {
        self.of_field("")
    }

    /// The parameters of a link to as much time before this one.
    pub(super) fn earlier(&self) -> String {
        self.exact(self.since.minus(self.length()), self.since)
    }

    /// The parameters of links to both halves.
    pub(super) fn halves(&self) -> [String; 2] {
        let middle = self.until.minus(self.length() / 2);
        [self.exact(self.since, middle), self.exact(middle, self.until)]
    }

    /// The parameters of a link to the table of devices, where these are chosen.
    pub(super) fn choice(&self) -> String {
        let devices = [&self.devices[..], &self.too_many].concat();
        let named = Self { names_devices: true, devices, ..self.clone() };
        named.link()
    }

    /// The devices that links name: those that are left out, too, so that each page and file says that they are missing.
    pub(super) fn named(&self) -> impl Iterator<Item = &DevId> {
        let named = self.names_devices.then(|| self.devices.iter().chain(&self.left_out));
        named.into_iter().flatten()
    }

    fn exact(&self, since: Timestamp, until: Timestamp) -> String {
        self.linked(&since.to_rfc3339(), &until.to_rfc3339(), &self.field)
    }

    fn length(&self) -> Duration {
        let nanos = self.until.as_nanos().saturating_sub(self.since.as_nanos());
        Duration::from_nanos(u64::try_from(nanos).unwrap_or_default())
    }

    fn linked(&self, since: &str, until: &str, field: &str) -> String {
        let devices = self.named().map(|dev_id| ("device", dev_id.as_str()));
        let pairs = [("since", since), ("until", until), ("field", field)];
        parameters(devices.chain(pairs.into_iter().filter(|(_, value)| !value.is_empty())))
    }
}

fn chosen(sent: &Sent) -> Result<Vec<DevId>> {
    let must = || Error::Invalid { what: "device", must: "must be the id of a device".to_owned() };
    let texts = sent.values("device").map(str::trim).filter(|text| !text.is_empty());
    let devices = texts.map(|text| text.parse::<DevId>().map_err(|_| must())).collect::<Result<Vec<_>>>();
    devices.map(each_once)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(pairs: &[(&str, &str)]) -> Result<Range> {
        let fields = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Range::of(fields, None, Timestamp::from_millis(200_000_000))
    }

    #[test]
    fn a_range_is_shown_earlier_and_in_halves() {
        let range = range(&[("since", "1970-01-03T00:00:00Z"), ("until", "1970-01-03T02:00:00Z")]).unwrap();
        assert!(range.earlier().contains("1970%2D01%2D02T22"), "{}", range.earlier());
        assert!(range.halves()[0].contains("T01%3A00"), "{:?}", range.halves());
    }

    #[test]
    fn ranges_that_cannot_be_are_refused() {
        assert_eq!(range(&[]).unwrap().length(), DAY);
        for pairs in
            [&[("since", "x")][..], &[("since", "1h"), ("until", "2h")], &[("device", "dev-1"), ("device", "<b>")]]
        {
            assert!(range(pairs).is_err(), "{pairs:?}");
        }
    }

    #[test]
    fn links_name_the_devices_unless_the_path_does() {
        let several = range(&[("device", "dev-2"), ("device", ""), ("device", "dev-1"), ("device", "dev-2")]).unwrap();
        assert_eq!(several.of_field("t"), "device=dev%2D2&device=dev%2D1&since=24h&field=t");
        let now = Timestamp::from_millis(200_000_000);
        let one = Range::of(vec![("device".to_owned(), "dev-2".to_owned())], "dev-1".parse().ok(), now).unwrap();
        assert_eq!((one.link().as_str(), one.choice().as_str()), ("since=24h", "device=dev%2D1&since=24h"));
    }

    #[test]
    fn a_field_is_named_as_it_is() {
        let range = range(&[("since", " 1h "), ("field", " t ")]).unwrap();
        assert_eq!((range.field.as_str(), range.link().as_str()), (" t ", "since=1h&field=%20t%20"));
    }

    #[test]
    fn a_chart_has_so_many_devices_and_no_more() {
        let ids: Vec<_> = (10..30).map(|number| format!("dev-{number}")).collect();
        let pairs: Vec<_> = ids.iter().map(|dev_id| ("device", dev_id.as_str())).collect();
        let range = range(&pairs).unwrap();
        assert_eq!((range.devices.len(), range.left_out.len()), (DEVICES_MAX, 20 - DEVICES_MAX));
        assert_eq!(range.left_out.last().map(DevId::as_str), Some("dev-29"));
        for link in [range.link(), range.of_span("1h"), range.earlier(), range.choice()] {
            let named = ids.iter().filter(|dev_id| link.contains(&dev_id.replace('-', "%2D")));
            assert_eq!(named.count(), ids.len(), "what is left out stays so: {link}");
        }
    }

    #[test]
    fn a_choice_that_is_too_large_for_a_chart_is_not_lost() {
        let ids: Vec<_> = (0..=LINKED_MAX).map(|number| format!("dev-{number}")).collect();
        let pairs: Vec<_> = ids.iter().map(|dev_id| ("device", dev_id.as_str())).collect();
        let range = range(&pairs).unwrap();
        assert_eq!((range.devices.len(), range.too_many.len()), (0, LINKED_MAX + 1));
        assert_eq!(range.choice().matches("device=").count(), LINKED_MAX + 1);
        assert_eq!(range.link(), "since=24h", "one link is enough");
    }
}
