//! `airlock subscribe`: shows what applications receive, as it arrives.

use anyhow::Context;
use clap::Args;
use client::{
    Error, HexBytes,
    data::{DataClient, DeviceEventName, Message, MessageStream, Received, Topics},
};
use serde_json::{Value, json, to_value};
use types::{AppId, ApplicationRight, Credential, DownlinkEvent, Uplink};

use crate::{
    command_context::CommandContext,
    output::{Output, OutputOptions},
    terminal::{sanitize, say},
    values::completion,
};

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  airlock subscribe --app-id my-app\n  airlock subscribe --output jsonl --count 10")]
pub(crate) struct Subscribe {
    #[command(flatten)]
    pub(crate) output: OutputOptions,
    /// Application [default: the selected one]
    #[arg(long, value_name = "ID", add = completion::applications())]
    app_id: Option<AppId>,
    /// Name of the access key to use [default: the first with the right to read messages]
    #[arg(long, value_name = "NAME")]
    access_key: Option<String>,
    /// Exit after this many messages
    #[arg(long, value_name = "N")]
    count: Option<u32>,
}

/// Prints messages until interrupted, or until the requested number has arrived.
pub(crate) async fn run(context: &CommandContext, command: Subscribe) -> anyhow::Result<()> {
    context.output.check_columns()?;
    let app_id = context.mqtt_application(command.app_id)?;
    let key = context.mqtt_credential(&app_id, command.access_key, ApplicationRight::MessagesUpRead).await?;
    let topics = Topics::uplinks().and(Topics::new("event", "+", &[])?);
    let mut messages = connect(&context.mqtt_address().await?, &app_id, key, topics).await?;
    context.output.message(format_args!("Listening to {app_id}; press Ctrl-C to stop"))?;
    let mut left = command.count;
    while left != Some(0) {
        match messages.next().await.context("the connection has ended: start the command again")? {
            Ok(received) => show(&context.output, &received)?,
            Err(error @ Error::Missed { .. }) => {
                context.output.message(error)?;
                continue;
            }
            Err(error) => return Err(error.into()),
        }
        left = left.map(|left| left - 1);
    }
    Ok(())
}

/// Subscribes to messages of an application.
pub(crate) async fn connect(
    address: &str,
    app_id: &AppId,
    credential: Credential,
    topics: Topics,
) -> anyhow::Result<MessageStream> {
    let client = DataClient::connect(address, app_id, &credential).await?;
    Ok(client.stream(topics).await?)
}

fn show(output: &Output, received: &Received) -> anyhow::Result<()> {
    if output.is_table() { say(line(received)) } else { output.json_line(&object(received)?) }
}

/// A message as a JSON object, with what its topic says.
fn object(received: &Received) -> serde_json::Result<Value> {
    let (event, message) = match &*received.message {
        Message::Uplink(uplink) => ("up".to_owned(), to_value(uplink)?),
        Message::Field { path, value } => (format!("up/{path}"), to_value(value)?),
        Message::Activation(activation) => {
            let event = if activation.error.is_some() { "activations/errors" } else { "activations" };
            (event.to_owned(), to_value(activation)?)
        }
        Message::Downlink(name, event) => (name.as_str().to_owned(), to_value(event)?),
        Message::Device(name, event) => (name.as_str().to_owned(), to_value(event)?),
        Message::Silent(event) => (DeviceEventName::Silent.as_str().to_owned(), to_value(event)?),
        Message::Error(event) => (DeviceEventName::UpErrors.as_str().to_owned(), to_value(event)?),
        Message::Unknown(payload) => ("unknown".to_owned(), String::from_utf8_lossy(payload).into()),
    };
    Ok(json!({"event": event, "dev_id": received.dev_id, "message": message}))
}

