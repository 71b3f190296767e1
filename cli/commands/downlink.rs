//! `airlock downlink`: sends a message to a device.

use anyhow::ensure;
use api::downlink::Downlink as Message;
use clap::{Args, ValueEnum};
use client::{HexBytes, HexBytesError};
use types::{AppId, ApplicationRight, DevId};

use crate::{
    command_context::CommandContext,
    exit::CommandError,
    output::{OutputOptions, Record},
    terminal::sanitize,
    values::{completion, json_object::JsonObject},
};

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  airlock downlink my-device 01FF --fport 2 --confirmed\n  airlock downlink my-device '{\"led\": true}' --json --schedule last"
)]
pub(crate) struct Downlink {
    #[command(flatten)]
    pub(crate) output: OutputOptions,
    /// Id of the device
    #[arg(add = completion::devices())]
    dev_id: DevId,
    /// Payload in hexadecimal; with --json, fields for the encoder
    #[arg(allow_hyphen_values = true)]
    payload: String,
    /// The payload is a JSON object of fields, which the application's encoder converts to bytes
    #[arg(long)]
    json: bool,
    /// Port; with --json, the encoder may choose another if it is 0
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u8).range(..=223))]
    fport: u8,
    /// Ask the device for an acknowledgement
    #[arg(long)]
    confirmed: bool,
    /// Position in the queue of the device
    #[arg(long, value_enum, default_value_t = Schedule::Replace)]
    schedule: Schedule,
    /// Application [default: the selected one]
    #[arg(long, value_name = "ID", add = completion::applications())]
    app_id: Option<AppId>,
    /// Name of the access key to use [default: the first with the right to send messages]
    #[arg(long, value_name = "NAME")]
    access_key: Option<String>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Schedule {
    /// In place of all that wait
    Replace,
    /// Before those that wait
    First,
    /// After those that wait
    Last,
}

/// Returns when the message is in the queue of its device.
pub(crate) async fn run(context: &CommandContext, command: Downlink) -> anyhow::Result<()> {
    let (payload_raw, payload_fields) = content(&command.payload, command.json)?;
    let app_id = context.mqtt_application(command.app_id)?;
    let key = context.mqtt_credential(&app_id, command.access_key, ApplicationRight::MessagesDownWrite).await?;
    let dev_id = command.dev_id.to_string();
    let message = Message {
        app_id: app_id.into(),
        dev_id: dev_id.clone(),
        port: command.fport.into(),
        confirmed: command.confirmed,
        schedule: command.schedule.name().to_owned(),
        payload_raw,
        payload_fields,
        warnings: Vec::new(),
    };
    let queued = context.handler(key).await?.schedule_downlink(message).await?;
    for warning in queued.warnings {
        context.output.message(format_args!("Warning of the encoder: {}", sanitize(&warning)))?;
    }
    let bytes = HexBytes(queued.payload_raw).to_string();
    if context.output.is_table() {
        return context.output.message(format_args!("Enqueued downlink for {dev_id}: {bytes} on port {}", queued.port));
    }
    context.output.record(Record::new([
        (("dev_id", "DevID"), dev_id.into()),
        (("payload", "Payload"), bytes.into()),
        (("port", "Port"), queued.port.into()),
        (("confirmed", "Confirmed"), queued.confirmed.into()),
    ]))
}

impl Schedule {
    fn name(self) -> &'static str {
        match self {
            Self::Replace => "replace",
            Self::First => "first",
            Self::Last => "last",
        }
    }
}

/// Bytes, or the text of fields for the encoder.
fn content(payload: &str, json: bool) -> anyhow::Result<(Vec<u8>, String)> {
    if json {
        let JsonObject(fields) = payload.parse().map_err(CommandError::invalid)?;
        return Ok((Vec::new(), fields.get().to_owned()));
    }
    let HexBytes(bytes) = payload.parse().map_err(|error: HexBytesError| CommandError::invalid(error.to_string()))?;
    ensure!(!bytes.is_empty(), CommandError::invalid("the payload is empty"));
    Ok((bytes, String::new()))
}
