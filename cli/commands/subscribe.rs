//! `airlock subscribe`: uplinks and joins of an application as they arrive.

use client::mqtt::MqttClient;
use types::{Activation, AppId, ApplicationRight, Clock, Credential, ErrorEvent, Uplink};

use crate::{
    args::Subscribe,
    network::Network,
    terminal::{inert, say},
};

/// Shows what arrives until it is interrupted, or until as many messages came as were asked for.
pub(crate) async fn run(command: Subscribe, network: &Network, clock: &dyn Clock) -> anyhow::Result<()> {
    let app_id = network.mqtt_application(command.app_id)?;
    let key = network.mqtt_credential(&app_id, command.access_key, ApplicationRight::MessagesUpRead, clock).await?;
    let mut listener = listen(&network.mqtt_address().await?, &app_id, key).await?;
    say(format_args!("Listening to {app_id}; end with Ctrl-C"))?;
    let mut left = command.count;
    while left != Some(0) {
        let message = listener.next().await?;
        say(line(&message.topic, &message.payload))?;
        left = left.map(|left| left - 1);
    }
    Ok(())
}

/// Listens to uplinks and joins of an application, and to what goes wrong with them.
pub(crate) async fn listen(address: &str, app_id: &AppId, credential: Credential) -> anyhow::Result<MqttClient> {
    let mut listener = MqttClient::connect(address, app_id, &credential).await?;
    listener.subscribe(&format!("{app_id}/devices/+/up")).await?;
    for event in ["up/errors", "activations", "activations/errors"] {
        listener.subscribe(&format!("{app_id}/devices/+/events/{event}")).await?;
    }
    Ok(listener)
}

/// One message as one line for people; what cannot be understood is shown as it came.
pub(crate) fn line(topic: &str, payload: &[u8]) -> String {
    let dev_id = topic.split('/').nth(2).unwrap_or_default();
    if let Ok(uplink) = serde_json::from_slice::<Uplink>(payload) {
        return uplink_line(&uplink);
    }
    if let Ok(Activation { error: None, app_eui, dev_eui, dev_addr, .. }) = serde_json::from_slice(payload) {
        return format!("{:<16} joined as {dev_addr}, AppEUI {app_eui}, DevEUI {dev_eui}", inert(dev_id));
    }
    match serde_json::from_slice::<ErrorEvent>(payload) {
        Ok(event) => format!("{:<16} error: {}", inert(dev_id), inert(&event.error)),
        Err(_) => format!("{} {}", inert(topic), inert(&String::from_utf8_lossy(payload))),
    }
}

/// Time, device, port, bytes and fields of an uplink.
pub(crate) fn uplink_line(uplink: &Uplink) -> String {
    let time = uplink.metadata.time.get(11..19).unwrap_or_default();
    let bytes = hex::encode_upper(uplink.payload_raw.as_deref().unwrap_or_default());
    let fields = uplink.payload_fields.as_ref().map_or("no fields", |fields| fields.get());
    format!("{time}  {:<12} port {:<3} {bytes:<16}  {}", uplink.dev_id.as_str(), uplink.port, inert(fields))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uplinks_errors_and_the_rest_each_get_a_line() {
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
