//! Brings devices to the network server behind a network broker that does not have them: those that were set before the
//! network broker was trusted or announced, and all of them after the network server has lost its data.
//!
//! Each time the handler has subscribed to the network broker, it asks about every device that has EUIs. It has no
//! user's token then, so the account service gives it one with the right `devices`.

use std::{sync::Arc, time::Duration};

use api::lorawan::Device;
use client::{account::AccountClient, network_broker::NetworkBrokerClient};
use server::{auth::ComponentToken, status::ErrorChain};
use tokio::{
    sync::Notify,
    time::{Interval, MissedTickBehavior, interval, sleep, timeout},
};
use types::{AppId, ComponentId, DevicePath, Kind, Kinded, Scope, Secret};

use super::{
    NetworkBrokers,
    registration::{count_on, failed, has_session, message},
};
use crate::{
    Error,
    registry::device::{Devices, Released},
    status::metrics,
};

/// Pause between two calls: v2's network brokers take five per second from each user, which the handler is here.
const PACE: Duration = Duration::from_millis(250);
/// Number of devices read at once, and asked about with one token.
const PAGE: usize = 100;
/// Interval at which released EUIs are looked for.
const RELEASED_INTERVAL: Duration = Duration::from_secs(60);
/// The pause after a failure that may pass; it doubles as long as it does not.
const PAUSE_MIN: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(60);
/// Maximum number of attempts of a call, which take two minutes in all.
const ATTEMPTS_MAX: u32 = 8;

/// Devices that network servers should have, and the clients and token to tell them.
pub struct Reconciliation {
    /// The devices of the handler.
    pub devices: Devices,
    /// Gives tokens for applications.
    pub account: AccountClient,
    /// The handler's own token.
    pub token: Arc<ComponentToken>,
}

/// Keeps the network server behind one network broker up to date.
pub(super) struct Reconciler {
    pub(super) id: ComponentId,
    pub(super) brokers: Arc<NetworkBrokers>,
    pub(super) reconciliation: Arc<Reconciliation>,
    /// Notified when the handler has subscribed to the network broker.
    pub(super) subscribed: Arc<Notify>,
}

/// Results of asking a network server for a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DeviceAtBroker {
    /// The device.
    Kept,
    /// Nothing, an earlier session, or another device of its application: it was brought there.
    Missing,
    /// A device of another application, whose EUIs the handler gave to this one.
    Foreign,
    /// It was refused.
    Refused,
    /// The handler no longer has it, or it has no EUIs.
    Gone,
}

/// Numbers of devices by result.
#[derive(Debug, Default)]
struct Counts {
    kept: u64,
    brought: u64,
    foreign: u64,
    refused: u64,
}

impl Reconciler {
    /// Goes on until it is dropped.
    pub(super) async fn run(&self) {
        let wanted = Notify::new();
        tokio::join!(self.notify_repeatedly(&wanted), self.check_when(&wanted));
    }

    async fn notify_repeatedly(&self, wanted: &Notify) {
        let mut last_problem = String::new();
        loop {
            if timeout(RELEASED_INTERVAL, self.subscribed.notified()).await.is_ok() {
                wanted.notify_one();
            }
            let problem = self.notify_released(wanted).await.err().map(|error| ErrorChain(&error).to_string());
            let problem = problem.unwrap_or_default();
            if !problem.is_empty() && problem != last_problem {
                tracing::warn!(id = %self.id, problem, "cannot delete released EUIs in a network server: trying again");
            }
            last_problem = problem;
        }
    }

    async fn check_when(&self, wanted: &Notify) {
        loop {
            wanted.notified().await;
            if let Err(error) = self.check_all().await {
                let error = ErrorChain(&error);
                tracing::warn!(id = %self.id, %error, "cannot compare devices with a network server before it is connected again");
            }
        }
    }

    async fn check_all(&self) -> Result<(), Error> {
        let (mut counts, mut from, mut pace) = (Counts::default(), None, pace());
        loop {
            let (applications, next) = persist(|| self.reconciliation.devices.applications(from.as_ref())).await?;
            for app_id in applications {
                self.check_application(&app_id, &mut counts, &mut pace).await?;
            }
            from = next;
            if from.is_none() {
                break;
            }
        }
        let Counts { kept, brought, foreign, refused } = counts;
        match brought + foreign + refused {
            0 => tracing::debug!(id = %self.id, kept, "a network server has all devices"),
            _ => tracing::info!(id = %self.id, kept, brought, foreign, refused, "brought devices to a network server"),
        }
        Ok(())
    }

