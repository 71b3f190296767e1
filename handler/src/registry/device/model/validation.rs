//! The rules for devices that their types do not express.

use std::collections::BTreeMap;

use types::{ATTRIBUTE_BYTES_MAX, ATTRIBUTES_BUILT_IN, ATTRIBUTES_MAX, DeviceParts, SILENT_AFTER, SilentAfter};

use super::Device;
use crate::Error;

/// Returns the tags of a network that a device may have as attributes, in order of their names.
pub(crate) fn attributes_of(tags: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let fits = |(key, value): &(&String, &String)| {
        let has_meaning = key.as_str() != SILENT_AFTER || SilentAfter::parse_or_off(value).is_ok();
        has_meaning && !key.is_empty() && key.len() <= ATTRIBUTE_BYTES_MAX && value.len() <= ATTRIBUTE_BYTES_MAX
    };
    let (built_in, custom): (Vec<_>, Vec<_>) =
        tags.iter().filter(fits).partition(|(key, _)| ATTRIBUTES_BUILT_IN.contains(&key.as_str()));
    let kept = built_in.into_iter().chain(custom.into_iter().take(ATTRIBUTES_MAX));
    kept.map(|(key, value)| (key.clone(), value.clone())).collect()
}

impl Device {
    /// Checks all rules; [`Error::Invalid`] names the one that is broken.
    pub fn check(&self) -> Result<(), Error> {
        let parts = DeviceParts {
            description: &self.description,
            latitude: self.latitude,
            longitude: self.longitude,
            altitude: self.altitude,
            activation_constraints: &self.lorawan.activation_constraints,
            attributes: &self.attributes,
        };
        parts.check().map_err(|broken| Error::invalid(broken.what, broken.rule))
    }
}
