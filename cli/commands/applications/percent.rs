//! Percentages as people type them: `5%`, `0.25%` or `5`.

use std::{fmt, str::FromStr};

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Percent(pub(crate) f64);

impl FromStr for Percent {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = text.strip_suffix('%').unwrap_or(text).trim_end();
        let percent = number.parse().ok().filter(|percent: &f64| (0.0..=100.0).contains(percent));
        percent.map(Self).ok_or_else(|| "it must be like 5%, from 0% to 100%".to_owned())
    }
}

impl fmt::Display for Percent {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        // As exact as shares are.
        write!(out, "{}%", (self.0 * 100.0).round() / 100.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_have_a_sign_or_none() {
        for (text, shown) in [("5%", "5%"), ("5", "5%"), ("0.25 %", "0.25%"), ("100%", "100%"), ("33.333", "33.33%")] {
            assert_eq!(text.parse::<Percent>().unwrap().to_string(), shown);
        }
        for text in ["", "%", "5%%", "-1%", "101", "NaN", "five"] {
            assert!(text.parse::<Percent>().is_err(), "{text}");
        }
    }
}
