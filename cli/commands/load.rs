//! `airlock load`: measures the uplinks that a running server takes, and their latency to subscribers.

mod decoder;
mod device;
mod report;
mod result;

use std::{
    collections::HashMap,
    io::{IsTerminal, Write, stderr},
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use anyhow::{Context, bail};
use clap::Args;
use client::{
    Error, HexBytes,
    data::{Message, MessageStream, Topics},
    handler::HandlerClient,
    random_eui,
};
use device_file::new_device;
use futures::{StreamExt, TryStreamExt, stream};
use tokio::{
    sync::mpsc,
    task::JoinSet,
    time::{Instant, MissedTickBehavior, interval},
};
use tokio_util::sync::CancellationToken;
use types::{AppId, ApplicationRight, DevId, Random};

use self::{
    decoder::Replaced,
    device::{Arrival, Simulated},
    report::{ReportFile, Subject},
    result::{LoadResult, Target},
};
use super::subscribe;
use crate::{
    command_context::CommandContext,
    output::OutputOptions,
    values::{completion, script},
};

/// Maximum number of devices that are registered, or deleted, at the same time.
const CALLS_MAX: usize = 8;
/// Maximum number of messages that wait for a device to read them.
const ARRIVALS_MAX: usize = 16;
/// Interval at which the state is shown.
const SHOW_INTERVAL: Duration = Duration::from_secs(1);

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  airlock load --app-id my-app --rate 50 --duration 60\n  airlock load --devices 100 --payload 095C --output json\n  airlock load --decoder decoder.js --payload 095C --report load.html"
)]
pub(crate) struct Load {
    #[command(flatten)]
    pub(crate) output: OutputOptions,
    /// Application, whose functions run and whose subscribers get the uplinks [default: the selected one]
    #[arg(long, value_name = "ID", add = completion::applications())]
    app_id: Option<AppId>,
    /// Devices, which are registered for the test and deleted afterwards
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    devices: u32,
    /// Uplinks per second of all devices together
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    rate: u32,
    /// Duration of the test
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=86_400))]
    duration: u32,
    /// Payload in hexadecimal
    #[arg(long, value_name = "HEX", default_value = "01020304")]
    payload: HexBytes,
    /// LoRaWAN port
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=223))]
    port: u8,
    /// File with a decoder that the application has during the test, for all of its devices; its own functions are put
    /// back at the end
    #[arg(long, value_name = "FILE")]
    decoder: Option<PathBuf>,
    /// File for a report, ending in .html, .md or .json; may be repeated
    #[arg(long, value_name = "FILE")]
    report: Vec<ReportFile>,
    /// Seconds after which an uplink that was not delivered counts as lost
    #[arg(long, value_name = "SECONDS", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=600))]
    timeout: u32,
}

/// Sends uplinks for a time or until interrupted, and reports the results. An error if any was lost or refused.
pub(crate) async fn run(context: &CommandContext, load: Load) -> anyhow::Result<()> {
    let decoder = load.decoder.as_deref().map(script::read).transpose()?;
    let app_id = context.mqtt_application(load.app_id.clone())?;
    let key = context.mqtt_credential(&app_id, None, ApplicationRight::MessagesUpRead).await?;
    let topics = Topics::uplinks().and(Topics::new("event", "+", &["up/errors"])?);
    let messages = subscribe::connect(&context.mqtt_address().await?, &app_id, key, topics).await?;
    let handler = Arc::new(context.handler_for(&app_id).await?);
    let subject = Subject { app_id, started: context.clock.now() };
    let replaced = match decoder {
        Some(decoder) => Some(Replaced::by(decoder, &handler, &subject.app_id).await?),
        None => None,
    };
    let done = with_devices(context, &load, &subject.app_id, handler.clone(), messages).await;
    let restored = match replaced {
        Some(replaced) => replaced.restore(&handler).await,
        None => Ok(()),
    };
    let result = done?;
    restored?;
    context.output.record(result.record())?;
    load.report.iter().try_for_each(|report| report.write(&subject, &result))?;
    match result.verdict() {
        Some(verdict) => bail!(verdict),
        None => Ok(()),
    }
}

/// Runs the test with devices of its own.
async fn with_devices(
    context: &CommandContext,
    load: &Load,
    app_id: &AppId,
    handler: Arc<HandlerClient>,
    messages: MessageStream,
) -> anyhow::Result<LoadResult> {
    let random = context.random.as_ref();
    let devices = names(load.devices, random)?;
    context.output.message(format_args!("Registering {} devices in {app_id}", devices.len()))?;
    let done = match register(&handler, app_id, &devices, random).await {
        Ok(()) => measure(context, load, (app_id, &devices), handler.clone(), messages).await,
        Err(error) => Err(error),
    };
    let deleted = delete(&handler, app_id, &devices).await;
    let result = done?;
    deleted.context("cannot delete the devices of the test: delete those whose ids begin with `load-`")?;
    Ok(result)
}

