//! Limits of one application where they differ from those of all.

use std::borrow::Cow;
use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use crate::settings::Limits;

/// Any of the members of [`Limits`], with the values that they are to have instead.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LimitOverrides(BTreeMap<String, u64>);

impl LimitOverrides {
    /// Changes the limits of all into those of one. An error is a limit that there is not, or that cannot be so large.
    pub fn apply(&self, all: &Limits) -> Result<Limits, serde_json::Error> {
        let mut members = serde_json::to_value(all)?;
        for (name, value) in &self.0 {
            match members.get_mut(name) {
                Some(member) => *member = (*value).into(),
                None => return Err(serde_json::Error::custom(format_args!("there is no limit `{name}`"))),
            }
        }
        let changed: Limits = serde_json::from_value(members)?;
        changed.check().map_err(serde_json::Error::custom)?;
        Ok(changed)
    }
}

impl<'de> Deserialize<'de> for LimitOverrides {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let change = Self(BTreeMap::deserialize(deserializer)?);
        // Names and sizes are the same for whichever limits it is applied to.
        change.apply(&Limits::default()).map_err(D::Error::custom)?;
        Ok(change)
    }
}

impl JsonSchema for LimitOverrides {
    fn schema_name() -> Cow<'static, str> {
        "LimitOverrides".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        // Every member of `Limits` may be left out already.
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
    fn a_change_leaves_the_other_limits_as_they_are() {
        let all = Limits { fuel: 7, load_fuel: 8, ..Limits::default() };
        let one = read(r#"{"fuel": 1000, "heap_bytes_max": 2000000}"#).unwrap().apply(&all).unwrap();
        assert_eq!((one.fuel, one.heap_bytes_max, one.load_fuel), (1000, 2_000_000, 8));
    }

    #[test]
    fn what_no_limit_can_be_is_refused() {
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
