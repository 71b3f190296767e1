//! `airlock demo`: all services with a sample application, for a first look. `chirpstack.rs` plays a network instead.
//!
//! It uses the same interfaces as any client: there are no shortcuts into the services.

mod chirpstack;
mod sample;

use std::{env, fmt, net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

use anyhow::{Context, bail};
use api::{
    handler::{Application, SimulatedUplinkMessage},
    rest::account::{NewApplication, NewUser},
};
use clap::Args;
use client::{
    HexBytes,
    account::AccountClient,
    data::{Message, MessageStream, Topics},
    handler::HandlerClient,
    random_eui,
};
use device_file::new_device;
use serde_json::{Value, json};
use server::{audit::AuditLog, shutdown::Shutdown, system::SystemClock, telemetry::Metrics};
use tokio_util::sync::CancellationToken;
use types::{AccessKey, AppId, ApplicationRight, Credential, DevId, Random, Scope, Secret, Uplink};
use workbench::differences;

use self::sample::{CONVERTER, DECODER, DEVICES, Reading, Sensors, VALIDATOR};
use super::subscribe;
use crate::{
    command_context::{CommandContext, session::Client},
    output::OutputOptions,
    serve::{Environment, Stack},
    settings::{
        Settings,
        profile::{ProfileName, TemporaryProfile},
    },
    terminal::say,
    values::script,
};

/// Maximum time for an uplink to arrive.
const ARRIVAL_TIMEOUT: Duration = Duration::from_secs(5);
/// The pause between two uplinks when their number is not limited.
const PAUSE: Duration = Duration::from_secs(1);
const USERNAME: &str = "demo";
const APP_ID: &str = "demo-app";
/// The device that runs the user's own decoder.
const OWN_DEVICE: &str = "my-device";

#[derive(Debug, Args)]
pub(crate) struct Demo {
    /// Exit after this many uplinks; the exit code is 0 only if all of them had the right fields
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    count: Option<u32>,
    /// Simulate a ChirpStack 4 server, and decode its uplinks as `airlock bridge chirpstack` does
    #[arg(long, conflicts_with = "decoder")]
    chirpstack: bool,
    /// Use your own decoder instead of the sample functions
    #[arg(long, value_name = "FILE", requires = "payload")]
    decoder: Option<PathBuf>,
    /// Payload for your decoder, in hexadecimal
    #[arg(long, value_name = "HEX", requires = "decoder")]
    payload: Option<HexBytes>,
    /// Port for your decoder; LoRaWAN reserves port 0
    #[arg(long, value_name = "N", default_value_t = 1, requires = "decoder")]
    #[arg(value_parser = clap::value_parser!(u8).range(1..))]
    port: u8,
}

/// Starts the services in a temporary directory, sends uplinks, and prints each as it arrives.
pub(crate) async fn run(demo: Demo, settings: Settings, random: Arc<dyn Random>) -> anyhow::Result<()> {
    if demo.chirpstack {
        return chirpstack::run(demo.count, &settings, random.as_ref()).await;
    }
    let scenario = Scenario::new(&demo)?;
    let directory = tempfile::tempdir().context("cannot create a temporary directory")?;
    say("Starting account, discovery, handler and MQTT broker in a temporary directory …")?;
    let stop = CancellationToken::new();
    let clock = Arc::new(SystemClock);
    let audit = AuditLog::without_file(clock.clone());
    let environment = Environment { metrics: Metrics::install(stop.clone())?, audit, clock };
    let stack = Stack::start(settings.temporary(directory.path()), None, environment).await?;
    let result = send_uplinks(&stack, scenario, demo.count, random).await;
    stack.stop().await;
    stop.cancel();
    result
}

async fn send_uplinks(
    stack: &Stack,
    mut scenario: Scenario,
    count: Option<u32>,
    random: Arc<dyn Random>,
) -> anyhow::Result<()> {
    let mut setup = Setup::create(stack, &scenario, random.clone()).await?;
    say(format_args!("{}\n\nUplinks of {APP_ID} as they arrive over MQTT:\n", stack.overview()))?;
    // A demo that ends by itself may be interrupted at any time: it leaves nothing behind.
    let shutdown = if count.is_none() { Some(Shutdown::on_signals()?) } else { None };
    let (mut correct, mut access) = (0, None);
    for number in 0..count.unwrap_or(u32::MAX) {
        let (dev_id, uplink) = scenario.next(number as usize, random.as_ref())?;
        correct += u32::from(setup.send(&dev_id, uplink).await?);
        if number == 2 && count.is_none() {
            let mqtt = stack.mqtt_address().context("the handler is not running")?;
            say(setup.commands(access.insert(Access::to(stack)), mqtt))?;
        }
        if let Some(shutdown) = &shutdown {
            tokio::select! {
                () = tokio::time::sleep(PAUSE) => {}
                () = shutdown.requested.cancelled() => return say("\nStopped, and removed the temporary directory."),
            }
        }
    }
    match count {
        Some(count) if correct < count => {
            bail!("{} of {count} uplinks did not arrive with the right fields", count - correct)
        }
        _ => say(format_args!("{correct} uplinks arrived, each with the right fields.")),
    }
}

/// Functions that run, and uplinks that are sent.
enum Scenario {
    Sample(Sensors),
    OwnDecoder { decoder: String, payload: Vec<u8>, port: u8 },
}

impl Scenario {
    fn new(demo: &Demo) -> anyhow::Result<Self> {
        let (Some(path), Some(payload)) = (&demo.decoder, &demo.payload) else {
            return Ok(Self::Sample(Sensors::new()));
        };
        let decoder = script::read(path)?;
        Ok(Self::OwnDecoder { decoder, payload: payload.0.clone(), port: demo.port })
    }

    fn application(&self) -> Application {
        let (decoder, converter, validator) = match self {
            Self::Sample(_) => (DECODER, CONVERTER, VALIDATOR),
            Self::OwnDecoder { decoder, .. } => (decoder.as_str(), "", ""),
        };
        Application {
            app_id: APP_ID.to_owned(),
            payload_format: "custom".to_owned(),
            decoder: decoder.to_owned(),
            converter: converter.to_owned(),
            validator: validator.to_owned(),
            ..Application::default()
        }
    }

    fn devices(&self) -> &[&'static str] {
        match self {
            Self::Sample(_) => &DEVICES,
            Self::OwnDecoder { .. } => &[OWN_DEVICE],
        }
    }

    fn next(&mut self, number: usize, random: &dyn Random) -> anyhow::Result<(DevId, SentUplink)> {
        let device = number % self.devices().len();
        let dev_id = self.devices()[device].parse()?;
        let uplink = match self {
            Self::Sample(sensors) => {
                let Reading { port, payload, fields } = sensors.measure(device, random);
                SentUplink { port, payload, expected: Some(fields) }
            }
            Self::OwnDecoder { payload, port, .. } => {
                SentUplink { port: *port, payload: payload.clone(), expected: None }
            }
        };
        Ok((dev_id, uplink))
    }
}

struct SentUplink {
    port: u8,
    payload: Vec<u8>,
    /// The fields that must arrive; any fields will do if `None`.
    expected: Option<Value>,
}

/// A registered application with its devices, and its messages as they arrive.
struct Setup {
    handler: HandlerClient,
    receiver: MessageStream,
    app_id: AppId,
    device: &'static str,
    password: Secret,
    key: AccessKey,
}

impl Setup {
    async fn create(stack: &Stack, scenario: &Scenario, random: Arc<dyn Random>) -> anyhow::Result<Self> {
        let context = CommandContext::new(
            stack.settings().clone(),
            OutputOptions::default(),
            Arc::new(SystemClock),
            random.clone(),
        );
        let app_id: AppId = APP_ID.parse()?;
        let password = Secret::new(hex::encode(random.array::<7>()));
        let (token, key) = create_application(&context.account()?, &app_id, &password).await?;
        let handler = context.handler(token).await?;
        handler.register_application(&app_id).await?;
        handler.set_application(scenario.application()).await?;
        for name in scenario.devices() {
            let dev_eui = random_eui(random.as_ref());
            let device = new_device(app_id.clone(), name.parse()?, Default::default(), dev_eui);
            handler.set_device(device.into()).await?;
        }
        let credential = Credential::Key(key.clone());
        let events = Topics::new("event", "+", &["up/errors", "activations", "activations/errors"])?;
        let (address, topics) = (context.mqtt_address().await?, Topics::uplinks().and(events));
        let receiver = subscribe::connect(&address, &app_id, credential, topics).await?;
        let device = scenario.devices()[0];
        Ok(Self { handler, receiver, app_id, device, password, key })
    }

    /// Sends one uplink, waits for it, prints it, and returns whether it has the right fields.
    async fn send(&mut self, dev_id: &DevId, sent: SentUplink) -> anyhow::Result<bool> {
        let message = SimulatedUplinkMessage {
            app_id: self.app_id.to_string(),
            dev_id: dev_id.to_string(),
            payload: sent.payload.clone(),
            port: sent.port.into(),
        };
        let cost = self.handler.simulate_uplink(message).await?;
        let arrival = async {
            loop {
                let received = self.receiver.next().await.context("the MQTT connection has ended")??;
                match &*received.message {
                    Message::Uplink(uplink) if is_same_uplink(uplink, dev_id, &sent) => {
                        return anyhow::Ok(uplink.clone());
                    }
                    // An uplink that the user sends with the commands below, or an error event.
                    _ => say(subscribe::line(&received))?,
                }
            }
        };
        let uplink = tokio::time::timeout(ARRIVAL_TIMEOUT, arrival)
            .await
            .with_context(|| format!("the uplink of {dev_id} did not arrive over MQTT"))??;
        let line = subscribe::uplink_line(&uplink);
        say(format_args!("{line}  {} µs, {} fuel", cost.microseconds, cost.fuel))?;
        has_right_fields(&uplink, &sent)
    }

    /// Commands to try against the running services, with credentials.
    fn commands(&self, access: &Access, mqtt: SocketAddr) -> String {
        let (airlock, app_id, key) = (own_name(), &self.app_id, self.key.expose());
        let command = format!("{airlock} {access}");
        let (host, port) = (mqtt.ip(), mqtt.port());
        format!(
            "\nUplinks continue until you press Ctrl-C. Try these commands in another terminal:\n\n  \
             echo {password} | {command} user login {USERNAME} --password-stdin\n  \
             {command} applications select {app_id}\n  \
             {command} devices list\n  \
             {command} devices simulate {device} 01F4A0A5\n  \
             mosquitto_sub -h {host} -p {port} -t '+/devices/+/up' -u {app_id} \\\n    -P {key}\n",
            password = self.password.expose(),
            device = self.device,
        )
    }
}

/// The options with which commands reach the running services.
enum Access {
    /// The name of settings that exist as long as this value.
    Profile(TemporaryProfile),
    /// All of them.
    Options(String),
}

impl Access {
    fn to(stack: &Stack) -> Self {
        let settings = stack.settings();
        let (auth_server, discovery_address) = (&settings.client.auth_server, &settings.client.discovery_address);
        // A string of JSON is one of TOML.
        let text = format!(
            "data_dir = {}\n[client]\nauth_server = {}\ndiscovery_address = {}\n",
            json!(settings.data_dir),
            json!(auth_server),
            json!(discovery_address)
        );
        ProfileName::temporary("demo", &text).map_or_else(
            // The user's directories may be read-only, which is no reason to end the demo.
            |_| {
                let data_dir = settings.data_dir.display();
                let addresses = format!("--auth-server {auth_server} --discovery-address {discovery_address}");
                Self::Options(format!("--data {data_dir} {addresses}"))
            },
            Self::Profile,
        )
    }
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Profile(profile) => write!(f, "--profile {}", profile.name),
            Self::Options(options) => f.write_str(options),
        }
    }
}

