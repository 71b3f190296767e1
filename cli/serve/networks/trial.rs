//! Tries a network that is not in the settings: whether it can be used, and what its first uplink is decoded to. What is
//! imported meanwhile is in a temporary directory, and credentials only in memory.

use std::{
    fs::{DirBuilder, remove_dir_all},
    io,
    os::unix::fs::DirBuilderExt,
    sync::Arc,
    time::Duration,
};

use bridge::{Environment, Error, MqttSettings, Observation, Running, Verdict};
use chirpstack::{ChirpStackSettings, ChirpStackShadow, GivenCredentials, GrpcSettings};
use console::{NetworkTrial, NewNetwork, TriedUplink};
use handler::application::Applications;
use runtime::Pool;
use server::{audit::AuditLog, status::ErrorChain};
use tempfile::{TempDir, tempdir_in};
use things_stack::{ApiSettings, ThingsStackApplication, ThingsStackSettings, ThingsStackShadow};
use tokio::{
    sync::{Semaphore, mpsc},
    time::timeout,
};
use tokio_util::sync::CancellationToken;
use types::{AppId, Kind, Kinded, UserId};

use super::entry::without_secrets;
use crate::{exit::chain, serve::context::Context};

/// Maximum time until the API has answered.
const START_MAX: Duration = Duration::from_secs(15);
/// Maximum time until messages are received.
const CONNECT_MAX: Duration = Duration::from_secs(10);
/// Maximum time until an uplink comes.
const UPLINK_MAX: Duration = Duration::from_secs(30);
/// Maximum time until everything is closed.
const STOP_MAX: Duration = Duration::from_secs(3);
/// Maximum number of characters of an address in the audit log.
const NOTED_CHARS_MAX: usize = 200;
/// Maximum number of messages in progress: the sandboxes are for those who are served.
const IN_FLIGHT_MAX: u16 = 256;
/// Maximum number of characters of a reason. What answers at a wrong address may say anything.
const REASON_CHARS_MAX: usize = 1000;
/// The fields of the console's form, by the settings that they stand for.
const FIELDS: [(&str, &str); 4] = [
    ("bridge.chirpstack.mqtt.url", "Broker"),
    ("bridge.things_stack.mqtt.url", "Broker"),
    ("bridge.things_stack.api.url", "API"),
    ("bridge.things_stack.applications", "Application there"),
];

/// Resources for trying networks, one after the other.
pub(in crate::serve) struct Trials {
    /// For each trial, with a temporary directory inside this state directory.
    environment: Environment,
    /// Those that may get devices.
    applications: Applications,
    turn: Semaphore,
    /// Cancelled when the handler stops.
    stopping: CancellationToken,
    audit: AuditLog,
}

impl Trials {
    pub(super) fn new(
        context: &Context,
        pool: Arc<Pool>,
        applications: Applications,
        stopping: CancellationToken,
    ) -> Self {
        let dir = context.settings.data_dir.join("bridge").join("trial");
        // A process that was killed leaves what it imported, which may have secrets of the network.
        if let Err(error) = remove_dir_all(&dir)
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(path = %dir.display(), %error, "cannot remove what is left of a network that was tried");
        }
        let (clock, random) = (context.clock.clone(), context.random.clone());
        let environment = Environment { pool, clock, random, state_dir: dir };
        Self { environment, applications, turn: Semaphore::new(1), stopping, audit: context.audit.clone() }
    }

    /// Connects to a network, and waits for an uplink. Others keep getting its messages.
    pub(in crate::serve) async fn run(&self, user_id: &UserId, app_id: &AppId, network: NewNetwork) -> NetworkTrial {
        match self.applications.check_registered(app_id).await {
            Ok(()) => {}
            Err(error) if error.kind() == Kind::NotFound => return NetworkTrial::NotRegistered,
            Err(error) => return NetworkTrial::Failed(format!("cannot look up {app_id}: {}", ErrorChain(&error))),
        }
        let Ok(_turn) = self.turn.try_acquire() else {
            return NetworkTrial::Failed("another network is being tried: try again in a minute".to_owned());
        };
        let (NewNetwork::ChirpStack { api_url, mqtt_url, .. } | NewNetwork::ThingsStack { api_url, mqtt_url, .. }) =
            &network;
        let noted = |url: &String| -> String { without_secrets(url).chars().take(NOTED_CHARS_MAX).collect() };
        let [api, broker] = [api_url, mqtt_url].map(noted);
        self.audit.note("network tried", &format_args!("user {user_id}"), &format_args!("{api} {broker}"));
        let tried = self.stopping.run_until_cancelled(self.try_run(network)).await;
        let tried = tried.unwrap_or_else(|| Err("the server is stopping: try again when it runs".to_owned()));
        tried.unwrap_or_else(|reason| NetworkTrial::Failed(reason.chars().take(REASON_CHARS_MAX).collect()))
    }

    async fn try_run(&self, network: NewNetwork) -> Result<NetworkTrial, String> {
        let dir = self.temporary_dir().map_err(|error| format!("cannot make a temporary directory: {error}"))?;
        let environment = Environment { state_dir: dir.path().to_owned(), ..self.environment.clone() };
        let (sender, mut observations) = mpsc::channel(1);
        // Only the first one is looked at.
        let observe = move |observation: Observation| _ = sender.try_send(observation);
        let starting = timeout(START_MAX, start(network, environment, observe)).await;
        let started = starting.map_err(|_| "its API does not answer: check the address".to_owned())?;
        let running = started.map_err(reason)?;
        let trial = first(running.as_ref(), &mut observations).await;
        // What is in progress is of no use any more.
        _ = timeout(STOP_MAX, running.stop()).await;
        trial
    }

    fn temporary_dir(&self) -> io::Result<TempDir> {
        let dir = &self.environment.state_dir;
        DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
        tempdir_in(dir)
    }
}

