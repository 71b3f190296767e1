//! `airlock downlink`: a message to a device.

use anyhow::{Context, bail};
use client::{
    Payload,
    data::{Content, DataClient},
};
use types::{ApplicationRight, Clock};

use crate::{args::Downlink, network::Network, terminal::say};

/// Hands the message to the broker; returns when that has it.
pub(crate) async fn run(command: Downlink, network: &Network, clock: &dyn Clock) -> anyhow::Result<()> {
    let Downlink { dev_id, payload, json, fport, confirmed, app_id, access_key } = command;
    let content = content(&payload, json)?;
    let app_id = network.mqtt_application(app_id)?;
    let key = network.mqtt_credential(&app_id, access_key, ApplicationRight::MessagesDownWrite, clock).await?;
    let mut data = DataClient::connect(&network.mqtt_address().await?, &app_id, &key).await?;
    let downlink = client::data::Downlink { port: fport, confirmed, schedule: None, content };
    data.send(&dev_id, &downlink).await?;
    say(format_args!("Enqueued downlink for {dev_id}"))
}

fn content(payload: &str, json: bool) -> anyhow::Result<Content> {
    if json {
        let fields = serde_json::from_str(payload);
        return fields.map(Content::Fields).context("with --json the payload is an object, as in {\"led\": true}");
    }
    let Payload(bytes) = payload.parse()?;
    if bytes.is_empty() {
        bail!("the payload is empty");
    }
    Ok(Content::Raw(bytes))
}