/// Returns the name by which a shell finds this program: that of the file if it is in the PATH, else its path.
fn own_name() -> String {
    let Ok(own) = env::current_exe().and_then(|path| path.canonicalize()) else { return "airlock".to_owned() };
    let path = env::var_os("PATH").unwrap_or_default();
    let found = env::split_paths(&path).find_map(|directory| directory.join("airlock").canonicalize().ok());
    if found.as_ref() == Some(&own) { "airlock".to_owned() } else { own.display().to_string() }
}

/// Creates the user and the application; returns a token for it and a key that may read its messages.
async fn create_application(
    account: &AccountClient,
    app_id: &AppId,
    password: &Secret,
) -> anyhow::Result<(Credential, AccessKey)> {
    let username = USERNAME.parse()?;
    let email = format!("{USERNAME}@example.com");
    account.register_user(&NewUser { username, email, password: password.clone() }).await?;
    let client = Client::Own.credentials()?;
    let token = account.password_token(&client, &USERNAME.parse()?, password, &[]).await?.access_token;
    let new = NewApplication {
        id: app_id.clone(),
        name: "The sample application of airlock demo".to_owned(),
        euis: Vec::new(),
        access_keys: Vec::new(),
    };
    account.create_application(&Credential::Token(token.clone()), &new).await?;
    let token = Credential::Token(account.restrict_token(&token, &[Scope::App(app_id.clone())]).await?);
    let keys = account.access_keys(&token, app_id).await?;
    let may_read = keys.into_iter().find(|key| key.rights.contains(&ApplicationRight::MessagesUpRead));
    let key =
        may_read.and_then(|key| key.key).context("the new application has no access key that may read messages")?;
    Ok((token, key))
}

fn is_same_uplink(uplink: &Uplink, dev_id: &DevId, sent: &SentUplink) -> bool {
    uplink.dev_id == *dev_id && uplink.port == sent.port && uplink.payload_raw.as_deref() == Some(&sent.payload[..])
}

fn has_right_fields(uplink: &Uplink, sent: &SentUplink) -> anyhow::Result<bool> {
    let Some(fields) = &uplink.payload_fields else { return Ok(false) };
    let Some(expected) = &sent.expected else { return Ok(true) };
    let fields: Value = serde_json::from_str(fields.get())?;
    Ok(differences(expected, &fields, false).is_empty())
}
