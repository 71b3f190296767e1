//! The settings of the bridges: one table for each network, and a list of those that lead into this process.

use std::fmt;

use schemars::JsonSchema;
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{
        MapAccess, SeqAccess, Visitor,
        value::{MapAccessDeserializer, SeqAccessDeserializer},
    },
};
use types::{AppId, DeviceIds};

use crate::{chirpstack::ChirpStackSettings, things_stack::ThingsStackSettings};

/// The bridges to networks.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// The bridge to ChirpStack 4, `airlock bridge chirpstack`.
    pub chirpstack: ChirpStackSettings,
    /// The bridge to The Things Stack 3, `airlock bridge things-stack`.
    pub things_stack: ThingsStackSettings,
    /// Networks whose devices belong to applications of this handler. In a file, `[[bridge]]` is one of them; or
    /// `[[bridge.into]]`, beside the table above.
    pub into: Vec<NetworkSettings>,
}

/// A network whose devices belong to applications of this handler.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct NetworkSettings {
    /// How to reach ChirpStack 4.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chirpstack: Option<ChirpStackSettings>,
    /// Which applications there are which here. Events of others are ignored.
    pub applications: Vec<ApplicationSettings>,
}

/// An application of a network, and one of ours.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ApplicationSettings {
    /// The application's id or name in the network.
    pub application: String,
    /// The id of our application, which must be registered on this handler.
    #[schemars(with = "String")]
    pub app_id: AppId,
    /// Whether a device is registered when it is first heard. Otherwise events of unknown devices are dropped.
    #[serde(default)]
    pub register: bool,
    /// Where the ids of registered devices come from: `name` or `eui`.
    #[serde(default)]
    pub ids: DeviceIds,
}

/// The form of the settings as a table.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Table {
    chirpstack: ChirpStackSettings,
    things_stack: ThingsStackSettings,
    into: Vec<NetworkSettings>,
}

impl<'de> Deserialize<'de> for Settings {
    /// Reads a table, or the list of `into` alone.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;

        impl<'de> Visitor<'de> for Either {
            type Value = Settings;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("a table, or a list of tables")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Settings, A::Error> {
                let Table { chirpstack, things_stack, into } = Table::deserialize(MapAccessDeserializer::new(map))?;
                Ok(Settings { chirpstack, things_stack, into })
            }

            fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Settings, A::Error> {
                let into = Vec::deserialize(SeqAccessDeserializer::new(seq))?;
                Ok(Settings { into, ..Settings::default() })
            }
        }

        deserializer.deserialize_any(Either)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{from_value, json};

    use super::*;

    #[test]
    fn are_a_table_or_the_list_of_networks_alone() {
        let network = json!({
            "chirpstack": {"mqtt": {"url": "mqtt://localhost"}},
            "applications": [{"application": "lab", "app_id": "my-app", "register": true}],
        });
        let both = json!({"chirpstack": {"in_flight_max": 7}, "into": [network]});
        let both: Settings = from_value(both).unwrap();
        assert_eq!((both.chirpstack.in_flight_max, both.into.len()), (7, 1));
        let list: Settings = from_value(json!([network])).unwrap();
        let [NetworkSettings { applications, .. }] = &list.into[..] else { panic!("{list:?}") };
        assert!(applications[0].register && applications[0].ids == DeviceIds::Name);
        for wrong in [json!("x"), json!([{"application": "lab"}]), json!({"chirpstak": {}})] {
            assert!(from_value::<Settings>(wrong.clone()).is_err(), "{wrong}");
        }
    }
}
