//! `airlock downlink`: sends a message to a device.

use anyhow::{Error, ensure};
use clap::Args;
use client::{
    HexBytes,
    data::{DataClient, Payload, Schedule},
};
use types::{AppId, ApplicationRight, DevId};

use crate::{json_object::JsonObject, network::Network, terminal::say};

#[derive(Debug, Args)]
pub(crate) struct Downlink {
    /// Id of the device
    dev_id: DevId,
    /// Payload in hexadecimal; with --json, fields for the encoder
    #[arg(allow_hyphen_values = true)]
    payload: String,
    /// The payload is a JSON object of fields, which the application's encoder converts to bytes
    #[arg(long)]
    json: bool,
    /// Port
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..))]
    fport: u8,
    /// Ask the device for an acknowledgement
    #[arg(long)]
    confirmed: bool,
    /// Application [default: the selected one]
    #[arg(long, value_name = "ID")]
    app_id: Option<AppId>,
    /// Name of the access key to use [default: the first with the right to send messages]
    #[arg(long, value_name = "NAME")]
    access_key: Option<String>,
}

/// Publishes the message; returns when the MQTT broker has acknowledged it.
pub(crate) async fn run(command: Downlink, network: &Network) -> anyhow::Result<()> {
    let Downlink { dev_id, payload, json, fport, confirmed, app_id, access_key } = command;
    let payload = content(&payload, json)?;
    let app_id = network.mqtt_application(app_id)?;
    let key = network.mqtt_credential(&app_id, access_key, ApplicationRight::MessagesDownWrite).await?;
    let client = DataClient::connect(&network.mqtt_address().await?, &app_id, &key).await?;
    client.send(&dev_id, payload, fport, confirmed, Schedule::Replace).await?;
    client.close(false).await;
    say(format_args!("Enqueued downlink for {dev_id}"))
}

/// Bytes, or fields for the encoder.
fn content(payload: &str, json: bool) -> anyhow::Result<Payload> {
    if json {
        let JsonObject(fields) = payload.parse().map_err(Error::msg)?;
        return Ok(fields.into());
    }
    let bytes: HexBytes = payload.parse()?;
    ensure!(!bytes.0.is_empty(), "the payload is empty");
    Ok(bytes.into())
}