    async fn check_application(&self, app_id: &AppId, counts: &mut Counts, pace: &mut Interval) -> Result<(), Error> {
        let (devices, mut after) = (&self.reconciliation.devices, None);
        loop {
            let page = persist(|| devices.ids(app_id, after.as_ref(), PAGE)).await?;
            if page.is_empty() {
                return Ok(());
            }
            let Some(token) = persist(|| self.token(app_id)).await? else { return Ok(()) };
            let client = persist(|| self.connect()).await?;
            for dev_id in &page {
                pace.tick().await;
                let found = match persist(|| self.check(&client, &token, DevicePath { app_id, dev_id })).await {
                    Err(error) if may_pass(error.kind()) => return Err(error),
                    Err(error) => {
                        tracing::debug!(id = %self.id, %app_id, %dev_id, error = %ErrorChain(&error), "device refused");
                        DeviceAtBroker::Refused
                    }
                    Ok(found) => found,
                };
                counts.add(found);
                if found == DeviceAtBroker::Missing {
                    pace.tick().await;
                }
            }
            after = page.last().cloned();
        }
    }

    /// Asks about a device, and brings it if it is not there. Nobody else in this process sets it meanwhile, but it may
    /// join.
    async fn check(
        &self,
        client: &NetworkBrokerClient,
        token: &Secret,
        path: DevicePath<'_>,
    ) -> Result<DeviceAtBroker, Error> {
        let _lock = self.brokers.lock(path.app_id).await?;
        let device = match self.reconciliation.devices.get(path).await {
            Err(Error::NotFound { .. }) => return Ok(DeviceAtBroker::Gone),
            device => device?,
        };
        let Some(euis) = device.euis() else { return Ok(DeviceAtBroker::Gone) };
        let mut message = message(&device);
        match client.get_device(token, euis.app_eui, euis.dev_eui).await {
            Ok(found) if found.app_id != path.app_id.as_str() => return Ok(DeviceAtBroker::Foreign),
            Ok(found) if is_current(&found, &message) => return Ok(DeviceAtBroker::Kept),
            Ok(found) => count_on(&mut message, &found),
            Err(error) if error.kind() == Kind::NotFound => {}
            Err(error) if error.kind() == Kind::Denied => return Ok(DeviceAtBroker::Foreign),
            Err(error) => return Err(failed(&self.id, error)),
        }
        client.set_device(token, &message).await.map_err(|error| failed(&self.id, error))?;
        // Before it was brought, it may have joined, and another handler may have deleted it or given it other EUIs.
        match self.reconciliation.devices.get(path).await {
            Ok(now) if now.euis() == device.euis() => match has_session(&message, &self::message(&now)) {
                true => Ok(DeviceAtBroker::Missing),
                // This is tried again.
                false => Err(Error::Conflict(format!("device {}", path.dev_id))),
            },
            Ok(_) | Err(Error::NotFound { .. }) => {
                self.brokers.delete_at(&self.id, client, token, &device).await?;
                Ok(DeviceAtBroker::Gone)
            }
            Err(error) => Err(error),
        }
    }

    /// Deletes in the network server what the operator has released, and what has moved to another application, which
    /// is `wanted` there then. The last failure is returned, after all others were attempted.
    async fn notify_released(&self, wanted: &Notify) -> Result<(), Error> {
        let (devices, mut result) = (&self.reconciliation.devices, Ok(()));
        for (released, entry) in devices.released_at(&self.id).await? {
            let holder = devices.holder(released.app_eui, released.dev_eui).await?;
            if holder.is_some_and(|(app_id, dev_id)| (&app_id, &dev_id) == (&released.app_id, &released.dev_id)) {
                // Not released yet, or registered again.
                continue;
            }
            match self.delete_released(&released).await {
                Ok(()) => {
                    // Read again: it may have arrived since.
                    let holder = devices.holder(released.app_eui, released.dev_eui).await?;
                    let has_moved = holder.is_some_and(|(app_id, _)| app_id != released.app_id);
                    devices.released_there((released, entry), &self.id, &self.brokers.ids).await?;
                    if has_moved {
                        wanted.notify_one();
                    }
                }
                Err(error) => result = Err(error),
            }
        }
        result
    }

