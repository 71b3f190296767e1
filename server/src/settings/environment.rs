//! Environment variables as a layer of settings.

use figment::{
    Metadata, Profile, Provider,
    util::nest,
    value::{Dict, Map, Value},
};

use super::ENVIRONMENT_PREFIX;

/// The name of this layer.
pub(super) const NAME: &str = "environment";
/// What stands between a table and its key, since one underscore is part of names.
const SEPARATOR: &str = "__";

/// Variables of ours, as keys and values.
#[derive(Clone, Debug)]
pub(super) struct Environment {
    values: Vec<(String, String)>,
}

impl Environment {
    /// Takes the variables with our prefix; an empty one counts as absent, as shells make it hard to unset one.
    pub(super) fn new(variables: impl IntoIterator<Item = (String, String)>) -> Self {
        let ours = variables.into_iter().filter_map(|(name, value)| {
            let key = name.strip_prefix(ENVIRONMENT_PREFIX)?.to_ascii_lowercase().replace(SEPARATOR, ".");
            (!key.is_empty() && !value.is_empty()).then_some((key, value))
        });
        Self { values: ours.collect() }
    }
}

impl Provider for Environment {
    fn metadata(&self) -> Metadata {
        Metadata::named(NAME)
    }

    fn data(&self) -> figment::Result<Map<Profile, Dict>> {
        let mut merged = figment::Figment::new();
        for (key, text) in &self.values {
            // Numbers, booleans and [arrays] are recognised; a text needs quotes only where it looks like one of them.
            let value: Value = text.parse().unwrap_or_else(|never| match never {});
            let table = nest(key, value).into_dict().unwrap_or_default();
            merged = merged.merge(figment::providers::Serialized::defaults(table));
        }
        merged.data()
    }
}

/// The variable that sets the key of this path.
pub(super) fn variable(path: &[String]) -> String {
    format!("{ENVIRONMENT_PREFIX}{}", path.join(SEPARATOR).to_ascii_uppercase())
}
