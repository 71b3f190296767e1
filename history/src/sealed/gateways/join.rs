//! Puts the values that were taken out of metadata back into it.

use std::fmt::Write;

use types::Timestamp;

use super::{TAKEN, Values, scan::Scan};

/// Appends the metadata of an uplink, which was received at this time. None if values are missing, as in a damaged file.
pub(crate) fn join(
    metadata: &str,
    gateways: &[(Values<'_>, &str)],
    received: Timestamp,
    out: &mut String,
) -> Option<()> {
    restore(metadata, out, |name, out| match name {
        "time" => quoted(&received.to_rfc3339(), out),
        "gateways" => all(gateways, received, out),
        _ => write!(out, "{TAKEN}").ok(),
    })
}

fn all(gateways: &[(Values<'_>, &str)], received: Timestamp, out: &mut String) -> Option<()> {
    for (place, (values, metadata)) in gateways.iter().enumerate() {
        out.push(if place == 0 { '[' } else { ',' });
        restore(metadata, out, |name, out| values.restore(name, received, out))?;
    }
    out.push_str(if gateways.is_empty() { "[]" } else { "]" });
    Some(())
}

/// Appends an object. `value` appends that of each member in whose place is [`TAKEN`].
fn restore(text: &str, out: &mut String, value: impl Fn(&str, &mut String) -> Option<()>) -> Option<()> {
    let (mut scan, mut copied) = (Scan::new(text), 0);
    scan.object(|scan, name| {
        let start = scan.at();
        if scan.value()? == TAKEN {
            out.push_str(text.get(copied..start)?);
            copied = scan.at();
            value(name, out)?;
        }
        Some(())
    })?;
    out.push_str(text.get(copied..)?);
    scan.is_at_end().then_some(())
}

impl Values<'_> {
    fn restore(&self, name: &str, received: Timestamp, out: &mut String) -> Option<()> {
        let written = match name {
            "gtw_id" => return quoted(self.gtw_id?, out),
            "timestamp" => write!(out, "{}", self.timestamp?),
            "time" => return quoted(&self.time.unwrap_or(received).to_rfc3339(), out),
            "channel" => write!(out, "{}", self.channel?),
            // With a point, also where nothing follows it.
            "rssi" => write!(out, "{:?}", self.rssi?),
            "snr" => write!(out, "{:?}", self.snr?),
            _ => write!(out, "{TAKEN}"),
        };
        written.ok()
    }
}

fn quoted(text: &str, out: &mut String) -> Option<()> {
    write!(out, "\"{text}\"").ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined(metadata: &str, gateways: &[(Values<'_>, &str)]) -> Option<String> {
        let mut out = String::new();
        join(metadata, gateways, Timestamp::from_nanos(1), &mut out).map(|()| out)
    }

    #[test]
    fn values_are_where_their_signs_were() {
        let values = Values { gtw_id: Some("a"), rssi: Some(-7.0), ..Values::default() };
        let gateways = [(values, r#"{"rssi":null,"x":null,"time":null}"#), (values, r#"{"gtw_id":null}"#)];
        let expected = r#"{"gateways":[{"rssi":-7.0,"x":null,"time":"1970-01-01T00:00:00.000000001Z"},{"gtw_id":"a"}],"y":[null],"time":"1970-01-01T00:00:00.000000001Z"}"#;
        assert_eq!(joined(r#"{"gateways":null,"y":[null],"time":null}"#, &gateways).unwrap(), expected);
        assert_eq!(joined(r#"{"gateways":null}"#, &[]).unwrap(), r#"{"gateways":[]}"#);
        assert_eq!(joined("{}", &[]).unwrap(), "{}");
    }

    #[test]
    fn what_cannot_have_been_split_is_refused() {
        let without = [(Values::default(), r#"{"rssi":null}"#)];
        assert_eq!(joined(r#"{"gateways":null}"#, &without), None);
        for metadata in ["", "null", r#"{"time":null"#, r#"{"time":null} "#] {
            assert_eq!(joined(metadata, &[]), None, "{metadata}");
        }
    }
}
