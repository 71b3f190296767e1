//! Codecs by device profile, and one for all others.

use std::collections::HashMap;

use runtime::Functions;

use crate::stored::Name;

/// Codecs by the profiles of devices.
#[derive(Default)]
pub struct Codecs {
    by_profile: HashMap<String, Functions>,
    of_others: Option<Functions>,
}

impl Codecs {
    /// Sets the codec of a profile, by its id or name, or without a profile that of all others. False if there was one.
    pub fn add(&mut self, profile: Option<&str>, functions: Functions) -> bool {
        match profile {
            Some(profile) => self.by_profile.insert(key(profile), functions).is_none(),
            None => self.of_others.replace(functions).is_none(),
        }
    }

    /// The codec for a device with this profile.
    pub(crate) fn of(&self, profile: &Name) -> Option<&Functions> {
        if self.by_profile.is_empty() {
            return self.of_others.as_ref();
        }
        let of = |name: &str| self.by_profile.get(&key(name));
        of(&profile.id).or_else(|| of(&profile.other)).or(self.of_others.as_ref())
    }
}

/// People may write names in lower case.
fn key(profile: &str) -> String {
    profile.to_lowercase()
}
