//! Addresses for devices: the prefixes that they are taken from, and what each of those is for.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use types::{DevAddr, DevAddrPrefix, Random};

use crate::Error;

/// How much of a word that is none is told back.
const WORD_CHARS_MAX: usize = 32;

/// A prefix of device addresses that the network has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Prefix {
    /// The addresses, as in `26000000/20`.
    #[schemars(with = "String")]
    pub prefix: DevAddrPrefix,
    /// What they may be used for.
    pub usage: Vec<Usage>,
}

/// What an address may be used for, and which addresses a device may get.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Usage {
    /// Devices that join.
    Otaa,
    /// Devices whose session is set by hand.
    Abp,
    /// Devices that may be anywhere.
    World,
    /// Devices that stay in one region.
    Local,
    /// Devices of a private network.
    Private,
    /// Devices that are tried out.
    Testing,
}

impl Usage {
    /// All of them.
    pub const ALL: [Self; 6] = [Self::Otaa, Self::Abp, Self::World, Self::Local, Self::Private, Self::Testing];

    /// The word for it on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Otaa => "otaa",
            Self::Abp => "abp",
            Self::World => "world",
            Self::Local => "local",
            Self::Private => "private",
            Self::Testing => "testing",
        }
    }

    /// The usage of this word.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|usage| usage.as_str() == word)
    }

    /// The usages of these words, each once; [`Error::NotFound`] when one is none: no prefix is for that, as v2 says it.
    pub(crate) fn from_words(words: &[String]) -> Result<Vec<Self>, Error> {
        let mut usages = Vec::new();
        for word in words {
            let usage = Self::from_word(word).ok_or_else(|| {
                let start: String = word.chars().take(WORD_CHARS_MAX).collect();
                no_prefix(&[&start])
            })?;
            if !usages.contains(&usage) {
                usages.push(usage);
            }
        }
        Ok(usages)
    }
}

/// Gives out addresses. They are not reserved: devices that share one are told apart by their keys.
pub struct Addresses {
    prefixes: Vec<Prefix>,
    random: Arc<dyn Random>,
}

impl Addresses {
    /// Takes addresses from `prefixes`, chosen by `random`.
    pub fn new(prefixes: Vec<Prefix>, random: Arc<dyn Random>) -> Self {
        Self { prefixes, random }
    }

    /// The prefixes that addresses are taken from.
    pub fn prefixes(&self) -> &[Prefix] {
        &self.prefixes
    }

    /// A random address that may be used for all of `usage`; [`Error::NotFound`] when no prefix is for all of them.
    pub fn random(&self, usage: &[Usage]) -> Result<DevAddr, Error> {
        let serves = |prefix: &&Prefix| usage.iter().all(|usage| prefix.usage.contains(usage));
        let suitable: Vec<&Prefix> = self.prefixes.iter().filter(serves).collect();
        let mut bytes = [0; 8];
        self.random.fill(&mut bytes);
        let [choice @ .., a, b, c, d] = bytes;
        let choice = u32::from_be_bytes(choice) as usize;
        match suitable.get(choice % suitable.len().max(1)) {
            Some(prefix) => Ok(prefix.prefix.address([a, b, c, d])),
            None => Err(no_prefix(&usage.iter().map(|usage| usage.as_str()).collect::<Vec<_>>())),
        }
    }
}

fn no_prefix(words: &[&str]) -> Error {
    Error::not_found("DevAddr prefix with constraints", format_args!("[{}]", words.join(" ")))
}

#[cfg(test)]
mod tests {
    use types::Kinded;

    use super::*;

    /// Gives the same bytes again and again.
    struct Given([u8; 8]);

    impl Random for Given {
        fn fill(&self, bytes: &mut [u8]) {
            bytes.copy_from_slice(&self.0[..bytes.len()]);
        }
    }

    fn addresses(choice: u8) -> Addresses {
        let prefix = |prefix: &str, usage: &[Usage]| Prefix { prefix: prefix.parse().unwrap(), usage: usage.to_vec() };
        let prefixes = vec![
            prefix("26000000/20", &[Usage::Otaa, Usage::Local]),
            prefix("26010000/16", &[Usage::Abp, Usage::Local, Usage::World]),
            prefix("27000000/8", &[Usage::Abp, Usage::Local]),
        ];
        Addresses::new(prefixes, Arc::new(Given([0, 0, 0, choice, 0x12, 0x34, 0x56, 0x78])))
    }

    fn usages(words: &[&str]) -> Vec<Usage> {
        let words: Vec<String> = words.iter().map(ToString::to_string).collect();
        Usage::from_words(&words).unwrap()
    }

    #[test]
    fn no_prefix_is_for_a_word_that_is_no_usage() {
        let long = "x".repeat(100_000);
        for word in ["", "ABP", "otaa,abp", "world ", &long] {
            let error = Usage::from_words(&["abp".to_owned(), word.to_owned()]).unwrap_err();
            assert!(error.kind() == types::Kind::NotFound && error.to_string().len() < 100, "{error}");
        }
    }

    #[test]
    fn an_address_lies_in_a_prefix_for_all_usages() {
        for (choice, usage, expected) in [
            (0, &["local", "abp"][..], "26015678"),
            (1, &["local", "abp"], "27345678"),
            (2, &["local", "abp"], "26015678"),
            (0, &["otaa"], "26000678"),
            (7, &["world", "world"], "26015678"),
            (1, &[], "26015678"),
        ] {
            assert_eq!(addresses(choice).random(&usages(usage)).unwrap().to_string(), expected, "{choice} {usage:?}");
        }
    }

    #[test]
    fn without_a_prefix_for_all_usages_there_is_no_address() {
        for usage in [&["otaa", "abp"][..], &["private"]] {
            let error = addresses(0).random(&usages(usage)).unwrap_err();
            assert_eq!(error.kind(), types::Kind::NotFound);
            assert!(error.to_string().starts_with("DevAddr prefix with constraints ["), "{error}");
        }
        assert!(Addresses::new(Vec::new(), Arc::new(Given([0; 8]))).random(&[]).is_err());
    }

    #[test]
    fn every_usage_has_its_word() {
        for usage in Usage::ALL {
            assert_eq!(Usage::from_word(usage.as_str()), Some(usage));
            assert_eq!(serde_json::to_value(usage).unwrap(), usage.as_str());
        }
    }
}
