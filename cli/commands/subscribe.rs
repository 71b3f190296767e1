//! `airlock subscribe`: shows uplinks and joins as they arrive.

use clap::Args;
use client::mqtt::MqttClient;
use types::{Activation, AppId, ApplicationRight, Credential, ErrorEvent, Uplink};

use crate::{
    network::Network,
    terminal::{sanitize, say},
};

#[derive(Debug, Args)]
pub(crate) struct Subscribe {
    /// Application [default: the selected one]
    #[arg(long, value_name = "ID")]
    app_id: Option<AppId>,
    /// Name of the access key to use [default: the first with the right to read messages]
    #[arg(long, value_name = "NAME")]
    access_key: Option<String>,
    /// Exit after this many messages
    #[arg(long, value_name = "N")]
    count: Option<u32>,
}

/// Prints messages until interrupted, or until the requested number has arrived.
pub(crate) async fn run(command: Subscribe, network: &Network) -> anyhow::Result<()> {
    let app_id = network.mqtt_application(command.app_id)?;
    let key = network.mqtt_credential(&app_id, command.access_key, ApplicationRight::MessagesUpRead).await?;
    let mut client = connect(&network.mqtt_address().await?, &app_id, key).await?;
    say(format_args!("Listening to {app_id}; press Ctrl-C to stop"))?;
    let mut left = command.count;
    while left != Some(0) {
        let message = client.next().await?;
        say(line(&message.topic, &message.payload))?;
        left = left.map(|left| left - 1);
    }
    Ok(())
}

/// Subscribes to the uplinks and joins of an application, and to their errors.
pub(crate) async fn connect(address: &str, app_id: &AppId, credential: Credential) -> anyhow::Result<MqttClient> {
    let mut client = MqttClient::connect(address, app_id, &credential).await?;
    client.subscribe(&format!("{app_id}/devices/+/up")).await?;
    for event in ["up/errors", "activations", "activations/errors"] {
        client.subscribe(&format!("{app_id}/devices/+/events/{event}")).await?;
    }
    Ok(client)
}

/// A message as a line of text; one that cannot be parsed is shown as received.
pub(crate) fn line(topic: &str, payload: &[u8]) -> String {
    let dev_id = topic.split('/').nth(2).unwrap_or_default();
    if let Ok(uplink) = serde_json::from_slice::<Uplink>(payload) {
        return uplink_line(&uplink);
    }
    if let Ok(Activation { error: None, app_eui, dev_eui, dev_addr, .. }) = serde_json::from_slice(payload) {
        return format!("{:<16} joined as {dev_addr}, AppEUI {app_eui}, DevEUI {dev_eui}", sanitize(dev_id));
    }
    match serde_json::from_slice::<ErrorEvent>(payload) {
        Ok(event) => format!("{:<16} error: {}", sanitize(dev_id), sanitize(&event.error)),
        Err(_) => format!("{} {}", sanitize(topic), sanitize(&String::from_utf8_lossy(payload))),
    }
}

/// An uplink as a line of text: time, device, port, payload and fields.
pub(crate) fn uplink_line(uplink: &Uplink) -> String {
    let time = uplink.metadata.time.get(11..19).unwrap_or_default();
    let bytes = hex::encode_upper(uplink.payload_raw.as_deref().unwrap_or_default());
    let fields = uplink.payload_fields.as_ref().map_or("no fields", |fields| fields.get());
    format!("{time}  {:<12} port {:<3} {bytes:<16}  {}", uplink.dev_id.as_str(), uplink.port, sanitize(fields))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_message_becomes_a_line() {
        let uplink = br#"{"app_id":"a1","dev_id":"d1","port":1,"counter":0,"payload_raw":"AQI=",
            "payload_fields":{"t":1},"metadata":{"time":"2017-01-17T14:47:09.74Z"}}"#;
        assert_eq!(line("a1/devices/d1/up", uplink), "14:47:09  d1           port 1   0102              {\"t\":1}");
        assert!(line("a1/devices/d1/events/up/errors", br#"{"error":"no"}"#).ends_with("error: no"));
        let joined =
            br#"{"app_eui":"70B3D57ED0000001","dev_eui":"0102030405060708","dev_addr":"26000001","metadata":{}}"#;
        let expected = "d1               joined as 26000001, AppEUI 70B3D57ED0000001, DevEUI 0102030405060708";
        assert_eq!(line("a1/devices/d1/events/activations", joined), expected);
        let refused = br#"{"error":"no","app_eui":"","dev_eui":"","dev_addr":"","metadata":{}}"#;
        assert!(line("a1/devices/d1/events/activations/errors", refused).ends_with("error: no"));
        assert_eq!(line("a1/x", b"\x1b[2J"), "a1/x \u{fffd}[2J");
    }
}
