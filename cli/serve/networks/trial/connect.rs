//! Connects to a network as a shadow, and waits for its first uplink.

use std::time::Duration;

use bridge::{Environment, Error, Observation, ObservedResult, Remote, Running};
use chirpstack::{ChirpStackSettings, ChirpStackShadow, GivenCredentials, GrpcSettings};
use console::{NetworkTrial, NewNetwork, TrialCheck, TriedUplink};
use things_stack::{ApiSettings, ThingsStackApplication, ThingsStackSettings, ThingsStackShadow};
use tokio::{sync::mpsc, time::timeout};

use super::check;

/// Maximum time until it is started.
const START_MAX: Duration = Duration::from_secs(7);
/// Maximum time until messages are received.
const CONNECT_MAX: Duration = Duration::from_secs(10);
/// Maximum time until an uplink comes.
const UPLINK_MAX: Duration = Duration::from_secs(30);
/// Maximum time until everything is closed.
const STOP_MAX: Duration = Duration::from_secs(3);
/// Maximum number of messages in progress: the sandboxes are for those who are served.
const IN_FLIGHT_MAX: u16 = 256;

/// Adds the check of the broker, and the first uplink if one comes.
pub(super) async fn first_uplink(network: NewNetwork, environment: Environment, trial: &mut NetworkTrial) {
    let (sender, mut observations) = mpsc::channel(1);
    // Only the first one is looked at.
    let observe = move |observation: Observation| _ = sender.try_send(observation);
    let running = match timeout(START_MAX, start(network, environment, observe)).await {
        Ok(Ok(running)) => running,
        Ok(Err(error)) => return trial.checks.push(check::failed(check::SERVER, error)),
        Err(_) => return trial.checks.push(TrialCheck::failed(check::SERVER, "the API does not answer any more")),
    };
    trial.checks.push(connected(running.as_ref()).await);
    if trial.is_usable()
        && let Ok(Some(observation)) = timeout(UPLINK_MAX, observations.recv()).await
    {
        trial.uplink = Some(uplink(observation));
    }
    // What is in progress is of no use any more.
    _ = timeout(STOP_MAX, running.stop()).await;
}

async fn start(
    network: NewNetwork,
    environment: Environment,
    observe: impl Fn(Observation) + Send + Sync + 'static,
) -> Result<Box<dyn Running>, Error> {
    match network {
        NewNetwork::ChirpStack { mqtt_url, login, api_url, api_key, .. } => {
            let settings = ChirpStackSettings {
                mqtt: Remote { url: mqtt_url, ..Remote::default() },
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
                mqtt: Remote { url: mqtt_url, ..Remote::default() },
                in_flight_max: IN_FLIGHT_MAX,
                ..ThingsStackSettings::default()
            };
            Ok(Box::new(ThingsStackShadow::start(&settings, environment, observe).await?))
        }
    }
}

async fn connected(running: &dyn Running) -> TrialCheck {
    match timeout(CONNECT_MAX, running.ready()).await {
        Ok(()) => check::passed(check::BROKER, "it is connected"),
        Err(_) => {
            let reason = running.failure().unwrap_or_else(|| "it does not answer: check the address".to_owned());
            TrialCheck::failed(check::BROKER, reason)
        }
    }
}

fn uplink(Observation { application, profile_name, ours, theirs, .. }: Observation) -> TriedUplink {
    TriedUplink {
        application_id: application.id,
        application_name: application.name,
        codec: profile_name,
        ours: result(ours),
        theirs: result(theirs),
    }
}

fn result(result: ObservedResult) -> Result<String, String> {
    match result {
        ObservedResult::Object(object) => Ok(object.get().to_owned()),
        ObservedResult::Failed(reason) => Err(reason),
        ObservedResult::Nothing => Err("the codec decodes nothing, or there is none".to_owned()),
    }
}
