//! The header `grpc-timeout`: the time for which the client waits. The gRPC gateway of v2 took it over HTTP too.

use std::time::Duration;

use axum::http::HeaderMap;

/// A number and its unit, such as `250m` for 250 milliseconds.
const HEADER: &str = "grpc-timeout";
const DIGITS_MAX: usize = 8;

/// Returns the time for which the client waits; `None` if the header is missing or not valid.
pub(super) fn of(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(HEADER)?.to_str().ok()?;
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    if digits.len() > DIGITS_MAX || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let number: u64 = digits.parse().ok()?;
    match unit {
        "H" => Some(Duration::from_secs(number * 3600)),
        "M" => Some(Duration::from_secs(number * 60)),
        "S" => Some(Duration::from_secs(number)),
        "m" => Some(Duration::from_millis(number)),
        "u" => Some(Duration::from_micros(number)),
        "n" => Some(Duration::from_nanos(number)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_a_number_and_its_unit() {
        let parse = |text: &'static str| {
            of(&[(HEADER, text)]
                .map(|(name, text)| (name.parse().unwrap(), text.parse().unwrap()))
                .into_iter()
                .collect())
        };
        for (text, milliseconds) in [("2H", 7_200_000), ("3M", 180_000), ("4S", 4000), ("5m", 5), ("6000u", 6)] {
            assert_eq!(parse(text), Some(Duration::from_millis(milliseconds)), "{text}");
        }
        assert_eq!(parse("99999999n"), Some(Duration::from_nanos(99_999_999)));
        for text in ["", "S", "5", "5s", "-1S", "+1S", "1.5S", "123456789S", "5 S", "5S "] {
            assert_eq!(parse(text), None, "{text}");
        }
        assert_eq!(of(&HeaderMap::new()), None);
    }
}
