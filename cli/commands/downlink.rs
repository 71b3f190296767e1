//! `airlock downlink`: a message to a device.

use anyhow::{Context, ensure};
use client::{Payload, mqtt::MqttClient};
use serde_json::{Map, Value, value::to_raw_value};
use types::{ApplicationRight, Clock, Downlink};

use crate::{args, network::Network, terminal::say};

/// Hands the message to the broker; returns when that has it.
pub(crate) async fn run(command: args::Downlink, network: &Network, clock: &dyn Clock) -> anyhow::Result<()> {
    let args::Downlink { dev_id, payload, json, fport, confirmed, app_id, access_key } = command;
    let downlink = Downlink { port: fport, confirmed, ..content(&payload, json)? };
    let app_id = network.mqtt_application(app_id)?;
    let key = network.mqtt_credential(&app_id, access_key, ApplicationRight::MessagesDownWrite, clock).await?;
    let mut mqtt = MqttClient::connect(&network.mqtt_address().await?, &app_id, &key).await?;
    mqtt.send(&dev_id, &downlink).await?;
    say(format_args!("Enqueued downlink for {dev_id}"))
}

/// A downlink with nothing but what it says.
fn content(payload: &str, json: bool) -> anyhow::Result<Downlink> {
    if json {
        let fields: serde_json::Result<Map<String, Value>> = serde_json::from_str(payload);
        let fields = fields.context("with --json the payload is an object, as in {\"led\": true}")?;
        return Ok(Downlink { payload_fields: Some(to_raw_value(&fields)?), ..Downlink::default() });
    }
    let Payload(bytes) = payload.parse()?;
    ensure!(!bytes.is_empty(), "the payload is empty");
    Ok(Downlink { payload_raw: Some(bytes), ..Downlink::default() })
}