    async fn delete_released(&self, released: &Released) -> Result<(), Error> {
        let Released { app_id, dev_id, app_eui, dev_eui, .. } = released;
        let _lock = self.brokers.lock(app_id).await?;
        let holder = self.reconciliation.devices.holder(*app_eui, *dev_eui).await?;
        if holder.is_some_and(|(holder, _)| holder == *app_id) {
            // The application has registered the pair again, meanwhile or for another device.
            return Ok(());
        }
        // Only once it has arrived, somebody can bring it there again.
        self.reconciliation.devices.check_not_leaving(DevicePath { app_id, dev_id }).await?;
        // Without the application, nobody has the rights that it takes.
        let Some(token) = self.token(app_id).await? else { return Ok(()) };
        let client = self.connect().await?;
        match client.get_device(&token, *app_eui, *dev_eui).await {
            Ok(found) if found.app_id == app_id.as_str() && found.dev_id == dev_id.as_str() => {
                client.delete_device(&token, *app_eui, *dev_eui).await.map_err(|error| failed(&self.id, error))
            }
            Ok(_) => Ok(()),
            Err(error) if matches!(error.kind(), Kind::NotFound | Kind::Denied) => Ok(()),
            Err(error) => Err(failed(&self.id, error)),
        }
    }

    /// A token with the right to the application's devices; none if the application does not exist there.
    async fn token(&self, app_id: &AppId) -> Result<Option<Secret>, Error> {
        let Reconciliation { account, token, .. } = self.reconciliation.as_ref();
        let own = token.current().ok_or(Error::HandlerToken)?;
        match account.restrict_token(&own, &[Scope::App(app_id.clone())]).await {
            Ok(token) => Ok(Some(token)),
            Err(error) if error.kind() == Kind::NotFound => Ok(None),
            Err(error) => Err(Error::DeviceToken(error)),
        }
    }

    async fn connect(&self) -> Result<NetworkBrokerClient, Error> {
        let client = self.brokers.client(&self.id).await.map_err(|error| failed(&self.id, error))?;
        client.ok_or_else(|| Error::NetworkBrokerAway(self.id.clone()))
    }
}

impl Counts {
    fn add(&mut self, found: DeviceAtBroker) {
        let (count, result) = match found {
            DeviceAtBroker::Kept => (&mut self.kept, "kept"),
            DeviceAtBroker::Missing => (&mut self.brought, "brought"),
            DeviceAtBroker::Foreign => (&mut self.foreign, "foreign"),
            DeviceAtBroker::Refused => (&mut self.refused, "refused"),
            DeviceAtBroker::Gone => return,
        };
        *count += 1;
        metrics::network_device(result);
    }
}

/// Returns true if a network server has a device with the session and the counter rules that the handler has. Network
/// servers count the frames themselves.
fn is_current(found: &Device, kept: &Device) -> bool {
    let settings = |device: &Device| (device.disable_f_cnt_check, device.uses32_bit_f_cnt);
    found.dev_id == kept.dev_id && has_session(found, kept) && settings(found) == settings(kept)
}

fn pace() -> Interval {
    let mut pace = interval(PACE);
    pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
    pace
}

/// Attempts something until it succeeds, fails in a way that does not pass, or has failed too often.
async fn persist<T, F>(attempt: impl Fn() -> F) -> Result<T, Error>
where
    F: Future<Output = Result<T, Error>>,
{
    let mut pause = PAUSE_MIN;
    for _ in 1..ATTEMPTS_MAX {
        match attempt().await {
            Err(error) if may_pass(error.kind()) => sleep(pause).await,
            done => return done,
        }
        pause = (pause * 2).min(PAUSE_MAX);
    }
    attempt().await
}

fn may_pass(kind: Kind) -> bool {
    matches!(kind, Kind::Unavailable | Kind::Timeout | Kind::Exhausted | Kind::Conflict)
}
