//! `airlock demo`: the main job, for someone who has read nothing.
//!
//! Everything here goes the way that a stranger's commands and programs would go; nothing is short-circuited.

mod sample;

use std::{env, net::SocketAddr, time::Duration};

use anyhow::{Context, bail};
use api::{
    handler::{Application, SimulatedUplinkMessage},
    rest::account::{NewApplication, NewUser},
};
use client::{account::AccountClient, handler::HandlerClient, mqtt::MqttClient, random_bytes, random_eui};
use serde_json::Value;
use server::telemetry::Metrics;
use tokio_util::sync::CancellationToken;
use types::{AccessKey, AppId, ApplicationRight, Credential, DevId, Random, Scope, Secret, Uplink};

use crate::{
    args::Demo,
    commands::{devices, subscribe},
    network::Network,
    script,
    serve::Stack,
    settings::Settings,
    terminal::say,
};
use sample::{CONVERTER, DECODER, DEVICES, Reading, VALIDATOR, World};

/// How long an uplink may take to arrive.
const ARRIVAL_MAX: Duration = Duration::from_secs(5);
/// The pause between two uplinks when they go on for ever.
const PAUSE: Duration = Duration::from_secs(1);
/// The user, the application, and the only device of somebody's own decoder.
const USERNAME: &str = "demo";
const APP_ID: &str = "demo-app";
const OWN_DEVICE: &str = "my-device";

/// Starts the stack in a temporary folder, sends uplinks, and shows each as it arrives.
pub(crate) async fn run(demo: Demo, settings: Settings, random: &dyn Random) -> anyhow::Result<()> {
    let script = Script::new(&demo)?;
    let folder = tempfile::tempdir().context("cannot make a temporary folder")?;
    say("Starting account, discovery, handler and MQTT broker in a temporary folder …")?;
    let stop = CancellationToken::new();
    let stack = Stack::start(settings.temporary(folder.path()), None, Metrics::install(stop.clone())?).await?;
    let result = play(&stack, script, demo.count, random).await;
    stack.stop().await;
    stop.cancel();
    result
}

async fn play(stack: &Stack, mut script: Script, count: Option<u32>, random: &dyn Random) -> anyhow::Result<()> {
    let mut stage = Stage::set(stack, &script, random).await?;
    say(stage.introduction(stack))?;
    let mut right = 0;
    for number in 0..count.unwrap_or(u32::MAX) {
        let (dev_id, reading) = script.next(number as usize, random)?;
        right += u32::from(stage.act(&dev_id, reading).await?);
        if number == 2 && count.is_none() {
            say(stage.commands(stack, stack.mqtt_address().context("the handler runs here")?))?;
        }
        if count.is_none() {
            tokio::select! {
                () = tokio::time::sleep(PAUSE) => {}
                _ = tokio::signal::ctrl_c() => return say("\nStopped; the temporary folder is gone."),
            }
        }
    }
    match count {
        Some(count) if right < count => {
            bail!("{} of {count} uplinks did not arrive with the right fields", count - right)
        }
        _ => say(format_args!("{right} uplinks arrived, each with the right fields.")),
    }
}

/// What is played: the sample, or somebody's own decoder.
enum Script {
    Sample(World),
    Own { decoder: String, payload: Vec<u8>, port: u8 },
}

impl Script {
    fn new(demo: &Demo) -> anyhow::Result<Self> {
        let (Some(path), Some(payload)) = (&demo.decoder, &demo.payload) else {
            return Ok(Self::Sample(World::new()));
        };
        let decoder = script::read(path)?;
        Ok(Self::Own { decoder, payload: payload.0.clone(), port: demo.port })
    }

    fn functions(&self) -> Application {
        let (decoder, converter, validator) = match self {
            Self::Sample(_) => (DECODER, CONVERTER, VALIDATOR),
            Self::Own { decoder, .. } => (decoder.as_str(), "", ""),
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
            Self::Own { .. } => &[OWN_DEVICE],
        }
    }

    /// The next uplink: from which device, what, and what must become of it if that is known.
    fn next(&mut self, number: usize, random: &dyn Random) -> anyhow::Result<(DevId, Uplinked)> {
        let device = number % self.devices().len();
        let dev_id = self.devices()[device].parse()?;
        Ok((
            dev_id,
            match self {
                Self::Sample(world) => {
                    let Reading { port, payload, fields } = world.measure(device, random);
                    Uplinked { port, payload, fields: Some(fields) }
                }
                Self::Own { payload, port, .. } => Uplinked { port: *port, payload: payload.clone(), fields: None },
            },
        ))
    }
}

/// An uplink to be sent.
struct Uplinked {
    port: u8,
    payload: Vec<u8>,
    /// What must arrive; whatever the decoder says when it is somebody's own.
    fields: Option<Value>,
}

/// A registered application with its devices, and somebody who listens.
struct Stage {
    handler: HandlerClient,
    listener: MqttClient,
    app_id: AppId,
    /// One of its devices.
    device: &'static str,
    password: Secret,
    key: AccessKey,
}

