//! Checks of what an operator has entered, before anything is received. Each has the name of its field.

use std::{collections::BTreeSet, time::Duration};

use bridge::{ApplicationCheck, Error};
use console::{CheckResult, NewNetwork, TrialCheck};
use handler::application::Applications;
use server::status::ErrorChain;
use tokio::time::timeout;
use types::{AppId, Kind, Kinded};

use crate::exit::chain;

/// The culprit if nothing that was entered is at fault.
pub(super) const SERVER: &str = "This server";
pub(super) const BROKER: &str = "Broker";
const HERE: &str = "Application here";
const THERE: &str = "Application there";
const API: &str = "API";
/// The fields of the console's form, by the settings that they stand for.
const FIELDS: [(&str, &str); 4] = [
    ("bridge.chirpstack.mqtt.url", BROKER),
    ("bridge.things_stack.mqtt.url", BROKER),
    ("bridge.things_stack.api.url", API),
    ("bridge.things_stack.applications", THERE),
];
/// Maximum time until the API has answered.
const ANSWER_MAX: Duration = Duration::from_secs(8);

/// Checks that an application is registered here, and has no network yet.
pub(super) async fn application_here(
    app_id: &AppId,
    applications: &Applications,
    bridged: &BTreeSet<AppId>,
) -> TrialCheck {
    let result = match applications.check_registered(app_id).await {
        Ok(()) if bridged.contains(app_id) => CheckResult::Uncertain(format!(
            "a `[[bridge]]` of this server has {app_id} already, and with two of them the server does not start: use \
             another application here, or change that entry"
        )),
        Ok(()) => CheckResult::Passed(format!("{app_id} is registered with this handler")),
        Err(error) if error.kind() == Kind::NotFound => CheckResult::Failed(format!(
            "{app_id} is not registered with this handler: add it with `airlock applications add`, or register it on \
             its page in the console"
        )),
        Err(error) => CheckResult::Failed(format!("cannot look up {app_id}: {}", ErrorChain(&error))),
    };
    TrialCheck { what: HERE, result }
}

/// Checks the API, its key, and the application there.
pub(super) async fn network(network: &NewNetwork) -> Vec<TrialCheck> {
    let checking = async {
        match network {
            NewNetwork::ChirpStack { api_url, api_key, application, .. } => {
                chirpstack::check_application(api_url, api_key, application).await
            }
            NewNetwork::ThingsStack { api_url, api_key, application, .. } => {
                things_stack::check_application(api_url, api_key, application).await
            }
        }
    };
    let application = match timeout(ANSWER_MAX, checking).await {
        Ok(Ok(application)) => application,
        Ok(Err(error)) => return vec![failed(API, error)],
        Err(_) => return vec![TrialCheck::failed(API, "it does not answer: check the address")],
    };
    let there = match application {
        ApplicationCheck::Found(text) if text.is_empty() => CheckResult::Passed("the API has it".to_owned()),
        ApplicationCheck::Found(text) => CheckResult::Passed(format!("the API has it: {text}")),
        ApplicationCheck::Uncertain(reason) => CheckResult::Uncertain(reason),
        ApplicationCheck::Missing(reason) => CheckResult::Failed(reason),
    };
    vec![passed(API, "it accepts the key"), TrialCheck { what: THERE, result: there }]
}

pub(super) fn passed(what: &'static str, text: &str) -> TrialCheck {
    TrialCheck { what, result: CheckResult::Passed(text.to_owned()) }
}

/// The check that an error is of: that of the field whose setting is not valid, and otherwise `what`.
pub(super) fn failed(what: &'static str, error: Error) -> TrialCheck {
    let named = error.as_setting().and_then(|(name, reason)| {
        let &(_, field) = FIELDS.iter().find(|(setting, _)| *setting == name)?;
        Some(TrialCheck::failed(field, reason))
    });
    let what = if matches!(error, Error::Api { .. }) { API } else { what };
    named.unwrap_or_else(|| TrialCheck::failed(what, chain(&anyhow::Error::from(error))))
}
