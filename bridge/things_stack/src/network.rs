//! The Things Stack as a network whose devices belong to applications of this process.

mod devices;
mod event;
mod intake;
mod send;

use std::{collections::HashMap, sync::Arc, time::Duration};

use bridge::{
    Environment, Error, Network, NetworkState, StateDir,
    hand_over::{
        HandOver,
        api_watch::ApiWatch,
        network::{Receiver, Route, not_sent, refusal},
        traffic::NetworkTraffic,
    },
    metrics,
    receive::{
        dedup::Dedup,
        lanes::{LaneWork, apart, work_of},
        report_connections,
    },
};
use client::things_stack::{QueueOperation, ThingsStackClient};
use futures::future::{BoxFuture, join_all};
use link::delivery::Delivery;
use parking_lot::Mutex;
use server::telemetry::Health;
use tokio::sync::watch;
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};
use types::{AppId, DevEui, Kind, Kinded, NetworkDownlink, NetworkRefusal};

use self::{devices::Devices, intake::Intake};
use super::{
    application::{
        Application,
        topic::{Topic, device_key, messages},
    },
    bridge::{sources, subscription},
    feed::{self, Feed, catch_up::CatchUp, position::Positions},
    formatter::{
        api::{client, watch_api},
        directory::API,
    },
    http::webhook::{WebhookListener, ids::WebhookIds},
    settings::{ThingsStackApplication, ThingsStackSettings},
};

/// The Things Stack: a connection to its MQTT server for each application, or a receiver of its webhooks, and its API,
/// to which downlinks go.
pub struct ThingsStackNetwork {
    api: ThingsStackClient,
    api_watch: ApiWatch,
    applications: HashMap<AppId, Arc<Application>>,
    devices: Arc<Devices>,
    positions: Arc<Positions>,
    /// Empty once it is stopped.
    feeds: Mutex<Vec<Feed>>,
    webhook: Option<WebhookListener>,
    webhooks: Arc<WebhookIds>,
    subscribed: Vec<watch::Receiver<bool>>,
    traffic: Arc<NetworkTraffic>,
    stopping: CancellationToken,
    _save: AbortOnDropHandle<()>,
    _state_dir: StateDir,
}

impl ThingsStackNetwork {
    /// Checks the settings, and connects in the background, however long The Things Stack is away.
    pub fn start(settings: &ThingsStackSettings, routes: Vec<Route>, environment: &Environment) -> Result<Self, Error> {
        metrics::describe();
        let settings = with_applications(settings, &routes)?;
        let applications = Application::all(&settings)?;
        let api = client(&settings)?;
        let state_dir = StateDir::open(environment.state_dir.clone())?;
        let client_id = state_dir.client_id(environment.random.as_ref())?;
        let sources = sources(&settings, &applications, &client_id)?;
        let positions = Arc::new(Positions::open(state_dir.positions()));
        let (devices, stopping) =
            (Arc::new(Devices::new(api.clone(), &settings, environment.clock.clone())), CancellationToken::new());
        let window = Duration::from_millis(settings.duplicate_window_ms);
        let dedup = Dedup::new(settings.duplicate_messages_max, window, environment.clock.clone());
        let app_ids = routes.iter().map(|route| (route.application.clone(), route.app_id.clone())).collect();
        let traffic = Arc::new(NetworkTraffic::new(environment.clock.clone()));
        let work = work(Intake {
            receivers: receivers(&applications, routes),
            devices: devices.clone(),
            hand_over: HandOver::new(dedup, traffic.clone(), stopping.clone()),
        });
        let webhooks = Arc::new(WebhookIds::new(&settings.api.url));
        let webhook = WebhookListener::new(&settings, &applications, webhooks.clone(), work.clone());
        let feed = |(application, endpoint): (Arc<Application>, _)| {
            let subscription = subscription(&settings, messages(&application.uid));
            let intake = feed::Intake {
                catch_up: CatchUp::new(api.clone(), application),
                positions: positions.clone(),
                clock: environment.clock.clone(),
            };
            Feed::start(endpoint, subscription, intake, work.clone())
        };
        let feeds: Vec<_> = sources.into_iter().map(feed).collect();
        let api_watch = watch_api(&api, &applications, &settings.api.url);
        Ok(Self {
            applications: by_app_id(applications, &app_ids),
            devices,
            subscribed: feeds.iter().map(Feed::subscribed).collect(),
            feeds: Mutex::new(feeds),
            webhook,
            webhooks,
            traffic,
            stopping,
            _save: AbortOnDropHandle::new(tokio::spawn(positions.clone().run())),
            positions,
            api,
            api_watch,
            _state_dir: state_dir,
        })
    }

    /// Returns the listener for messages as a webhook; `None` if they come over MQTT.
    pub fn webhook(&self) -> Option<&WebhookListener> {
        self.webhook.as_ref()
    }

