//! Limits of one application that override the general ones.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use crate::limits::{Limits, LimitsByName};

/// Overrides for any of the members of [`Limits`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LimitOverrides(LimitsByName);

impl LimitOverrides {
    /// Applies the overrides. Fails for an unknown limit or a value out of range.
    pub fn apply(&self, general: &Limits) -> Result<Limits, serde_json::Error> {
        let mut members = serde_json::to_value(general)?;
        for (name, value) in &self.0 {
            match members.get_mut(name) {
                Some(member) => *member = (*value).into(),
                None => return Err(serde_json::Error::custom(format_args!("there is no limit `{name}`"))),
            }
        }
        let limits: Limits = serde_json::from_value(members)?;
        limits.check().map_err(serde_json::Error::custom)?;
        Ok(limits)
    }
}

/// They are checked when they are applied.
impl From<LimitsByName> for LimitOverrides {
    fn from(overrides: LimitsByName) -> Self {
        Self(overrides)
    }
}

impl<'de> Deserialize<'de> for LimitOverrides {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let overrides = Self(LimitsByName::deserialize(deserializer)?);
        // Whether names and values are valid does not depend on the general limits.
        overrides.apply(&Limits::default()).map_err(D::Error::custom)?;
        Ok(overrides)
    }
}

impl JsonSchema for LimitOverrides {
    fn schema_name() -> Cow<'static, str> {
        "LimitOverrides".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        // Every member of `Limits` is optional already.
        Limits::json_schema(generator)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Result<LimitOverrides, String> {
        serde_json::from_str(json).map_err(|error| error.to_string())
    }

    #[test]
    fn overrides_leave_other_limits_unchanged() {
        let general = Limits { fuel: 7, load_fuel: 8, ..Limits::default() };
        let one = read(r#"{"fuel": 1000, "heap_bytes_max": 2000000}"#).unwrap().apply(&general).unwrap();
        assert_eq!((one.fuel, one.heap_bytes_max, one.load_fuel), (1000, 2_000_000, 8));
    }

    #[test]
    fn all_limits_by_name_are_the_same_limits() {
        let limits = Limits { fuel: u64::MAX, heap_bytes_max: 7, time_ms_max: 8, ..Limits::default() };
        let again = LimitOverrides::from(limits.by_name()).apply(&Limits::default()).unwrap();
        assert_eq!(format!("{again:?}"), format!("{limits:?}"));
        assert_eq!(limits.by_name()["fuel"], u64::MAX);
    }

    #[test]
    fn refuses_unknown_limits_and_values_out_of_range() {
        for (json, reason) in [
            (r#"{"fule": 1}"#, "no limit `fule`"),
            (r#"{"heap_bytes_max": 4294967296}"#, "u32"),
            (r#"{"fuel": -1}"#, "-1"),
            (r#"{"fuel": "much"}"#, "much"),
            (r#"{"memory_bytes_max": 67108865}"#, "at most 67108864"),
            (r#"{"fields_depth_max": 257}"#, "at most 256"),
            (r#"{"time_ms_max": 0}"#, "at least 1"),
        ] {
            let error = read(json).unwrap_err();
            assert!(error.contains(reason), "{json}: {error}");
        }
    }
}
