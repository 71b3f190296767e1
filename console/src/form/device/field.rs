//! The fields of a device's form: what their texts must be, and what they stand for.

use std::{collections::BTreeMap, ops::RangeInclusive, str::FromStr};

use types::{AppEui, DevEui};

use crate::{Error, Result};

/// The beginning of the QR codes on devices, by TR005.
const QR_PREFIX: &str = "LW:D0:";

/// Bytes in hexadecimal, with or without spaces, dashes and colons. Zeros if there are none.
pub(super) fn bytes<T: FromStr>(what: &'static str, text: &str, length: usize) -> Result<T> {
    let digits: String = text.chars().filter(|character| !matches!(character, ' ' | '\t' | '-' | ':')).collect();
    digits.parse().map_err(|_| invalid(what, format!("must be {} hexadecimal digits", length * 2)))
}

/// Degrees in a range; zero if there are none.
pub(super) fn degrees(what: &'static str, text: &str, range: &RangeInclusive<f64>) -> Result<f32> {
    let number: Option<f32> = if text.is_empty() { Some(0.0) } else { text.parse().ok() };
    let must = || format!("must be a number of degrees from {} to {}, such as 52.37", range.start(), range.end());
    number.filter(|number| range.contains(&f64::from(*number))).ok_or_else(|| invalid(what, must()))
}

/// A whole number in a range; none if there is no text.
pub(super) fn number<T>(what: &'static str, text: &str, range: &RangeInclusive<T>) -> Result<Option<T>>
where
    T: FromStr + PartialOrd + std::fmt::Display,
{
    if text.is_empty() {
        return Ok(None);
    }
    let number = text.parse().ok().filter(|number| range.contains(number));
    let must = || format!("must be a whole number from {} to {}", range.start(), range.end());
    number.map(Some).ok_or_else(|| invalid(what, must()))
}

/// A text as a form shows it and sends it back: on one line, and without spaces at its ends.
pub(super) fn one_line(text: &str) -> String {
    text.replace(['\r', '\n'], " ").trim().to_owned()
}

/// Attributes as a form shows them, one on each line.
pub(super) fn attribute_lines(attributes: &BTreeMap<String, String>) -> String {
    attributes.iter().map(attribute_line).collect::<Vec<_>>().join("\n").trim().to_owned()
}

/// The attributes on these lines. A line that stands for a stored attribute is that one, whatever is in its key.
pub(super) fn attributes(lines: &str, stored: &BTreeMap<String, String>) -> Result<BTreeMap<String, String>> {
    let must = || invalid("Attributes", "must have one per line, such as floor: 3".to_owned());
    let mut attributes = BTreeMap::new();
    for line in lines.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let known = stored.iter().find(|pair| attribute_line(*pair).trim() == line);
        let (key, value) = match known {
            Some((key, value)) => (key.as_str(), value.as_str()),
            None => line.split_once(':').map(|(key, value)| (key.trim(), value.trim())).ok_or_else(must)?,
        };
        if attributes.insert(key.to_owned(), value.to_owned()).is_some() {
            return Err(invalid("Attributes", format!("must not repeat a key, unlike `{key}`")));
        }
    }
    Ok(attributes)
}

/// The EUIs in the code that is on a device.
pub(super) fn euis(code: &str) -> Result<(AppEui, DevEui)> {
    let find = || {
        let upper = code.to_uppercase();
        let mut parts = upper.strip_prefix(QR_PREFIX)?.split(':');
        let mut part = || parts.next().filter(|part| part.len() == 2 * AppEui::LENGTH);
        Some((part()?.parse().ok()?, part()?.parse().ok()?))
    };
    find().ok_or_else(|| {
        let eui = format!("{} hexadecimal digits of the", 2 * AppEui::LENGTH);
        let must = format!("must start with {QR_PREFIX}, {eui} JoinEUI, a colon and {eui} DevEUI");
        invalid("QR code", must)
    })
}

pub(super) fn invalid(what: &'static str, must: String) -> Error {
    Error::Invalid { what, must }
}

fn attribute_line((key, value): (&String, &String)) -> String {
    format!("{key}: {value}").replace(['\r', '\n'], " ")
}

#[cfg(test)]
mod tests {
    use types::LATITUDES;

    use super::*;

    #[test]
    fn bytes_are_typed_as_they_are_printed() {
        for text in ["0102030405060708", "01-02-03-04-05-06-07-08", "01:02 03:04 05:06 07:08"] {
            assert_eq!(bytes::<DevEui>("DevEUI", text, 8).unwrap().to_hex(), "0102030405060708");
        }
        let error = bytes::<DevEui>("DevEUI", "01", 8).unwrap_err();
        assert_eq!(error.to_string(), "DevEUI not valid: must be 16 hexadecimal digits");
    }

    #[test]
    fn numbers_have_bounds() {
        assert_eq!(degrees("Latitude", "-52.5", &LATITUDES).unwrap(), -52.5);
        assert_eq!(number("Altitude", "", &(-5..=5)).unwrap(), None);
        assert_eq!(number("Altitude", "-5", &(-5..=5)).unwrap(), Some(-5));
        for text in ["91", "NaN", "52,3", "north"] {
            assert!(degrees("Latitude", text, &LATITUDES).is_err(), "{text}");
        }
        assert!(number("Altitude", "6", &(-5..=5)).is_err());
    }

    #[test]
    fn attributes_come_back_as_they_were() {
        let pair = |(key, value): (&str, &str)| (key.to_owned(), value.to_owned());
        let stored: BTreeMap<_, _> = [("a:b", " c"), ("d", "two\nlines")].map(pair).into();
        assert_eq!(attributes(&attribute_lines(&stored), &stored).unwrap(), stored);
        let typed = attributes("floor:3\n\n room : a:1 ", &stored).unwrap();
        assert_eq!(typed, [("floor", "3"), ("room", "a:1")].map(pair).into());
        for lines in ["floor", "a: 1\na: 2"] {
            assert!(attributes(lines, &stored).is_err(), "{lines}");
        }
    }

    #[test]
    fn a_code_has_both_euis() {
        let (app_eui, dev_eui) = euis("lw:D0:1122334455667788:AABBCCDDEEFF0011:AABB1122:SYWL").unwrap();
        assert_eq!((app_eui.to_hex().as_str(), dev_eui.to_hex().as_str()), ("1122334455667788", "AABBCCDDEEFF0011"));
        for code in ["", "LW:D0:", "LW:D0:11:22", "LW:D1:1122334455667788:AABBCCDDEEFF0011", "LW:D0:1122334455667788"] {
            assert!(euis(code).is_err(), "{code}");
        }
    }
}
