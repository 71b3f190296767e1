//! Device addresses: the prefixes of the network, and what each of them may be used for.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use types::{DevAddr, DevAddrPrefix, Random};

use crate::Error;

/// Maximum length of an unknown usage in an error, in characters.
const USAGE_CHARS_MAX: usize = 32;

/// A block of device addresses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Prefix {
    /// The prefix of the addresses, as in `26000000/20`.
    #[schemars(with = "String")]
    pub prefix: DevAddrPrefix,
    /// Uses of the addresses.
    pub usage: Vec<Usage>,
}

/// A use of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Usage {
    /// Devices that join.
    Otaa,
    /// Devices that are activated by personalization.
    Abp,
    /// Devices that may roam anywhere.
    World,
    /// Devices that stay in one region.
    Local,
    /// Devices of a private network.
    Private,
    /// Devices under test.
    Testing,
}

impl Usage {
    /// All usages.
    pub const ALL: [Self; 6] = [Self::Otaa, Self::Abp, Self::World, Self::Local, Self::Private, Self::Testing];

    /// Its name on the wire.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Otaa => "otaa",
            Self::Abp => "abp",
            Self::World => "world",
            Self::Local => "local",
            Self::Private => "private",
            Self::Testing => "testing",
        }
    }

    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|usage| usage.as_str() == name)
    }

    /// The usages of these names, without duplicates; [`Error::NotFound`] for an unknown name, because no prefix serves
    /// it: v2 answers the same.
    pub(crate) fn from_names(names: &[String]) -> Result<Vec<Self>, Error> {
        let mut usages = Vec::new();
        for name in names {
            let usage = Self::from_name(name).ok_or_else(|| {
                let start: String = name.chars().take(USAGE_CHARS_MAX).collect();
                no_prefix(&[&start])
            })?;
            if !usages.contains(&usage) {
                usages.push(usage);
            }
        }
        Ok(usages)
    }
}

/// Chooses addresses. None is reserved: devices that share an address are distinguished by their keys.
pub struct Addresses {
    prefixes: Vec<Prefix>,
    random: Arc<dyn Random>,
}

impl Addresses {
    /// Chooses addresses from `prefixes` with `random`.
    pub fn new(prefixes: Vec<Prefix>, random: Arc<dyn Random>) -> Self {
        Self { prefixes, random }
    }

    pub(crate) fn prefixes(&self) -> &[Prefix] {
        &self.prefixes
    }

    /// A random address that may be used for all of `usage`; [`Error::NotFound`] if no prefix serves all of them.
    pub(crate) fn random(&self, usage: &[Usage]) -> Result<DevAddr, Error> {
        let serves = |prefix: &&Prefix| usage.iter().all(|usage| prefix.usage.contains(usage));
        let suitable: Vec<&Prefix> = self.prefixes.iter().filter(serves).collect();
        let [choice @ .., a, b, c, d] = self.random.array::<8>();
        let choice = u32::from_be_bytes(choice) as usize;
        match suitable.get(choice % suitable.len().max(1)) {
            Some(prefix) => Ok(prefix.prefix.address([a, b, c, d])),
            None => Err(no_prefix(&usage.iter().map(|usage| usage.as_str()).collect::<Vec<_>>())),
        }
    }
}

fn no_prefix(names: &[&str]) -> Error {
    Error::not_found("DevAddr prefix with constraints", format_args!("[{}]", names.join(" ")))
}

#[cfg(test)]
mod tests {
    use testing::FixedRandom;
    use types::Kinded;

    use super::*;

    fn addresses(choice: u8) -> Addresses {
        let prefix = |prefix: &str, usage: &[Usage]| Prefix { prefix: prefix.parse().unwrap(), usage: usage.to_vec() };
        let prefixes = vec![
            prefix("26000000/20", &[Usage::Otaa, Usage::Local]),
            prefix("26010000/16", &[Usage::Abp, Usage::Local, Usage::World]),
            prefix("27000000/8", &[Usage::Abp, Usage::Local]),
        ];
        Addresses::new(prefixes, Arc::new(FixedRandom::new([0, 0, 0, choice, 0x12, 0x34, 0x56, 0x78])))
    }

    fn usages(names: &[&str]) -> Vec<Usage> {
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        Usage::from_names(&names).unwrap()
    }

    #[test]
    fn an_unknown_usage_has_no_prefix() {
        let long = "x".repeat(100_000);
        for name in ["", "ABP", "otaa,abp", "world ", &long] {
            let error = Usage::from_names(&["abp".to_owned(), name.to_owned()]).unwrap_err();
            assert!(error.kind() == types::Kind::NotFound && error.to_string().len() < 100, "{error}");
        }
    }

    #[test]
    fn chooses_a_prefix_that_serves_all_usages() {
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
    fn finds_no_address_if_no_prefix_serves_all_usages() {
        for usage in [&["otaa", "abp"][..], &["private"]] {
            let error = addresses(0).random(&usages(usage)).unwrap_err();
            assert_eq!(error.kind(), types::Kind::NotFound);
            assert!(error.to_string().starts_with("DevAddr prefix with constraints ["), "{error}");
        }
        assert!(Addresses::new(Vec::new(), Arc::new(FixedRandom::new([0; 8]))).random(&[]).is_err());
    }

    #[test]
    fn usages_have_the_same_name_everywhere() {
        assert_eq!(Usage::ALL.map(Usage::as_str), types::ADDRESS_USAGES);
        for usage in Usage::ALL {
            assert_eq!(Usage::from_name(usage.as_str()), Some(usage));
            assert_eq!(serde_json::to_value(usage).unwrap(), usage.as_str());
        }
    }
}
