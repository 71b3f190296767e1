//! Codecs by device profile, and one for all others.

use std::{
    collections::HashMap,
    sync::atomic::{AtomicBool, Ordering},
};

use runtime::Functions;

use crate::stored::Name;

/// Codecs by the profiles of devices.
#[derive(Default)]
pub struct Codecs {
    by_profile: HashMap<String, ProfileCodec>,
    of_others: Option<Functions>,
}

struct ProfileCodec {
    functions: Functions,
    /// True once an uplink had the profile.
    is_met: AtomicBool,
}

impl Codecs {
    /// Sets the codec of a profile, by its id or name, or without a profile that of all others. False if there was one.
    pub fn add(&mut self, profile: Option<&str>, functions: Functions) -> bool {
        match profile {
            Some(profile) => {
                let codec = ProfileCodec { functions, is_met: AtomicBool::new(false) };
                self.by_profile.insert(key(profile), codec).is_none()
            }
            None => self.of_others.replace(functions).is_none(),
        }
    }

    /// Returns true if an uplink had this profile, which has a codec.
    pub fn has_met(&self, profile: &str) -> bool {
        self.by_profile.get(&key(profile)).is_some_and(|codec| codec.is_met.load(Ordering::Relaxed))
    }

    /// Returns true if there is a codec of a profile.
    pub(crate) fn are_by_profile(&self) -> bool {
        !self.by_profile.is_empty()
    }

    /// The codec for a device with this profile.
    pub(crate) fn of(&self, profile: &Name) -> Option<&Functions> {
        if self.by_profile.is_empty() {
            return self.of_others.as_ref();
        }
        let of = |name: &str| {
            let codec = self.by_profile.get(&key(name))?;
            codec.is_met.store(true, Ordering::Relaxed);
            Some(&codec.functions)
        };
        let (by_id, by_name) = (of(&profile.id), of(&profile.other));
        by_id.or(by_name).or(self.of_others.as_ref())
    }
}

/// People may write names in lower case.
fn key(profile: &str) -> String {
    profile.to_lowercase()
}