    async fn try_send(
        &self,
        app_id: &AppId,
        dev_eui: DevEui,
        downlink: NetworkDownlink,
    ) -> Result<String, NetworkRefusal> {
        let app_eui = downlink.app_eui;
        let unknown = || {
            let app_eui = if app_eui.is_zero() { String::new() } else { format!(" and AppEUI {app_eui}") };
            let reason = format_args!(
                "The Things Stack has no device with DevEUI {dev_eui}{app_eui} in the application, or more than one"
            );
            NetworkRefusal::new(Kind::NotFound, reason)
        };
        let application = self.applications.get(app_id).ok_or_else(unknown)?;
        let operation = if downlink.replaces_others { QueueOperation::Replace } else { QueueOperation::Push };
        let id = downlink.id.clone();
        let body = send::request(downlink).map_err(|error| NetworkRefusal::new(Kind::Internal, error))?;
        let (mut webhook, mut is_webhook_gone, mut is_device_gone) = (self.webhooks.get(application), false, false);
        loop {
            let (device, is_listed) = match self.devices.id(application, (app_eui, dev_eui)).await {
                Ok(found) => found,
                Err(error) if is_device_gone && is_of_key(&error) => return Err(unknown()),
                Err(error) => return Err(not_sent(API, &error)),
            };
            let device = device.ok_or_else(unknown)?;
            let (key, target) = (application.key.current(), (application.id(), webhook.as_deref(), &*device));
            match self.api.queue_downlinks(&key, target, operation, body.clone()).await {
                Ok(()) => {
                    if is_webhook_gone {
                        self.webhooks.forget(application);
                    }
                    return Ok(id);
                }
                // It may have another id since it was last heard.
                Err(error) if error.kind() == Kind::NotFound && !is_listed => {
                    self.devices.forget(application, dev_eui).await;
                    is_device_gone = true;
                }
                // The webhook was deleted, or the device was.
                Err(error) if error.kind() == Kind::NotFound && webhook.is_some() => {
                    (webhook, is_webhook_gone) = (None, true);
                }
                // The key is for the webhook only, so nobody says which of them it was.
                Err(error) if is_webhook_gone && is_of_key(&error) => return Err(unknown()),
                Err(error) => return Err(refusal(API, &error)),
            }
        }
    }
}

impl Network for ThingsStackNetwork {
    fn send(
        &self,
        app_id: AppId,
        dev_eui: DevEui,
        downlink: NetworkDownlink,
    ) -> BoxFuture<'_, Result<String, NetworkRefusal>> {
        Box::pin(async move {
            let sent = self.try_send(&app_id, dev_eui, downlink).await;
            self.traffic.downlink(sent.is_ok());
            sent
        })
    }

    fn report_to(&self, health: &Health) {
        if self.webhook.is_none() {
            report_connections(health, "messages from The Things Stack", self.subscribed.clone());
        }
    }

    fn state(&self) -> NetworkState {
        let feeds = self.feeds.lock();
        let received: usize = feeds.iter().map(Feed::in_progress).sum();
        NetworkState {
            connections: feeds.iter().map(Feed::connection).collect(),
            api: Some(self.api_watch.state()),
            in_progress: received + self.webhook.as_ref().map_or(0, WebhookListener::in_progress),
            traffic: self.traffic.state(),
        }
    }

    fn stop(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            self.stopping.cancel();
            let feeds = std::mem::take(&mut *self.feeds.lock());
            join_all(feeds.into_iter().map(Feed::drain)).await;
            self.positions.save();
        })
    }
}

/// Returns true if the error is about the rights of the API key.
fn is_of_key(error: &client::Error) -> bool {
    matches!(error.kind(), Kind::Denied | Kind::Unauthenticated)
}

/// Returns the handler of messages. Reports about downlinks may have to wait, and uplinks do not wait for them.
fn work(intake: Intake) -> LaneWork<Delivery> {
    let work = work_of(intake, |intake, delivery| async move { intake.handle(delivery).await });
    apart(work, |delivery: &Delivery| {
        let topic = Topic::parse(&delivery.topic, "")?;
        topic.rest.starts_with("down/").then(|| device_key(topic.application, topic.device))
    })
}

/// The settings with the applications of all routes. Those that have a key of their own are listed already.
fn with_applications(settings: &ThingsStackSettings, routes: &[Route]) -> Result<ThingsStackSettings, Error> {
    let refused = |reason: String| Error::setting("bridge.applications", reason);
    if routes.is_empty() {
        return Err(refused("is empty: name an application of The Things Stack and one of Airlock".to_owned()));
    }
    let mut all = settings.clone();
    if let Some(other) = all.applications.iter().find(|known| routes.iter().all(|route| route.application != known.id))
    {
        return Err(refused(format!("does not name `{}`, which `things_stack.applications` has", other.id)));
    }
    for (place, Route { application, app_id, .. }) in routes.iter().enumerate() {
        if routes[..place].iter().any(|earlier| earlier.application == *application) {
            return Err(refused(format!("`{application}` is there twice")));
        }
        if let Some(earlier) = routes[..place].iter().find(|earlier| earlier.app_id == *app_id) {
            return Err(refused(format!(
                "has `{app_id}` for both `{}` and `{application}`: its downlinks could be for a device of either, so use an \
                 application for each",
                earlier.application
            )));
        }
        if all.applications.iter().all(|known| known.id != *application) {
            all.applications.push(ThingsStackApplication { id: application.clone(), key_file: None });
        }
    }
    Ok(all)
}

fn receivers(
    applications: &[Arc<Application>],
    routes: Vec<Route>,
) -> HashMap<String, (Arc<Application>, Arc<dyn Receiver>)> {
    let mut by_uid: HashMap<_, _> = routes.into_iter().map(|route| (route.application, route.receiver)).collect();
    let receiver = |application: &Arc<Application>| {
        let receiver = by_uid.remove(&application.uid)?;
        Some((application.uid.clone(), (application.clone(), receiver)))
    };
    applications.iter().filter_map(receiver).collect()
}

fn by_app_id(
    applications: Vec<Arc<Application>>,
    app_ids: &HashMap<String, AppId>,
) -> HashMap<AppId, Arc<Application>> {
    let pair = |application: Arc<Application>| Some((app_ids.get(&application.uid)?.clone(), application));
    applications.into_iter().filter_map(pair).collect()
}
