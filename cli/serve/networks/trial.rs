//! Tries a network that is not in the settings: whether it can be used, and what its first uplink is decoded to. What is
//! imported meanwhile is in a temporary directory, and credentials only in memory.

mod check;
mod connect;
mod permits;

use std::{
    collections::BTreeSet,
    fs::{DirBuilder, remove_dir_all},
    io,
    os::unix::fs::DirBuilderExt,
    sync::Arc,
};

use bridge::Environment;
use console::{CheckResult, NetworkTrial, NewNetwork, TrialCheck};
use handler::application::Applications;
use runtime::Pool;
use server::audit::AuditLog;
use tempfile::{TempDir, tempdir_in};
use tokio_util::sync::CancellationToken;
use types::{AppId, UserId};

use self::permits::{TrialPermits, Unpermitted};
use super::entry::without_secrets;
use crate::serve::context::Context;

/// Maximum number of characters of an address in the audit log.
const NOTED_CHARS_MAX: usize = 200;
/// Maximum number of characters of what a check says. What answers at a wrong address may say anything.
const TEXT_CHARS_MAX: usize = 1000;

/// The reason why a trial ended that the user has replaced.
const REPLACED: &str = "you have started another trial, which ended this one";

/// Resources for trying networks, one after the other.
pub(in crate::serve) struct Trials {
    /// For each trial, with a temporary directory inside this state directory.
    environment: Environment,
    /// Those that may get devices.
    applications: Applications,
    /// Those that get devices from a network of the settings.
    bridged: BTreeSet<AppId>,
    permits: TrialPermits,
    /// Cancelled when the handler stops.
    stopping: CancellationToken,
    audit: AuditLog,
}

impl Trials {
    pub(super) fn new(
        context: &Context,
        pool: Arc<Pool>,
        (applications, bridged): (Applications, BTreeSet<AppId>),
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
        let environment = Environment { pool, clock, random, state_dir: dir, history: None };
        Self {
            environment,
            applications,
            bridged,
            permits: TrialPermits::new(),
            stopping,
            audit: context.audit.clone(),
        }
    }

    /// Checks what was entered, connects to the network, and waits for an uplink. Others keep getting its messages. All
    /// of it ends when the future is dropped.
    pub(in crate::serve) async fn run(&self, user_id: &UserId, app_id: &AppId, network: NewNetwork) -> NetworkTrial {
        let here = check::application_here(app_id, &self.applications, &self.bridged).await;
        let mut trial = NetworkTrial { checks: vec![here], uplink: None };
        let ended = match self.permits.take(user_id).await {
            Ok(permit) => {
                self.note(user_id, &network);
                tokio::select! {
                    () = self.try_run(network, &mut trial) => None,
                    () = permit.replaced.cancelled() => Some(REPLACED),
                    () = self.stopping.cancelled() => Some("the server is stopping: try again when it runs"),
                }
            }
            Err(Unpermitted::Replaced) => Some(REPLACED),
            Err(Unpermitted::OfOther) => Some("another operator is trying a network: try again in a minute"),
            Err(Unpermitted::NotEnded) => Some("your trial before has not ended yet: try again in a minute"),
        };
        trial.checks.extend(ended.map(|reason| TrialCheck::failed(check::SERVER, reason)));
        trial.checks.iter_mut().for_each(|check| shorten(&mut check.result));
        trial
    }

    fn note(&self, user_id: &UserId, network: &NewNetwork) {
        let (NewNetwork::ChirpStack { api_url, mqtt_url, .. } | NewNetwork::ThingsStack { api_url, mqtt_url, .. }) =
            network;
        let noted = |url: &String| -> String { without_secrets(url).chars().take(NOTED_CHARS_MAX).collect() };
        let [api, broker] = [api_url, mqtt_url].map(noted);
        self.audit.note("network tried", &format_args!("user {user_id}"), &format_args!("{api} {broker}"));
    }

    async fn try_run(&self, network: NewNetwork, trial: &mut NetworkTrial) {
        trial.checks.extend(check::network(&network).await);
        if !trial.is_usable() {
            return;
        }
        match self.temporary_dir() {
            Ok(dir) => {
                let environment = Environment { state_dir: dir.path().to_owned(), ..self.environment.clone() };
                connect::first_uplink(network, environment, trial).await;
            }
            Err(error) => {
                let reason = format!("cannot make a temporary directory: {error}");
                trial.checks.push(TrialCheck::failed(check::SERVER, reason));
            }
        }
    }

    fn temporary_dir(&self) -> io::Result<TempDir> {
        let dir = &self.environment.state_dir;
        DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
        tempdir_in(dir)
    }
}

fn shorten(result: &mut CheckResult) {
    let (CheckResult::Passed(text) | CheckResult::Uncertain(text) | CheckResult::Failed(text)) = result;
    if let Some((end, _)) = text.char_indices().nth(TEXT_CHARS_MAX) {
        text.truncate(end);
    }
}