/// A message as a line of text; one that cannot be parsed is shown as received.
pub(crate) fn line(received: &Received) -> String {
    let dev_id = received.dev_id.as_str();
    let error = |error: &str| format!("{dev_id:<16} error: {}", sanitize(error));
    match &*received.message {
        Message::Uplink(uplink) => uplink_line(uplink),
        Message::Activation(activation) => match &activation.error {
            None => format!(
                "{dev_id:<16} joined as {}, AppEUI {}, DevEUI {}",
                activation.dev_addr, activation.app_eui, activation.dev_eui
            ),
            Some(text) => error(text),
        },
        Message::Error(event) => error(&event.error),
        Message::Downlink(name, event) => format!("{dev_id:<16} {}", sanitize(&downlink(*name, event))),
        Message::Silent(event) => format!("{dev_id:<16} the device has sent nothing for {}", event.silent_after_s),
        Message::Device(name, _) => format!("{dev_id:<16} the device was {}d", name.as_str()),
        Message::Unknown(payload) => format!("{dev_id:<16} {}", sanitize(&String::from_utf8_lossy(payload))),
        message => format!("{dev_id:<16} {}", sanitize(&format!("{message:?}"))),
    }
}

/// Describes the outcome of a downlink.
fn downlink(name: DeviceEventName, event: &DownlinkEvent) -> String {
    let mut text = match name {
        DeviceEventName::DownScheduled => "downlink queued",
        DeviceEventName::DownSent => "downlink sent",
        DeviceEventName::DownAcks => "downlink acknowledged",
        _ => "downlink failed",
    }
    .to_owned();
    if let Some(message) = &event.message {
        let bytes = HexBytes(message.payload_raw.clone().unwrap_or_default());
        text += &format!(": {bytes} on port {}", message.port);
        if message.confirmed {
            text += ", confirmed";
        }
    }
    for reason in event.error.iter().chain(&event.warnings) {
        text += &format!(": {reason}");
    }
    text
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

    fn shown(levels: &str, payload: &[u8]) -> String {
        line(&Received::new("d1".parse().unwrap(), levels, payload))
    }

    #[test]
    fn every_message_becomes_an_object() {
        let object = |levels, payload| object(&Received::new("d1".parse().unwrap(), levels, payload)).unwrap();
        let error = json!({"event": "up/errors", "dev_id": "d1", "message": {"error": "no"}});
        assert_eq!(object("events/up/errors", br#"{"error":"no"}"#), error);
        let failed =
            object("events/down/errors", br#"{"error":"no gateway","message":{"port":2,"payload_raw":"AQ=="}}"#);
        assert_eq!((&failed["event"], &failed["message"]["message"]["port"]), (&json!("down/errors"), &json!(2)));
        assert_eq!(object("up", b"no JSON")["message"], "no JSON");
    }

    #[test]
    fn every_message_becomes_a_line() {
        let uplink = br#"{"app_id":"a1","dev_id":"d1","port":1,"counter":0,"payload_raw":"AQI=",
            "payload_fields":{"t":1},"metadata":{"time":"2017-01-17T14:47:09.74Z"}}"#;
        assert_eq!(shown("up", uplink), "14:47:09  d1           port 1   0102              {\"t\":1}");
        assert!(shown("events/up/errors", br#"{"error":"no"}"#).ends_with("error: no"));
        let joined =
            br#"{"app_eui":"70B3D57ED0000001","dev_eui":"0102030405060708","dev_addr":"26000001","metadata":{}}"#;
        let expected = "d1               joined as 26000001, AppEUI 70B3D57ED0000001, DevEUI 0102030405060708";
        assert_eq!(shown("events/activations", joined), expected);
        let refused = br#"{"error":"no","app_eui":"","dev_eui":"","dev_addr":"","metadata":{}}"#;
        assert!(shown("events/activations/errors", refused).ends_with("error: no"));
        let sent = br#"{"message":{"port":2,"confirmed":true,"payload_raw":"Af8="},"gateway_id":"g1","config":{}}"#;
        assert_eq!(shown("events/down/sent", sent), "d1               downlink sent: 01FF on port 2, confirmed");
        let failed = br#"{"error":"no gateway","message":{"port":2,"payload_raw":"AQ=="}}"#;
        assert!(shown("events/down/errors", failed).ends_with("downlink failed: 01 on port 2: no gateway"));
        let silent = br#"{"app_id":"a1","dev_id":"d1","silent_after_s":3600,"time":"2026-11-30T12:00:00Z"}"#;
        assert_eq!(shown("events/silent", silent), "d1               the device has sent nothing for 1h");
        assert!(shown("events/delete", b"null").ends_with("the device was deleted"));
        assert_eq!(shown("up", b"\x1b[2J"), "d1               \u{fffd}[2J");
    }
}
