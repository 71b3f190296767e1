//! Takes values out of metadata, each only if the same text can be made of it again.

use types::Timestamp;

use super::{TAKEN, Values, scan::Scan};

/// Metadata without the values that have columns, and these.
#[derive(Debug, Default)]
pub(crate) struct Split<'a> {
    /// The metadata, with [`TAKEN`] for its time, if that is when the uplink was received, and for its gateways.
    pub(crate) metadata: String,
    gateways: Vec<(Values<'a>, usize)>,
    /// The metadata of all gateways. Each has its end.
    texts: String,
}

/// The time when an uplink was received, also as JSON has it.
#[derive(Debug)]
struct Received {
    time: Timestamp,
    text: String,
}

impl<'a> Split<'a> {
    /// Splits the metadata of an uplink. None if it cannot be made of what would be left.
    pub(crate) fn fill(&mut self, metadata: &'a str, received: Timestamp) -> Option<()> {
        self.metadata.clear();
        self.gateways.clear();
        self.texts.clear();
        let received = Received { time: received, text: received.to_rfc3339() };
        let (mut scan, mut copied, mut has_gateways) = (Scan::new(metadata), 0, false);
        scan.object(|scan, name| {
            let start = scan.at();
            let is_taken = if name == "gateways" && !has_gateways && scan.is_at(b'[') {
                has_gateways = true;
                scan.array(|scan| self.gateway(metadata, scan, &received))?;
                true
            } else {
                let value = scan.value()?;
                // It would seem to be taken.
                if value == TAKEN && matches!(name, "time" | "gateways") {
                    return None;
                }
                name == "time" && plain_text(value) == Some(received.text.as_str())
            };
            if is_taken {
                replace(&mut self.metadata, metadata.get(copied..start)?);
                copied = scan.at();
            }
            Some(())
        })?;
        self.metadata.push_str(metadata.get(copied..)?);
        scan.is_at_end().then_some(())
    }

    /// Returns the number of gateways.
    pub(crate) fn count(&self) -> usize {
        self.gateways.len()
    }

    /// The gateways, each with what is left of its metadata.
    pub(crate) fn gateways(&self) -> impl Iterator<Item = (&Values<'a>, &str)> {
        let mut start = 0;
        self.gateways.iter().map(move |(values, end)| {
            let text = self.texts.get(start..*end).unwrap_or_default();
            start = *end;
            (values, text)
        })
    }

    fn gateway(&mut self, metadata: &'a str, scan: &mut Scan<'a>, received: &Received) -> Option<()> {
        let (mut values, mut copied) = (Values::default(), scan.at());
        scan.object(|scan, name| {
            let start = scan.at();
            let value = scan.value()?;
            if values.take((name, value), received)? {
                replace(&mut self.texts, metadata.get(copied..start)?);
                copied = scan.at();
            }
            Some(())
        })?;
        self.texts.push_str(metadata.get(copied..scan.at())?);
        self.gateways.push((values, self.texts.len()));
        Some(())
    }
}

impl<'a> Values<'a> {
    /// Takes a member, if it has a column and fits. None if it would seem to be taken although it is not.
    fn take(&mut self, (name, value): (&str, &'a str), received: &Received) -> Option<bool> {
        match name {
            "gtw_id" => take(&mut self.gtw_id, value, plain_text),
            "timestamp" => take(&mut self.timestamp, value, natural),
            "time" => take(&mut self.time, value, |value| time(value, received)),
            "channel" => take(&mut self.channel, value, natural),
            "rssi" => take(&mut self.rssi, value, decimal),
            "snr" => take(&mut self.snr, value, decimal),
            _ => Some(false),
        }
    }
}

/// Appends a text, and the sign that a value follows that was taken.
fn replace(out: &mut String, before: &str) {
    out.push_str(before);
    out.push_str(TAKEN);
}

/// Takes a value, unless an earlier member has the same name.
fn take<'a, T>(place: &mut Option<T>, value: &'a str, read: impl FnOnce(&'a str) -> Option<T>) -> Option<bool> {
    if value == TAKEN {
        return None;
    }
    if place.is_some() {
        return Some(false);
    }
    *place = read(value);
    Some(place.is_some())
}

/// The text of a string that needs no escapes.
fn plain_text(value: &str) -> Option<&str> {
    value.strip_prefix('"')?.strip_suffix('"').filter(|text| !text.contains('\\'))
}

fn natural(value: &str) -> Option<u32> {
    let is_shortest = value == "0" || value.starts_with(|first: char| matches!(first, '1'..='9'));
    if is_shortest { value.parse().ok() } else { None }
}

/// A number with a point, in its shortest form. With six digits, it is the only one so short that its float stands for,
/// so that this float is written as it again.
fn decimal(value: &str) -> Option<f32> {
    let (whole, fraction) = value.strip_prefix('-').unwrap_or(value).split_once('.')?;
    let are_digits =
        |text: &str, count_max| (1..=count_max).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    let is_shortest = (whole == "0" || !whole.starts_with('0')) && (fraction == "0" || !fraction.ends_with('0'));
    if are_digits(whole, 4) && are_digits(fraction, 2) && is_shortest { value.parse().ok() } else { None }
}

fn time(value: &str, received: &Received) -> Option<Timestamp> {
    let text = plain_text(value)?;
    if text == received.text {
        return Some(received.time);
    }
    let time: Timestamp = text.parse().ok()?;
    (time.to_rfc3339() == text).then_some(time)
}

#[cfg(test)]
mod tests {
    use types::{GatewayMetadata, Metadata};

