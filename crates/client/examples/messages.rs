//! Subscribes to an application, simulates an uplink, and sends its device a downlink.
//!
//! `DISCOVERY=localhost:1900 CA_FILE=ca.cert APP_ID=my-app ACCESS_KEY=… cargo run -p airlock-client --example messages`

#![allow(clippy::disallowed_methods, clippy::print_stdout, reason = "this is a standalone program")]

use std::{env, error::Error, fs};

use airlock_client::{
    HexBytes, Trust,
    api::{discovery::Announcement, handler::SimulatedUplinkMessage},
    data::{DataClient, Message, Schedule, Topics},
    discovery::DiscoveryClient,
    handler::HandlerClient,
    types::{AppId, Credential, DevId, Uplink},
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
    let client = DataClient::connect(&handler.mqtt_address, app_id, &key).await?;
    let scheduled = Topics::new("event", "+", &["downlink/scheduled"])?;
    let listener = client.on(scheduled, |dev_id, _| println!("a downlink waits for {dev_id}")).await?;
    let mut uplinks = client.stream(Topics::uplinks_of(dev_id)).await?;

    let HexBytes(payload) = "09 5C".parse()?;
    let uplink = SimulatedUplinkMessage { app_id: app_id.to_string(), dev_id: dev_id.to_string(), payload, port: 1 };
    HandlerClient::connect(handler, key)?.simulate_uplink(uplink).await?;

    let received = uplinks.next().await.ok_or("the client was closed")??;
    client.send(&received.dev_id, [1, 255], 2, false, Schedule::Replace).await?;
    client.off(listener);
    client.close(false).await;
    match &*received.message {
        Message::Uplink(uplink) => Ok((**uplink).clone()),
        other => Err(format!("not an uplink: {other:?}").into()),
    }
}
