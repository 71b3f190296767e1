//! Bodies of discovery's HTTP API: its messages in the JSON format of v2's gRPC gateway.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::json::{Base64, bytes, is_default, null_is_default};
use crate::discovery;

/// A component and its addresses.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Announcement {
    /// The component's id.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_is_default")]
    pub id: String,
    /// `router`, `broker` or `handler`.
    #[serde(alias = "serviceName", skip_serializing_if = "is_default", deserialize_with = "null_is_default")]
    pub service_name: String,
    /// `[version]-[commit] ([build date])`.
    #[serde(alias = "serviceVersion", skip_serializing_if = "is_default", deserialize_with = "null_is_default")]
    pub service_version: String,
    /// A description for people.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_is_default")]
    pub description: String,
    /// The URL of its documentation.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_is_default")]
    pub url: String,
    /// True if it is part of the public community network.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_is_default")]
    pub public: bool,
    /// The address of its gRPC API as `host:port`; of several, separated by commas, the first is used.
    #[serde(alias = "netAddress", skip_serializing_if = "is_default", deserialize_with = "null_is_default")]
    pub net_address: String,
    /// Its ECDSA public key, in PEM.
    #[serde(alias = "publicKey", skip_serializing_if = "is_default", deserialize_with = "null_is_default")]
    pub public_key: String,
    /// The certificate of `net_address`, in PEM.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_is_default")]
    pub certificate: String,
    /// Its HTTP API: `http(s)://host(:port)`.
    #[serde(alias = "apiAddress", skip_serializing_if = "is_default", deserialize_with = "null_is_default")]
    pub api_address: String,
    /// Its MQTT server: `(mqtt(s)://)host(:port)`.
    #[serde(alias = "mqttAddress", skip_serializing_if = "is_default", deserialize_with = "null_is_default")]
    pub mqtt_address: String,
    /// Its AMQP server: `(amqp(s)://)host(:port)`.
    #[serde(alias = "amqpAddress", skip_serializing_if = "is_default", deserialize_with = "null_is_default")]
    pub amqp_address: String,
    /// The applications, gateways and prefixes that it serves.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_is_default")]
    pub metadata: Vec<Metadata>,
}

/// Something that a component serves: an object with exactly one member.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Metadata {
    /// A gateway, served by a router.
    #[serde(alias = "gatewayId")]
    GatewayId(String),
    /// A prefix of device addresses, served by a network broker: its length in bits, then 4 bytes, in base64.
    #[serde(alias = "devAddrPrefix")]
    DevAddrPrefix(
        #[serde(with = "bytes")]
        #[schemars(with = "Base64")]
        Vec<u8>,
    ),
    /// An application, served by a handler.
    #[serde(alias = "appId")]
    AppId(String),
    /// A join EUI of 8 bytes, in base64.
    #[serde(alias = "appEui")]
    AppEui(
        #[serde(with = "bytes")]
        #[schemars(with = "Base64")]
        Vec<u8>,
    ),
}

/// The components of a service.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct AnnouncementsResponse {
    /// The components; omitted if there are none.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_is_default")]
    pub services: Vec<Announcement>,
}

impl From<discovery::Announcement> for Announcement {
    fn from(message: discovery::Announcement) -> Self {
        Self {
            id: message.id,
            service_name: message.service_name,
            service_version: message.service_version,
            description: message.description,
            url: message.url,
            public: message.public,
            net_address: message.net_address,
            public_key: message.public_key,
            certificate: message.certificate,
            api_address: message.api_address,
            mqtt_address: message.mqtt_address,
            amqp_address: message.amqp_address,
            metadata: message.metadata.into_iter().filter_map(|metadata| metadata.metadata).map(Into::into).collect(),
        }
    }
}

impl From<discovery::metadata::Metadata> for Metadata {
    fn from(message: discovery::metadata::Metadata) -> Self {
        match message {
            discovery::metadata::Metadata::GatewayId(id) => Self::GatewayId(id),
            discovery::metadata::Metadata::DevAddrPrefix(prefix) => Self::DevAddrPrefix(prefix),
            discovery::metadata::Metadata::AppId(id) => Self::AppId(id),
            discovery::metadata::Metadata::AppEui(eui) => Self::AppEui(eui),
        }
    }
}

impl From<Announcement> for discovery::Announcement {
    fn from(body: Announcement) -> Self {
        let served = |metadata: Metadata| discovery::Metadata { metadata: Some(metadata.into()) };
        Self {
            id: body.id,
            service_name: body.service_name,
            service_version: body.service_version,
            description: body.description,
            url: body.url,
            public: body.public,
            net_address: body.net_address,
            public_key: body.public_key,
            certificate: body.certificate,
            api_address: body.api_address,
            mqtt_address: body.mqtt_address,
            amqp_address: body.amqp_address,
            metadata: body.metadata.into_iter().map(served).collect(),
        }
    }
}

impl From<Metadata> for discovery::metadata::Metadata {
    fn from(body: Metadata) -> Self {
        match body {
            Metadata::GatewayId(id) => Self::GatewayId(id),
            Metadata::DevAddrPrefix(prefix) => Self::DevAddrPrefix(prefix),
            Metadata::AppId(id) => Self::AppId(id),
            Metadata::AppEui(eui) => Self::AppEui(eui),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{json, to_string, to_value};

    use super::*;

    #[test]
    fn an_announcement_is_written_in_the_order_of_its_message() {
        use discovery::metadata::Metadata as Served;
        let metadata = [Served::AppId("my-app".into()), Served::DevAddrPrefix(vec![0; 5])];
        let message = discovery::Announcement {
            id: "handler-1".into(),
            service_name: "handler".into(),
            public: true,
            net_address: "localhost:1904".into(),
            api_address: "http://localhost:8084".into(),
            metadata: metadata.map(|served| discovery::Metadata { metadata: Some(served) }).into(),
            ..Default::default()
        };
        let body = Announcement::from(message.clone());
        assert_eq!(discovery::Announcement::from(body.clone()), message);
        assert_eq!(
            to_string(&body).unwrap(),
            concat!(
                r#"{"id":"handler-1","service_name":"handler","public":true,"net_address":"localhost:1904","#,
                r#""api_address":"http://localhost:8084","#,
                r#""metadata":[{"app_id":"my-app"},{"dev_addr_prefix":"AAAAAAA="}]}"#
            )
        );
    }

    #[test]
    fn no_components_are_an_empty_object() {
        assert_eq!(to_value(AnnouncementsResponse::default()).unwrap(), json!({}));
    }
}
