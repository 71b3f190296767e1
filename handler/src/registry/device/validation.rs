//! The rules for devices that their types do not express.

use std::collections::BTreeMap;

use types::{ALTITUDES, LATITUDES, LONGITUDES};

use super::address::Usage;
use super::model::Device;
use crate::Error;

const DEVICE_ATTRIBUTES_MAX: usize = 5;
const ATTRIBUTE_BYTES_MAX: usize = 64;
/// Attributes with a fixed meaning, which do not count as custom.
const ATTRIBUTES_BUILT_IN: [&str; 5] = ["ttn-antenna", "ttn-brand", "ttn-model", "ttn-module-type", "ttn-version"];
const DESCRIPTION_BYTES_MAX: usize = 1024;
const CONSTRAINTS_BYTES_MAX: usize = 128;

/// Returns the tags of a network that a device may have as attributes, in order of their names.
pub(crate) fn attributes_of(tags: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let fits = |(key, value): &(&String, &String)| {
        !key.is_empty() && key.len() <= ATTRIBUTE_BYTES_MAX && value.len() <= ATTRIBUTE_BYTES_MAX
    };
    let (built_in, custom): (Vec<_>, Vec<_>) =
        tags.iter().filter(fits).partition(|(key, _)| ATTRIBUTES_BUILT_IN.contains(&key.as_str()));
    let kept = built_in.into_iter().chain(custom.into_iter().take(DEVICE_ATTRIBUTES_MAX));
    kept.map(|(key, value)| (key.clone(), value.clone())).collect()
}

impl Device {
    /// Checks all rules; [`Error::Invalid`] names the one that is broken.
    pub fn check(&self) -> Result<(), Error> {
        self.check_location()?;
        if self.description.len() > DESCRIPTION_BYTES_MAX {
            let rule = format_args!("at most {DESCRIPTION_BYTES_MAX} bytes are allowed");
            return Err(Error::invalid("Description", rule));
        }
        self.check_constraints()?;
        self.check_attributes()
    }

    /// Unlike in v2, where every number was stored: JSON cannot represent those that are not finite, so a record with
    /// one could never be read again, and readers of messages rely on the others.
    fn check_location(&self) -> Result<(), Error> {
        if !LATITUDES.contains(&f64::from(self.latitude)) || !LONGITUDES.contains(&f64::from(self.longitude)) {
            return Err(Error::invalid("Location", "a latitude is -90 to 90, and a longitude -180 to 180 degrees"));
        }
        if !ALTITUDES.contains(&self.altitude) {
            return Err(Error::invalid("Location", "an altitude is -12,000 to 40,000,000 metres"));
        }
        Ok(())
    }

    fn check_constraints(&self) -> Result<(), Error> {
        let constraints = &self.lorawan.activation_constraints;
        let is_usage = |name: &str| Usage::from_name(name.trim()).is_some();
        let is_valid = constraints.len() <= CONSTRAINTS_BYTES_MAX && constraints.split(',').all(is_usage);
        if is_valid || constraints.is_empty() {
            return Ok(());
        }
        let names = Usage::ALL.map(Usage::as_str).join(", ");
        Err(Error::invalid("ActivationConstraints", format_args!("a comma-separated list of {names} is allowed")))
    }

    fn check_attributes(&self) -> Result<(), Error> {
        let is_custom = |key: &&String| !ATTRIBUTES_BUILT_IN.contains(&key.as_str());
        if self.attributes.keys().filter(is_custom).count() > DEVICE_ATTRIBUTES_MAX {
            return Err(Error::invalid(
                "Attributes",
                format_args!("at most {DEVICE_ATTRIBUTES_MAX} of your own are allowed"),
            ));
        }
        for (key, value) in &self.attributes {
            if key.is_empty() || key.len() > ATTRIBUTE_BYTES_MAX || value.len() > ATTRIBUTE_BYTES_MAX {
                let rule = format_args!(
                    "keys have 1 to {ATTRIBUTE_BYTES_MAX} bytes and values at most as many, unlike `{key}`"
                );
                return Err(Error::invalid("Attributes", rule));
            }
        }
        Ok(())
    }
}
