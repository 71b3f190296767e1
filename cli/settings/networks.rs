//! The settings of the bridges: one table for each network, and a list of those that lead into this process.

use chirpstack::ChirpStackSettings;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use things_stack::ThingsStackSettings;
use types::{AppId, DeviceIds};

/// The bridges to networks.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct BridgeSettings {
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
    /// The name of the network for people, and in metrics, such as `north`: 1 to 64 characters. If unset, the product and
    /// the address, such as `ChirpStack at broker:1883`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Connection to ChirpStack 4.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chirpstack: Option<ChirpStackSettings>,
    /// Connection to The Things Stack 3.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub things_stack: Option<ThingsStackSettings>,
    /// True to take nothing from the network: our runs of its codecs are compared with its own results, and operators
    /// see the report in the console. Then there are no `applications`.
    pub shadow: bool,
    /// The network's applications, each with the one here that gets its events. Events of others are ignored.
    pub applications: Vec<ApplicationSettings>,
}

/// An application of a network, and one of ours.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ApplicationSettings {
    /// The application's id or name in ChirpStack, or its id and tenant in The Things Stack, such as `app1@tenant1`.
    pub application: String,
    /// The id of our application, which must be registered on this handler.
    #[schemars(with = "String")]
    pub app_id: AppId,
    /// True to register a device when it is first heard. Otherwise events of unknown devices are dropped.
    #[serde(default)]
    pub register: bool,
    /// Where the ids of registered devices come from: `name` or `eui`.
    #[serde(default)]
    pub ids: DeviceIds,
}
