//! Members of an object that stay, go and come, if their order stays.

use serde_json::{Map, Value};

/// The names in the order in which they are written.
pub(super) struct Members<'a> {
    pub(super) kept: Vec<&'a str>,
    pub(super) removed: Vec<&'a str>,
    pub(super) added: Vec<(&'a str, &'a Value)>,
}

impl<'a> Members<'a> {
    /// None if nothing stays, or something stands elsewhere than it did.
    pub(super) fn new(old: impl Iterator<Item = &'a str>, new: &'a Map<String, Value>) -> Option<Self> {
        let (kept, removed): (Vec<&str>, Vec<&str>) = old.partition(|name| new.contains_key(*name));
        let is_in_place = !kept.is_empty() && new.keys().zip(&kept).all(|(new, kept)| new == kept);
        let added = new.iter().skip(kept.len()).map(|(name, value)| (name.as_str(), value)).collect();
        is_in_place.then_some(Self { kept, removed, added })
    }
}
