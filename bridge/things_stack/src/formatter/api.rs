//! The Things Stack's API at the start of a bridge.

pub(crate) mod application;

use std::{sync::Arc, time::Duration};

use bridge::{Environment, Error, StateDir, codec::single_flight::LookUpLimits, hand_over::api_watch::ApiWatch};
use client::{Trust, things_stack::ThingsStackClient};
use server::status::ErrorChain;
use types::{Kind, Kinded};

use super::directory::{API, Directory, DirectoryLimits, Loader};
use crate::{application::Application, settings::ThingsStackSettings};

/// A client of the API that the settings name.
pub(crate) fn client(settings: &ThingsStackSettings) -> Result<ThingsStackClient, Error> {
    if settings.api.url.is_empty() {
        let reason = "is empty: give the URL of The Things Stack, such as https://eu1.cloud.thethings.network";
        return Err(Error::flag("bridge.things_stack.api.url", reason, "--api"));
    }
    let trust = Trust::of_file(settings.api.ca_certificate.as_deref())?;
    ThingsStackClient::new(&settings.api.url, &trust).map_err(|error| match error {
        client::Error::Address { .. } => Error::flag("bridge.things_stack.api.url", error.to_string(), "--api"),
        other => other.into(),
    })
}

pub(crate) fn directory(
    settings: &ThingsStackSettings,
    applications: &[Arc<Application>],
    environment: &Environment,
    state_dir: &StateDir,
) -> Result<Directory, Error> {
    let api = client(settings)?;
    let loader = Loader::new(environment.pool.clone(), Duration::from_millis(settings.sandbox_wait_ms_max));
    let limits = DirectoryLimits {
        models_max: settings.models_max,
        devices_max: settings.devices_max,
        look_ups: LookUpLimits::new(settings.in_flight_max, settings.api_wait_ms_max, settings.refresh_interval_ms),
        refresh_devices_max: settings.refresh_devices_max.max(1),
    };
    Ok(Directory::open(api, applications, loader, &limits, state_dir.imported()))
}

/// Fails if the API can never be used, or cannot be used now and nothing is known from before.
pub(crate) async fn check_api(directory: &Directory, url: &str) -> Result<(), Error> {
    let Err(source) = directory.check().await else { return Ok(()) };
    match source.kind() {
        Kind::Unauthenticated | Kind::Denied if !directory.is_empty() => {
            tracing::error!(error = %ErrorChain(&source), "The Things Stack does not accept an API key: starting with the formatters on disk");
            return Ok(());
        }
        Kind::Unauthenticated | Kind::Denied | Kind::Unsupported | Kind::Invalid => {}
        _ if directory.is_empty() || matches!(source, client::Error::Unreadable { .. }) => {}
        _ => {
            tracing::warn!(url, error = %ErrorChain(&source), "starting with the formatters on disk");
            return Ok(());
        }
    }
    Err(unusable(source, url))
}

/// Watches whether the API can be used with the key of each application. What a key may do is not asked: downlinks and
/// messages need other rights than settings.
pub(crate) fn watch_api(api: &ThingsStackClient, applications: &[Arc<Application>], url: &str) -> ApiWatch {
    let known = (api.clone(), applications.to_vec(), url.to_owned());
    ApiWatch::start(applications.len(), move || {
        let (api, applications, url) = known.clone();
        Box::pin(async move {
            for application in applications {
                match api.link(&application.key.current(), application.id()).await {
                    Err(error) if error.kind() == Kind::Denied => {}
                    Err(error) if error.kind() == Kind::NotFound && is_of_stack(&error) => {}
                    Err(error) => return Err(named(unusable(error, &url), application.id())),
                    Ok(_) => {}
                }
            }
            Ok(())
        })
    })
}

/// The same error; if it is about a key, it says for which application.
fn named(error: Error, id: &str) -> Error {
    match error {
        Error::Api { network, advice, source } if source.kind() == Kind::Unauthenticated => {
            let advice = advice.map_or_else(|| format!("for {id}"), |advice| format!("for {id}, {advice}"));
            Error::Api { network, advice: Some(advice), source }
        }
        error => error,
    }
}

/// Returns true if The Things Stack has answered, and not another web server.
fn is_of_stack(error: &client::Error) -> bool {
    error.to_string().starts_with("error:")
}

/// An error of an API that cannot be used, with advice if the cause has none.
pub(crate) fn unusable(source: client::Error, url: &str) -> Error {
    let advice = match source.kind() {
        _ if source.has_advice() => return Error::Api { network: API.network, advice: None, source },
        Kind::Unauthenticated | Kind::Denied => {
            "it does not accept an API key; create one in the Console under `API keys` of the application, with the \
             rights to view its settings and devices, and to read its traffic"
                .to_owned()
        }
        // It may have failed this once. What is no such API also redirects.
        Kind::Internal => {
            format!("it failed: try again in a minute, and check that {url} is its address if it stays so")
        }
        Kind::Unsupported | Kind::Invalid => {
            format!("{url} is not a cluster of The Things Stack 3, such as https://eu1.cloud.thethings.network")
        }
        _ => format!("check that {url} is its address, and that it runs"),
    };
    Error::Api { network: API.network, advice: Some(advice), source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_error_of_a_key_names_its_application() {
        let text = |kind| {
            let source = client::Error::Refused { kind, message: "no".to_owned(), retry_after: None };
            named(unusable(source, "https://cluster"), "app1").to_string()
        };
        assert!(text(Kind::Unauthenticated).contains("for app1, it does not accept an API key"));
        assert!(!text(Kind::Unavailable).contains("app1"));
    }
}