impl Stage {
    async fn set(stack: &Stack, script: &Script, random: &dyn Random) -> anyhow::Result<Self> {
        let network = Network::new(stack.settings().clone());
        let account = network.account()?;
        let app_id: AppId = APP_ID.parse()?;
        let password = random_password(random);
        let (credential, key) = register(&account, &app_id, &password).await?;
        let handler = network.handler(credential).await?;
        handler.register_application(&app_id).await?;
        handler.set_application(script.functions()).await?;
        for name in script.devices() {
            let dev_eui = random_eui(random);
            let device = devices::new_device(app_id.clone(), name.parse()?, Default::default(), dev_eui);
            handler.set_device(device.into()).await?;
        }
        let listener = subscribe::listen(&network.mqtt_address().await?, &app_id, Credential::Key(key.clone())).await?;
        let device = script.devices()[0];
        Ok(Self { handler, listener, app_id, device, password, key })
    }

    /// Sends one uplink, waits for it, shows it, and says whether it has the right fields.
    async fn act(&mut self, dev_id: &DevId, sent: Uplinked) -> anyhow::Result<bool> {
        let message = SimulatedUplinkMessage {
            app_id: self.app_id.to_string(),
            dev_id: dev_id.to_string(),
            payload: sent.payload.clone(),
            port: sent.port.into(),
        };
        let cost = self.handler.simulate_uplink(message).await?;
        let arrival = async {
            loop {
                let message = self.listener.next().await?;
                match serde_json::from_slice::<Uplink>(&message.payload) {
                    Ok(uplink) if is_answer(&uplink, dev_id, &sent) => return anyhow::Ok(uplink),
                    // Somebody tried the commands below, or a function failed.
                    _ => say(subscribe::line(&message.topic, &message.payload))?,
                }
            }
        };
        let uplink = tokio::time::timeout(ARRIVAL_MAX, arrival)
            .await
            .with_context(|| format!("the uplink of {dev_id} did not arrive over MQTT"))??;
        let line = subscribe::uplink_line(&uplink);
        say(format_args!("{line}  {} µs, {} fuel", cost.microseconds, cost.fuel))?;
        has_right_fields(&uplink, &sent)
    }

    fn introduction(&self, stack: &Stack) -> String {
        format!("{}\n\nUplinks of {} as they arrive over MQTT:\n", stack.places(), self.app_id)
    }

    /// What to try against the running stack, credentials included.
    fn commands(&self, stack: &Stack, mqtt: SocketAddr) -> String {
        // However this program was started: it need not be in the path.
        let airlock = env::current_exe().map_or_else(|_| "airlock".to_owned(), |path| path.display().to_string());
        let (app_id, key) = (&self.app_id, self.key.expose());
        let settings = stack.settings();
        let command = format!(
            "{airlock} --data {} --auth-server {} --discovery-address {}",
            settings.data_dir.display(),
            settings.client.auth_server,
            settings.client.discovery_address,
        );
        let (host, port) = (mqtt.ip(), mqtt.port());
        format!(
            "\nIt goes on until Ctrl-C. Meanwhile, in another terminal:\n\n  \
             mosquitto_sub -h {host} -p {port} -t '+/devices/+/up' -u {app_id} -P {key}\n  \
             echo {password} | {command} user login {USERNAME} --password-stdin\n  \
             {command} applications select {app_id}\n  \
             {command} devices list\n  \
             {command} devices simulate {device} 01F4A0A5\n",
            password = self.password.expose(),
            device = self.device,
        )
    }
}

async fn register(
    account: &AccountClient,
    app_id: &AppId,
    password: &Secret,
) -> anyhow::Result<(Credential, AccessKey)> {
    let username = USERNAME.parse()?;
    let email = format!("{USERNAME}@example.com");
    account.register_user(&NewUser { username, email, password: password.clone() }).await?;
    let client = Network::client_credentials()?;
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
    let key = may_read.and_then(|key| key.key).context("the new application has no access key that reads messages")?;
    Ok((token, key))
}

/// Whether this uplink is what became of the one that was sent.
fn is_answer(uplink: &Uplink, dev_id: &DevId, sent: &Uplinked) -> bool {
    uplink.dev_id == *dev_id && uplink.port == sent.port && uplink.payload_raw.as_deref() == Some(&sent.payload[..])
}

fn has_right_fields(uplink: &Uplink, sent: &Uplinked) -> anyhow::Result<bool> {
    let fields =
        uplink.payload_fields.as_ref().map(|fields| serde_json::from_str::<Value>(fields.get())).transpose()?;
    Ok(match (&sent.fields, &fields) {
        (Some(expected), Some(fields)) => sample::same(expected, fields),
        (None, fields) => fields.is_some(),
        (Some(_), None) => false,
    })
}

fn random_password(random: &dyn Random) -> Secret {
    Secret::new(hex::encode(random_bytes::<12>(random)))
}
