//! Points in time as networks, databases and people write them.

use types::Timestamp;

/// A time in RFC 3339, as PostgreSQL prints it, or since 1970 in seconds, or thousandths, millionths or billionths.
pub(crate) fn moment(text: &str) -> Result<Timestamp, String> {
    let wrong = || format!("its time is `{}`, not one as in 2026-01-01T00:00:00Z", workbench::truncate(text));
    if let Ok(number) = text.parse::<i64>() {
        return Ok(since_1970(number));
    }
    let (day, time) = text.split_once([' ', 'T']).ok_or_else(wrong)?;
    let zone = match time.rfind(['+', '-']) {
        Some(at) if time.len() - at == 3 => ":00",
        Some(_) => "",
        None if time.ends_with(['Z', 'z']) => "",
        None => "Z",
    };
    format!("{day}T{time}{zone}").parse().map_err(|_| wrong())
}

/// A time in whatever unit makes it one between 1973 and 5000: in others it would be far from that.
fn since_1970(number: i64) -> Timestamp {
    const SECONDS_MAX: u64 = 100_000_000_000;
    let nanos_of_unit = match number.unsigned_abs() {
        0..SECONDS_MAX => 1_000_000_000,
        SECONDS_MAX..100_000_000_000_000 => 1_000_000,
        100_000_000_000_000..100_000_000_000_000_000 => 1000,
        _ => 1,
    };
    Timestamp::from_nanos(number.saturating_mul(nanos_of_unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_networks_and_databases_write_them() {
        let expected: Timestamp = "2026-11-28T10:00:00.5Z".parse().unwrap();
        for text in [
            "2026-11-28T10:00:00.5Z",
            "2026-11-28 10:00:00.5+00",
            "2026-11-28 12:00:00.5+02:00",
            "2026-11-28 10:00:00.500",
            "1795860000500",
            "1795860000500000",
            "1795860000500000000",
        ] {
            assert_eq!(moment(text), Ok(expected), "{text}");
        }
        assert_eq!(moment("1795860000").unwrap(), "2026-11-28T10:00:00Z".parse().unwrap());
        for text in ["", "yesterday", "2026-11-28", "28.11.2026 10:00"] {
            assert!(moment(text).is_err(), "{text}");
        }
    }
}
