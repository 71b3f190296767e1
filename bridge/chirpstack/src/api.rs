//! ChirpStack's API at the start of a bridge.

pub(super) mod application;

use std::{path::PathBuf, sync::Arc, time::Duration};

use bridge::{Environment, Error, StateDir, codec::single_flight::LookUpLimits, hand_over::api_watch::ApiWatch};
use client::{Trust, chirpstack::ChirpStackClient};
use link::secret_file::read_secret;
use server::status::ErrorChain;
use types::{Kind, Kinded};

use super::{
    codec::directory::{Codecs, Directory, DirectoryLimits},
    settings::{ChirpStackSettings, GrpcSettings},
};

const NETWORK: &str = "ChirpStack";

pub(super) fn directory(
    settings: &ChirpStackSettings,
    environment: &Environment,
    state_dir: &StateDir,
) -> Result<Directory, Error> {
    Ok(directory_of(client(&settings.grpc)?, settings, environment, state_dir.imported()))
}

/// The devices and codecs as an API describes them, with the file of its key, and that of what is imported.
pub(super) fn directory_of(
    api: (ChirpStackClient, PathBuf),
    settings: &ChirpStackSettings,
    environment: &Environment,
    imported: PathBuf,
) -> Directory {
    let codecs = Codecs {
        pool: environment.pool.clone(),
        wait_max: Duration::from_millis(settings.sandbox_wait_ms_max),
        kept_scripts: settings.kept_scripts,
    };
    let limits = DirectoryLimits {
        profiles_max: settings.profiles_max,
        devices_max: settings.devices_max,
        look_ups: LookUpLimits::new(settings.in_flight_max, settings.api_wait_ms_max, settings.refresh_interval_ms),
    };
    Directory::open(api, codecs, &limits, imported)
}

/// A client, and the file of its API key.
fn client(settings: &GrpcSettings) -> Result<(ChirpStackClient, PathBuf), Error> {
    if settings.url.is_empty() {
        let reason = "is empty: give the URL of ChirpStack, such as http://localhost:8080";
        return Err(Error::flag("bridge.chirpstack.grpc.url", reason, "--grpc"));
    }
    let token_file = settings.token_file.as_deref().ok_or_else(|| {
        let reason = "is not set: create an API key in ChirpStack, and give its file";
        Error::flag("bridge.chirpstack.grpc.token_file", reason, "--token-file")
    })?;
    let trust = Trust::of_file(settings.ca_certificate.as_deref())?;
    let client = ChirpStackClient::connect(&settings.url, &trust, read_secret(token_file)?)?;
    Ok((client, token_file.to_owned()))
}

/// Fails if the API can never be used, or cannot be used now and nothing is known from before.
pub(super) async fn check_api(directory: &Directory, settings: &GrpcSettings) -> Result<(), Error> {
    let Err(source) = directory.check().await else { return Ok(()) };
    let (url, token_file) = (&settings.url, settings.token_file.as_deref().map(|path| path.display().to_string()));
    match source.kind() {
        Kind::Unauthenticated | Kind::Denied if !directory.is_empty() => {
            let file = token_file.unwrap_or_default();
            tracing::error!(file, "ChirpStack does not accept the API key: starting with the codecs on disk");
            return Ok(());
        }
        Kind::Unauthenticated | Kind::Denied | Kind::Unsupported => {}
        _ if directory.is_empty() => {}
        _ => {
            tracing::warn!(url, error = %ErrorChain(&source), "starting with the codecs on disk");
            return Ok(());
        }
    }
    Err(unusable(source, url, token_file.as_deref()))
}

/// Watches whether the API can be used.
pub(super) fn watch_api(directory: &Arc<Directory>, settings: &GrpcSettings) -> ApiWatch {
    let (directory, settings) = (directory.clone(), settings.clone());
    ApiWatch::start(1, move || {
        let (directory, settings) = (directory.clone(), settings.clone());
        Box::pin(async move {
            let token_file = settings.token_file.as_deref().map(|path| path.display().to_string());
            directory.check().await.map_err(|error| unusable(error, &settings.url, token_file.as_deref()))
        })
    })
}

/// An error of an API that cannot be used, with advice if the cause has none. `token_file` is the file of its key, if
/// there is one.
pub(super) fn unusable(source: client::Error, url: &str, token_file: Option<&str>) -> Error {
    let advice = match source.kind() {
        _ if source.has_advice() => return Error::Api { network: NETWORK, advice: None, source },
        Kind::Unauthenticated | Kind::Denied => {
            let file = token_file.map(|file| format!(" in `{file}`")).unwrap_or_default();
            format!("it does not accept the API key{file}; create one in ChirpStack under `API keys`")
        }
        // The cause says to check the address.
        Kind::Unsupported => "its address is that of ChirpStack's web site".to_owned(),
        Kind::Internal => {
            format!("it failed: try again in a minute, and check that {url} is its address if it stays so")
        }
        _ => format!("start ChirpStack, or correct its URL, {url}"),
    };
    Error::Api { network: NETWORK, advice: Some(advice), source }
}
