//! Functions that only a share of an application's devices have, beside those that are live for the others.

mod candidates;
mod counts;
mod judge;

use std::fmt;

use runtime::SourcesHash;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use types::{AppId, DevId};

pub use self::{
    candidates::CandidateState,
    counts::{Counts, Tally},
    judge::Abandoned,
};
use crate::Error;

/// Hundredths of a percent in a whole.
const WHOLE: u32 = 10_000;
/// The defaults of a trial.
const MARGIN: Percentage = Percentage(500);
const UPLINKS_MIN: u32 = 20;

/// A part of a whole, in hundredths of a percent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Percentage(u32);

/// A version that has a share of the devices. Every uplink reads it with its application.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Candidate {
    /// The number of the version.
    pub version: u32,
    /// Identifies its functions and their dialect.
    pub functions_hash: SourcesHash,
    /// Its payload format.
    pub payload_format: String,
    /// True if its uplinks run a function.
    pub has_uplink_function: bool,
    /// Share of the devices, and the conditions for abandoning it.
    pub trial: Trial,
}

/// Share of the devices that have a candidate, and the rule for abandoning it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trial {
    /// The share of the devices that have it.
    pub share: Percentage,
    /// It is abandoned when the part of uplinks on which it fails exceeds that of the live version by more than this.
    pub margin: Percentage,
    /// The least number of uplinks of both versions before that.
    pub uplinks_min: u32,
}

impl Candidate {
    /// Returns true if a device has it. The same devices have it again at any larger share, and others have another
    /// candidate: its functions are the key of the hash.
    pub fn is_of(&self, app_id: &AppId, dev_id: &DevId) -> bool {
        let mut hash = Sha256::new();
        hash.update(self.functions_hash.as_bytes());
        hash.update(app_id.as_str());
        hash.update([0]);
        hash.update(dev_id.as_str());
        let digest: [u8; 32] = hash.finalize().into();
        let [a, b, c, d, ..] = digest;
        let place = (u64::from(u32::from_be_bytes([a, b, c, d])) * u64::from(WHOLE)) >> u32::BITS;
        place < u64::from(self.trial.share.0)
    }
}

impl Trial {
    /// A trial with this share of the devices, in percent; the rest has defaults. [`Error::Invalid`] if it is out of
    /// range.
    pub fn new(share: f64, margin: Option<f64>, uplinks_min: Option<u32>) -> Result<Self, Error> {
        let uplinks_min = uplinks_min.unwrap_or(UPLINKS_MIN);
        if uplinks_min == 0 {
            return Err(Error::invalid("Least number of uplinks", "it must be a number from 1 up"));
        }
        let margin = margin.map(|margin| Percentage::new("Margin", margin, (0, WHOLE))).transpose()?.unwrap_or(MARGIN);
        Ok(Self { share: Percentage::new("Share", share, (1, WHOLE - 1))?, margin, uplinks_min })
    }
}

impl Percentage {
    /// [`Error::Invalid`] if it is not between these two, in hundredths of a percent.
    fn new(what: &'static str, percent: f64, (least, most): (u32, u32)) -> Result<Self, Error> {
        let hundredths = (percent * 100.0).round();
        // The cast saturates, and is compared.
        let number = hundredths as u32;
        if f64::from(number) == hundredths && (least..=most).contains(&number) {
            return Ok(Self(number));
        }
        Err(Error::invalid(what, format_args!("it must be from {} to {}", Self(least), Self(most))))
    }

    /// Converts hundredths.
    pub fn percent(self) -> f64 {
        f64::from(self.0) / 100.0
    }
}

impl fmt::Display for Percentage {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}%", self.percent())
    }
}

#[cfg(test)]
mod tests {
    use runtime::Sources;

    use super::*;

    fn candidate(decoder: &str, share: f64) -> Candidate {
        let sources = Sources { decoder: decoder.to_owned(), ..Sources::default() };
        Candidate {
            version: 2,
            functions_hash: sources.hash(),
            payload_format: "custom".to_owned(),
            has_uplink_function: true,
            trial: Trial::new(share, None, None).unwrap(),
        }
    }

    fn devices(candidate: &Candidate) -> Vec<u32> {
        let app_id = "my-app".parse().unwrap();
        let is_of = |number: &u32| candidate.is_of(&app_id, &format!("dev-{number}").parse().unwrap());
        (0..10_000).filter(is_of).collect()
    }

    #[test]
    fn a_larger_share_keeps_the_devices_of_a_smaller_one() {
        let mut smaller = Vec::new();
        for share in [0.01, 1.0, 5.0, 50.0, 99.99] {
            let devices = devices(&candidate("a", share));
            let expected = share * 100.0;
            assert!((devices.len() as f64 - expected).abs() <= 5.0 + expected / 5.0, "{share}: {}", devices.len());
            assert!(smaller.iter().all(|number| devices.contains(number)), "{share}");
            smaller = devices;
        }
    }

    #[test]
    fn another_candidate_has_other_devices() {
        let (first, second) = (devices(&candidate("a", 5.0)), devices(&candidate("b", 5.0)));
        let both = first.iter().filter(|number| second.contains(number)).count();
        assert!(both < first.len() / 4, "{both} of {}", first.len());
    }

    #[test]
    fn a_share_is_more_than_nothing_and_less_than_all() {
        assert_eq!(Trial::new(0.25, None, None).unwrap().share.to_string(), "0.25%");
        for share in [0.0, 0.004, 100.0, -5.0, f64::NAN, f64::INFINITY] {
            let error = Trial::new(share, None, None).unwrap_err().to_string();
            assert_eq!(error, "Share not valid: it must be from 0.01% to 99.99%", "{share}");
        }
        assert!(Trial::new(5.0, Some(0.0), Some(1)).is_ok() && Trial::new(5.0, Some(100.0), None).is_ok());
        assert!(Trial::new(5.0, Some(100.1), None).is_err() && Trial::new(5.0, None, Some(0)).is_err());
    }
}