async fn start(
    network: NewNetwork,
    environment: Environment,
    observe: impl Fn(Observation) + Send + Sync + 'static,
) -> Result<Box<dyn Running>, Error> {
    match network {
        NewNetwork::ChirpStack { mqtt_url, login, api_url, api_key } => {
            let settings = ChirpStackSettings {
                mqtt: MqttSettings { url: mqtt_url, ..MqttSettings::default() },
                grpc: GrpcSettings { url: api_url, ..GrpcSettings::default() },
                in_flight_max: IN_FLIGHT_MAX,
                ..ChirpStackSettings::default()
            };
            let given = GivenCredentials { api_key, login };
            Ok(Box::new(ChirpStackShadow::start_given(&settings, given, environment, observe).await?))
        }
        NewNetwork::ThingsStack { api_url, mqtt_url, application, api_key } => {
            let settings = ThingsStackSettings {
                applications: vec![ThingsStackApplication { id: application, key_file: None }],
                key: api_key,
                api: ApiSettings { url: api_url, ..ApiSettings::default() },
                mqtt: MqttSettings { url: mqtt_url, ..MqttSettings::default() },
                in_flight_max: IN_FLIGHT_MAX,
                ..ThingsStackSettings::default()
            };
            Ok(Box::new(ThingsStackShadow::start(&settings, environment, observe).await?))
        }
    }
}

/// Waits for the connection, and then for the first uplink.
async fn first(running: &dyn Running, observations: &mut mpsc::Receiver<Observation>) -> Result<NetworkTrial, String> {
    if timeout(CONNECT_MAX, running.ready()).await.is_err() {
        let reason = running.failure().unwrap_or_else(|| "it does not answer".to_owned());
        return Err(format!("the broker cannot be used: {reason}"));
    }
    Ok(match timeout(UPLINK_MAX, observations.recv()).await {
        Ok(Some(Observation { application, profile_name, ours, theirs, .. })) => NetworkTrial::Heard(TriedUplink {
            application_id: application.id,
            application_name: application.name,
            codec: profile_name,
            ours: result(ours),
            theirs: result(theirs),
        }),
        Ok(None) | Err(_) => NetworkTrial::Silent,
    })
}

/// The reason for an error, with the name of a field in place of that of a setting.
fn reason(error: Error) -> String {
    let named = error.as_setting().and_then(|(name, reason)| {
        let (_, field) = FIELDS.iter().find(|(setting, _)| *setting == name)?;
        Some(format!("{field}: {reason}"))
    });
    named.unwrap_or_else(|| chain(&anyhow::Error::from(error)))
}

fn result(verdict: Verdict) -> Result<String, String> {
    match verdict {
        Verdict::Object(object) => Ok(object.get().to_owned()),
        Verdict::Failed(reason) => Err(reason),
        Verdict::Nothing => Err("the codec decodes nothing, or there is none".to_owned()),
    }
}
