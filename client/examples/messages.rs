//! Subscribes to an application, simulates an uplink, and sends its device a downlink.
//!
//! `DISCOVERY=localhost:1900 CA_FILE=ca.cert APP_ID=my-app ACCESS_KEY=… cargo run -p airlock-client --example messages`

#![allow(clippy::disallowed_methods, clippy::print_stdout, reason = "this is a standalone program")]

use std::{env, error::Error, fs};

use airlock_client::{
    HexBytes, Trust,
    api::{discovery::Announcement, handler::SimulatedUplinkMessage},
    discovery::DiscoveryClient,
    handler::HandlerClient,
    mqtt::MqttClient,
    types::{AppId, Credential, DevId, Downlink, Uplink},
};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let trust = Trust::Certificate(fs::read_to_string(env::var("CA_FILE")?)?);
    let app_id = env::var("APP_ID")?.parse()?;
    let announcement = DiscoveryClient::connect(&env::var("DISCOVERY")?, &trust)?.get_by_app_id(&app_id).await?;
    let key = Credential::Key(env::var("ACCESS_KEY")?.parse()?);
    let uplink = run(&announcement, &app_id, &"thermometer".parse()?, key).await?;
    println!("{}", uplink.payload_fields.ok_or("a decoder is set")?);
    Ok(())
}

/// Returns the uplink that arrived.
pub async fn run(
    handler: &Announcement,
    app_id: &AppId,
    dev_id: &DevId,
    key: Credential,
) -> Result<Uplink, Box<dyn Error>> {
    let mut mqtt = MqttClient::connect(&handler.mqtt_address, app_id, &key).await?;
    mqtt.subscribe(&format!("{app_id}/devices/{dev_id}/up")).await?;

    let HexBytes(payload) = "09 5C".parse()?;
    let uplink = SimulatedUplinkMessage { app_id: app_id.to_string(), dev_id: dev_id.to_string(), payload, port: 1 };
    HandlerClient::connect(handler, key)?.simulate_uplink(uplink).await?;
    let uplink = serde_json::from_slice(&mqtt.next().await?.payload)?;

    let downlink = Downlink { port: 1, payload_raw: Some(vec![1]), ..Downlink::default() };
    mqtt.send(dev_id, &downlink).await?;
    Ok(uplink)
}