/// Ids that no other test uses.
fn names(count: u32, random: &dyn Random) -> anyhow::Result<Vec<DevId>> {
    let test = hex::encode(random.array::<4>());
    (1..=count).map(|number| Ok(format!("load-{test}-{number}").parse()?)).collect()
}

async fn register(
    handler: &HandlerClient,
    app_id: &AppId,
    devices: &[DevId],
    random: &dyn Random,
) -> anyhow::Result<()> {
    let register = |dev_id: &DevId| {
        let device = new_device(app_id.clone(), dev_id.clone(), types::AppEui::default(), random_eui(random));
        handler.set_device(device.into())
    };
    let registered = stream::iter(devices).map(register).buffer_unordered(CALLS_MAX).try_for_each(async |()| Ok(()));
    registered.await.context("cannot register the devices of the test")
}

/// Deletes the devices that were registered, even if some cannot be deleted.
async fn delete(handler: &HandlerClient, app_id: &AppId, devices: &[DevId]) -> client::Result<()> {
    let delete = |dev_id| handler.delete_device(app_id, dev_id);
    let outcomes = stream::iter(devices).map(delete).buffer_unordered(CALLS_MAX);
    outcomes.fold(Ok(()), async |all, one| all.and(one)).await
}

async fn measure(
    context: &CommandContext,
    load: &Load,
    (app_id, devices): (&AppId, &[DevId]),
    handler: Arc<HandlerClient>,
    mut messages: MessageStream,
) -> anyhow::Result<LoadResult> {
    let (stop, began) = (CancellationToken::new(), Instant::now());
    let period = Duration::from_secs(1) * load.devices / load.rate;
    let (mut arrivals, mut running) = (HashMap::new(), JoinSet::new());
    for (number, dev_id) in (0..).zip(devices) {
        let (sender, received) = mpsc::channel(ARRIVALS_MAX);
        arrivals.insert(dev_id.clone(), sender);
        let device = Simulated {
            handler: handler.clone(),
            uplink: load.uplink(app_id, dev_id),
            first: began + period * number / load.devices,
            period,
            timeout: Duration::from_secs(load.timeout.into()),
            end: began + Duration::from_secs(load.duration.into()),
            arrivals: received,
            stop: stop.clone(),
        };
        running.spawn(device.run());
    }
    let shows = context.output.is_table() && stderr().is_terminal();
    let mut ticks = interval(SHOW_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let mut result = LoadResult::new(Target { devices: load.devices, rate: load.rate });
    let mut delivered = 0_u64;
    while !running.is_empty() {
        tokio::select! {
            message = messages.next() => match message.context("the MQTT connection has ended")? {
                Ok(received) => {
                    let arrival = arrival(&received.message);
                    let sender = arrivals.get(&received.dev_id).zip(arrival);
                    delivered += u64::from(matches!(sender, Some((_, Arrival::Uplink(_)))));
                    // A device that does not look at its messages has enough of them to count.
                    _ = sender.map(|(sender, arrival)| sender.try_send(arrival));
                }
                Err(Error::Missed { count, .. }) => result.missed += count,
                Err(error) => return Err(error.into()),
            },
            Some(device) = running.join_next() => result.add(device.context("a simulated device failed")?),
            _ = ticks.tick(), if shows => show(began, delivered),
            _ = tokio::signal::ctrl_c(), if !stop.is_cancelled() => stop.cancel(),
        }
    }
    if shows {
        _ = writeln!(stderr());
    }
    let time = Duration::from_secs(load.duration.into());
    result.end(if stop.is_cancelled() { began.elapsed().min(time) } else { time });
    Ok(result)
}

/// Returns the arrival that a message reports; `None` for messages that are no uplink or error.
fn arrival(message: &Message) -> Option<Arrival> {
    match message {
        Message::Uplink(_) => Some(Arrival::Uplink(Instant::now())),
        Message::Error(_) => Some(Arrival::Failure),
        _ => None,
    }
}

/// Replaces the line that was shown before.
fn show(began: Instant, delivered: u64) {
    // With standard error closed, there is nobody to tell.
    _ = write!(stderr(), "\r{:>5} s  {delivered} uplinks delivered ", began.elapsed().as_secs());
}

impl Load {
    fn uplink(&self, app_id: &AppId, dev_id: &DevId) -> api::handler::SimulatedUplinkMessage {
        api::handler::SimulatedUplinkMessage {
            app_id: app_id.to_string(),
            dev_id: dev_id.to_string(),
            payload: self.payload.0.clone(),
            port: self.port.into(),
        }
    }
}
