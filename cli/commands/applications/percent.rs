//! Percentages as people type them: `5%`, `0.25%` or `5`.

use std::{fmt, str::FromStr};

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Percent(pub(crate) f64);

/// The least and the most of the devices that can have functions of their own: some, but not all.
const SHARES: (Percent, Percent) = (Percent(0.01), Percent(99.99));

impl Percent {
    /// Parses a share of the devices, in the range that the handler takes.
    pub(crate) fn share(text: &str) -> Result<Self, String> {
        Self::parse(text, SHARES)
    }

    fn parse(text: &str, (least, most): (Self, Self)) -> Result<Self, String> {
        let number: Option<f64> = text.strip_suffix('%').unwrap_or(text).trim_end().parse().ok();
        let percent =
            number.map(Self).filter(|percent| (least.rounded()..=most.rounded()).contains(&percent.rounded()));
        percent.ok_or_else(|| format!("it must be like 5%, from {least} to {most}"))
    }

    /// As exact as shares are.
    fn rounded(self) -> f64 {
        (self.0 * 100.0).round() / 100.0
    }
}

/// Any part of a whole.
impl FromStr for Percent {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::parse(text, (Self(0.0), Self(100.0)))
    }
}

impl fmt::Display for Percent {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}%", self.rounded())
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

    #[test]
    fn a_share_is_of_some_devices_and_not_of_all() {
        for text in ["0.01%", "5", "99.99%"] {
            assert!(Percent::share(text).is_ok(), "{text}");
        }
        for text in ["0%", "0.004%", "99.996%", "100%", "250%", "-5%", "NaN", "abc"] {
            assert_eq!(Percent::share(text).unwrap_err(), "it must be like 5%, from 0.01% to 99.99%", "{text}");
        }
    }
}