    use super::*;

    fn received() -> Timestamp {
        "2026-11-30T07:29:00.12Z".parse().unwrap()
    }

    #[test]
    fn all_that_differs_in_the_gateways_of_an_uplink_is_taken() {
        let gateway = |gtw_id: &str, time: &str| GatewayMetadata {
            gtw_id: gtw_id.to_owned(),
            timestamp: 4_294_967_295,
            time: time.to_owned(),
            channel: 7,
            rssi: -113.0,
            snr: -12.75,
            latitude: 52.25,
            ..GatewayMetadata::default()
        };
        let metadata = Metadata {
            time: received().to_rfc3339(),
            frequency: 868.1,
            gateways: vec![gateway("a", &received().to_rfc3339()), gateway("b", "2026-11-30T07:29:00.000001Z")],
            ..Metadata::default()
        };
        let metadata = serde_json::to_string(&metadata).unwrap();
        let mut split = Split::default();
        split.fill(&metadata, received()).unwrap();
        assert_eq!(split.metadata, r#"{"time":null,"frequency":868.1,"gateways":null}"#);
        let left = r#"{"gtw_id":null,"timestamp":null,"time":null,"channel":null,"rssi":null,"snr":null,"rf_chain":0,"latitude":52.25}"#;
        let values = |gtw_id, time: &str| Values {
            gtw_id: Some(gtw_id),
            timestamp: Some(u32::MAX),
            time: Some(time.parse().unwrap()),
            channel: Some(7),
            rssi: Some(-113.0),
            snr: Some(-12.75),
        };
        let expected = [values("a", "2026-11-30T07:29:00.12Z"), values("b", "2026-11-30T07:29:00.000001Z")];
        assert!(split.gateways().eq(expected.iter().map(|values| (values, left))), "{split:?}");
    }

    #[test]
    fn what_is_not_in_its_shortest_form_stays_where_it_is() {
        for member in [
            r#""rssi":7"#,
            r#""rssi":1e3"#,
            r#""rssi":7.50"#,
            r#""rssi":07.5"#,
            r#""rssi":7.125"#,
            r#""rssi":10000.5"#,
            r#""rssi":"7.5""#,
            r#""rssi":.5"#,
            r#""snr":-.5"#,
            r#""channel":-0"#,
            r#""channel":7.0"#,
            r#""channel":01"#,
            r#""timestamp":4294967296"#,
            r#""gtw_id":"\u0061""#,
            r#""gtw_id":1"#,
            r#""time":"""#,
            r#""time":"2026-11-30T07:29:00.120Z""#,
            r#""time":"2026-11-30T07:29:00+00:00""#,
            r#""other":1.5"#,
        ] {
            let metadata = format!(r#"{{"gateways":[{{{member}}}]}}"#);
            let mut split = Split::default();
            split.fill(&metadata, received()).unwrap();
            let left = format!("{{{member}}}");
            assert!(split.gateways().eq([(&Values::default(), &*left)]), "{metadata}: {split:?}");
        }
    }

    #[test]
    fn metadata_that_seems_to_be_split_is_not_split() {
        for metadata in [
            "",
            "[]",
            r#"{"time":null}"#,
            r#"{"gateways":null}"#,
            r#"{"gateways":[null]}"#,
            r#"{"gateways":[{"rssi":null}]}"#,
            r#"{"gateways":[{"rssi":1.5},{"gtw_id":null}]}"#,
            r#"{"gateways":[{"rssi":1.5,"rssi":null}]}"#,
            r#"{"frequency": 868.1}"#,
        ] {
            assert_eq!(Split::default().fill(metadata, received()), None, "{metadata}");
        }
    }
}
