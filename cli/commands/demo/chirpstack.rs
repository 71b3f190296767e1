//! `airlock demo --chirpstack`: plays a ChirpStack server with a few devices, and decodes their events as the bridge does.
//!
//! No server, broker or Redis is needed: the events that ChirpStack would publish go to the bridge's decoder as they are.

mod devices;

use std::{sync::Arc, time::Duration};

use anyhow::{Context as _, anyhow, bail};
use chirpstack::{OfflineDecoder, OfflineDevice, OfflineUplink};
use serde_json::{Value, json};
use server::system::SystemClock;
use types::{Clock, Random, Timestamp};
use workbench::differences;

use self::devices::{DEVICES, Reading};
use super::own_name;
use crate::{
    services::pool,
    settings::Settings,
    terminal::{sanitize, say},
};

/// The pause between two uplinks when their number is not limited.
const PAUSE: Duration = Duration::from_secs(1);
const APPLICATION: &str = "119e3472-d36a-4260-a167-b51f0bd25676";

/// Plays uplinks, and prints each with the object that the bridge would publish.
pub(super) async fn run(count: Option<u32>, settings: &Settings, random: &dyn Random) -> anyhow::Result<()> {
    say("Playing a ChirpStack 4 server with four devices, each with a device profile and a codec of its own …\n")?;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let pool = Arc::new(pool::start("bridge", &settings.sandbox).await?);
    let decoder = OfflineDecoder::new(devices(), pool, clock.clone())?;
    let mut correct = 0;
    for number in 0..count.unwrap_or(u32::MAX) {
        let (index, counter) = (number as usize % DEVICES.len(), number / DEVICES.len() as u32);
        correct += u32::from(play(&decoder, (index, counter), clock.now(), random).await?);
        if number as usize == DEVICES.len() - 1 && count.is_none() {
            say(format_args!("{}\nUplinks continue until you press Ctrl-C.\n", next_steps()))?;
        }
        if count.is_none() {
            tokio::select! {
                () = tokio::time::sleep(PAUSE) => {}
                _ = tokio::signal::ctrl_c() => return say("\nStopped."),
            }
        }
    }
    match count {
        Some(count) if correct < count => bail!("{} of {count} uplinks did not get the right object", count - correct),
        _ => say(format_args!("{}\n{correct} uplinks were decoded, each with the right object.", next_steps())),
    }
}

fn devices() -> Vec<OfflineDevice> {
    let device = |(index, device): (usize, &devices::Device)| OfflineDevice {
        dev_eui: dev_eui(index),
        application_id: APPLICATION.to_owned(),
        profile_id: profile_id(index),
        script: device.codec.to_owned(),
        variables: device.variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
    };
    DEVICES.iter().enumerate().map(device).collect()
}

fn dev_eui(index: usize) -> String {
    format!("a3000000{index:08x}")
}

fn profile_id(index: usize) -> String {
    format!("00000000-0000-4000-8000-{index:012x}")
}

/// Plays one uplink. Returns true if its object is right.
async fn play(
    decoder: &OfflineDecoder,
    (index, counter): (usize, u32),
    now: Timestamp,
    random: &dyn Random,
) -> anyhow::Result<bool> {
    let device = DEVICES.get(index).context("there is no such device")?;
    let Reading { port, payload, object } = (device.measure)(random);
    let topic = format!("application/{APPLICATION}/device/{}/event/up", dev_eui(index));
    let event = event(device.name, (index, counter), now, (port, &payload)).to_string();
    let decoded = decoder.decode(&topic, event.as_bytes()).await;
    let OfflineUplink { event, fuel, elapsed } = decoded.map_err(|reason| anyhow!("{}: {reason}", device.name))?;
    let event: Value = serde_json::from_slice(&event)?;
    let time = now.to_rfc3339();
    let cost = format_args!("{} µs, {fuel} fuel", elapsed.as_micros()).to_string();
    say(format_args!(
        "{}  {:<13} port {port:<3} {:<18}  {}  {cost}",
        time.get(11..19).unwrap_or_default(),
        device.name,
        hex::encode_upper(&payload),
        sanitize(&event["object"].to_string()),
    ))?;
    Ok(differences(&object, &event["object"], false).is_empty())
}

/// An `up` event in the form that ChirpStack sends.
fn event(name: &str, (index, counter): (usize, u32), now: Timestamp, (port, payload): (u8, &[u8])) -> Value {
    json!({
        "deduplicationId": format!("{:08x}-0000-4000-8000-{counter:012x}", index), "time": now.to_rfc3339(),
        "deviceInfo": {
            "tenantName": "demo", "applicationId": APPLICATION, "applicationName": "demo",
            "deviceProfileId": profile_id(index), "deviceProfileName": name, "deviceName": name,
            "devEui": dev_eui(index), "deviceClassEnabled": "CLASS_A", "tags": {},
        },
        "devAddr": "00030000", "adr": true, "dr": 5, "fCnt": counter, "fPort": port, "confirmed": false,
        "data": base64(payload),
        "rxInfo": [{"gatewayId": "0102030405060708", "uplinkId": counter, "rssi": -60, "snr": 7.5, "crcStatus": "CRC_OK"}],
        "txInfo": {"frequency": 868_300_000, "modulation": {
            "lora": {"bandwidth": 125_000, "spreadingFactor": 7, "codeRate": "CR_4_5"},
        }},
        "regionConfigId": "eu868",
    })
}

fn base64(bytes: &[u8]) -> String {
    use base64::{Engine as _, engine::general_purpose::STANDARD};
    STANDARD.encode(bytes)
}

/// Returns the commands that do the same with the reader's own network.
fn next_steps() -> String {
    let airlock = own_name();
    let source =
        "\\\n    --mqtt mqtt://localhost:1883 --grpc http://localhost:8080 \\\n    --token-file chirpstack.key";
    format!(
        "\nThe same with your own ChirpStack: create an API key there and save it as\nchirpstack.key. First compare, \
         which publishes nothing:\n\n  {airlock} bridge chirpstack --shadow {source}\n\nThen decode:\n\n  \
         {airlock} bridge chirpstack {source}\n"
    )
}
