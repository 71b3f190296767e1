//! The rules for devices that the types of their parts do not express.

pub(crate) mod location;
pub(crate) mod silence;

use std::collections::BTreeMap;

use self::{
    location::{ALTITUDES, LATITUDES, LONGITUDES},
    silence::{SILENT_AFTER, SilentAfter},
};

/// Maximum number of attributes of a device, beside [those with a fixed meaning](ATTRIBUTES_BUILT_IN).
pub const ATTRIBUTES_MAX: usize = 5;
/// Maximum length of the key of an attribute, and of its value, in bytes.
pub const ATTRIBUTE_BYTES_MAX: usize = 64;
/// Attributes with a fixed meaning, which do not count as custom.
pub const ATTRIBUTES_BUILT_IN: [&str; 6] =
    ["ttn-antenna", "ttn-brand", "ttn-model", "ttn-module-type", "ttn-version", SILENT_AFTER];
/// Uses of an address, which activation constraints name.
pub const ADDRESS_USAGES: [&str; 6] = ["otaa", "abp", "world", "local", "private", "testing"];

const DESCRIPTION_BYTES_MAX: usize = 1024;
const CONSTRAINTS_BYTES_MAX: usize = 128;

/// The parts of a device that have rules.
#[derive(Clone, Copy, Debug)]
pub struct DeviceParts<'a> {
    /// Its description for people.
    pub description: &'a str,
    /// Degrees north.
    pub latitude: f32,
    /// Degrees east.
    pub longitude: f32,
    /// Metres.
    pub altitude: i32,
    /// Usages that its address must allow, separated by commas.
    pub activation_constraints: &'a str,
    /// The application's own attributes.
    pub attributes: &'a BTreeMap<String, String>,
}

/// A rule that a device breaks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} not valid: {rule}")]
pub struct BrokenRule {
    /// The part.
    pub what: &'static str,
    /// The rule, and the allowed values.
    pub rule: String,
}

impl DeviceParts<'_> {
    /// Checks all rules, until one is broken.
    pub fn check(&self) -> Result<(), BrokenRule> {
        self.check_location()?;
        if self.description.len() > DESCRIPTION_BYTES_MAX {
            return Err(broken("Description", format!("at most {DESCRIPTION_BYTES_MAX} bytes are allowed")));
        }
        self.check_constraints()?;
        self.check_attributes()
    }

    /// Unlike in v2, where every number was stored: JSON cannot represent those that are not finite, so a record with
    /// one could never be read again, and readers of messages rely on the others.
    fn check_location(&self) -> Result<(), BrokenRule> {
        if !LATITUDES.contains(&f64::from(self.latitude)) || !LONGITUDES.contains(&f64::from(self.longitude)) {
            let rule = "a latitude is -90 to 90, and a longitude -180 to 180 degrees";
            return Err(broken("Location", rule.to_owned()));
        }
        if !ALTITUDES.contains(&self.altitude) {
            return Err(broken("Location", "an altitude is -12,000 to 40,000,000 metres".to_owned()));
        }
        Ok(())
    }

    fn check_constraints(&self) -> Result<(), BrokenRule> {
        let constraints = self.activation_constraints;
        let is_usage = |name: &str| ADDRESS_USAGES.contains(&name.trim());
        let is_valid = constraints.len() <= CONSTRAINTS_BYTES_MAX && constraints.split(',').all(is_usage);
        if is_valid || constraints.is_empty() {
            return Ok(());
        }
        let names = ADDRESS_USAGES.join(", ");
        Err(broken("ActivationConstraints", format!("a comma-separated list of {names} is allowed")))
    }

    fn check_attributes(&self) -> Result<(), BrokenRule> {
        let is_custom = |key: &&String| !ATTRIBUTES_BUILT_IN.contains(&key.as_str());
        if self.attributes.keys().filter(is_custom).count() > ATTRIBUTES_MAX {
            return Err(broken("Attributes", format!("at most {ATTRIBUTES_MAX} of your own are allowed")));
        }
        for (key, value) in self.attributes {
            if key.is_empty() || key.len() > ATTRIBUTE_BYTES_MAX || value.len() > ATTRIBUTE_BYTES_MAX {
                let rule =
                    format!("keys have 1 to {ATTRIBUTE_BYTES_MAX} bytes and values at most as many, unlike `{key}`");
                return Err(broken("Attributes", rule));
            }
        }
        if let Some(Err(error)) = self.attributes.get(SILENT_AFTER).map(|value| SilentAfter::parse_or_off(value)) {
            return Err(broken("Attributes", format!("`{SILENT_AFTER}` may be `off`; otherwise {error}")));
        }
        Ok(())
    }
}

fn broken(what: &'static str, rule: String) -> BrokenRule {
    BrokenRule { what, rule }
}
