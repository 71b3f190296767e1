//! Starts and stops the parts of the bridge.

pub(super) mod brokers;

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use bridge::{
    Connections, Environment, Error, Running, StateDir, metrics,
    publish::{output::Output, republish::Republisher},
    receive::{
        dedup::Dedup,
        lanes::{LaneWork, work_of},
        receive,
    },
    record::Recorder,
};
use futures::future::{BoxFuture, join_all};
use link::{
    delivery::Delivery,
    mqtt::{Endpoint, Subscriber, Subscription},
};
use tokio_util::task::AbortOnDropHandle;
use types::Clock;

use self::brokers::source;
use super::{
    application::{
        Application,
        topic::{device, downlinks_of, messages},
    },
    downlink::Downlinks,
    feed::{Feed, Intake, catch_up::CatchUp, position::Positions},
    formatter::{
        api::{check_api, directory},
        directory::Directory,
    },
    http::webhook::{WebhookListener, ids::WebhookIds},
    settings::ThingsStackSettings,
    uplink::{Uplinks, decoder::Decoder},
};

/// A running bridge to The Things Stack.
pub struct ThingsStackBridge {
    directory: Arc<Directory>,
    recorder: Arc<Recorder>,
    positions: Arc<Positions>,
    feeds: Vec<Feed>,
    downlinks: Subscriber,
    webhook: Option<WebhookListener>,
    connections: Connections,
    prefix: String,
    _tasks: [AbortOnDropHandle<()>; 2],
    _state_dir: StateDir,
}

impl ThingsStackBridge {
    /// Checks the settings and the API, and connects in the background.
    pub async fn start(settings: &ThingsStackSettings, environment: Environment) -> Result<Self, Error> {
        metrics::describe();
        let applications = Application::all(settings)?;
        let state_dir = StateDir::open(environment.state_dir.clone())?;
        let client_id = state_dir.client_id(environment.random.as_ref())?;
        let directory = Arc::new(directory(settings, &applications, &environment, &state_dir)?);
        let sources = sources(settings, &applications, &client_id)?;
        let brokers::Output { out, commands, prefix } =
            brokers::Output::new(settings, sources.first().map(|(_, endpoint)| endpoint), &client_id).await?;
        check_api(&directory, &settings.api.url).await?;
        // Only messages of applications in the settings come.
        let recorder = Arc::new(Recorder::open(&environment, &state_dir, None)?);
        let positions = Arc::new(Positions::open(state_dir.positions()));
        let tasks = [tokio::spawn(directory.clone().run()), tokio::spawn(positions.clone().run())];
        let parts = Parts {
            settings,
            clock: environment.clock,
            directory: directory.clone(),
            recorder: recorder.clone(),
            applications: Arc::new(Output::start(
                out,
                prefix.clone(),
                settings.refused_wait_ms_max,
                settings.in_flight_max,
            )),
            webhooks: Arc::new(WebhookIds::new(&settings.api.url)),
        };
        let work = parts.work();
        let feeds: Vec<_> = sources.into_iter().map(|source| parts.feed(source, &positions, work.clone())).collect();
        let webhook = WebhookListener::new(settings, &applications, parts.webhooks.clone(), work);
        let downlinks = parts.receive_downlinks(commands, &applications);
        let connections = vec![
            ("messages from The Things Stack", feeds.iter().map(Feed::subscribed).collect()),
            ("messages to applications", vec![parts.applications.connected()]),
            ("downlinks from applications", vec![downlinks.connection().connected()]),
        ];
        let _tasks = tasks.map(AbortOnDropHandle::new);
        let _state_dir = state_dir;
        Ok(Self { directory, recorder, positions, feeds, downlinks, webhook, connections, prefix, _tasks, _state_dir })
    }

    /// Returns the listener for messages as a webhook; `None` if they come over MQTT.
    pub fn webhook(&self) -> Option<&WebhookListener> {
        self.webhook.as_ref()
    }

    /// Returns the prefix of the topics of decoded messages.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Finishes the messages in progress, and stops.
    pub async fn stop(self) {
        // First, because the messages may take longer than the process may.
        self.directory.save().await;
        let messages = join_all(self.feeds.into_iter().map(Feed::drain));
        tokio::join!(messages, self.downlinks.drain());
        self.recorder.close().await;
        self.directory.save().await;
        self.positions.save();
    }
}

impl Running for ThingsStackBridge {
    fn connections(&self) -> &Connections {
        &self.connections
    }

    fn stop(self: Box<Self>) -> BoxFuture<'static, ()> {
        Box::pin(Self::stop(*self))
    }
}

/// Settings and shared parts for handling messages and downlinks.
struct Parts<'a> {
    settings: &'a ThingsStackSettings,
    clock: Arc<dyn Clock>,
    directory: Arc<Directory>,
    recorder: Arc<Recorder>,
    applications: Arc<Output>,
    webhooks: Arc<WebhookIds>,
}

impl Parts<'_> {
    /// Returns the handler of messages.
    fn work(&self) -> LaneWork<Delivery> {
        let uplinks = Uplinks {
            decoder: Decoder { directory: self.directory.clone(), clock: self.clock.clone() },
            republisher: Republisher { output: self.applications.clone(), dedup: self.dedup() },
            recorder: self.recorder.clone(),
            clock: self.clock.clone(),
        };
        work_of(uplinks, |uplinks, delivery| async move { uplinks.handle(delivery).await })
    }

    fn feed(
        &self,
        (application, endpoint): (Arc<Application>, Endpoint),
        positions: &Arc<Positions>,
        work: LaneWork<Delivery>,
    ) -> Feed {
        let subscription = subscription(self.settings, messages(&application.uid));
        let intake = Intake {
            catch_up: CatchUp::new(self.directory.api.clone(), application),
            positions: positions.clone(),
            clock: self.clock.clone(),
        };
        Feed::start(endpoint, subscription, intake, work)
    }

    fn receive_downlinks(&self, commands: Endpoint, applications: &[Arc<Application>]) -> Subscriber {
        let downlinks = Arc::new(Downlinks {
            directory: self.directory.clone(),
            webhooks: self.webhooks.clone(),
            applications: self.applications.clone(),
            recorder: self.recorder.clone(),
            dedup: self.dedup(),
            clock: self.clock.clone(),
        });
        let prefix = &self.applications.prefix;
        // Topics without the tenant too, so that whoever forgets it hears of it.
        let with_tenant = applications.iter().map(|application| application.uid.as_str());
        let without = applications.iter().filter_map(|application| application.without_tenant(applications));
        let ids: BTreeSet<&str> = with_tenant.chain(without).collect();
        let filters = |id: &str| downlinks_of(id).map(|filter| format!("{prefix}{filter}"));
        let subscription = Subscription {
            keeps_session: true,
            tries_mqtt5: true,
            ..Subscription::to(ids.into_iter().flat_map(filters), self.settings.in_flight_max)
        };
        receive(commands, subscription, device(prefix.clone()), move |delivery| {
            let downlinks = downlinks.clone();
            Box::pin(async move { downlinks.handle(delivery).await })
        })
    }

    fn dedup(&self) -> Dedup {
        let window = Duration::from_millis(self.settings.duplicate_window_ms);
        Dedup::new(self.settings.duplicate_messages_max, window, self.clock.clone())
    }
}

/// The connections to The Things Stack's MQTT server; none if messages come through a webhook.
pub(super) fn sources(
    settings: &ThingsStackSettings,
    applications: &[Arc<Application>],
    client_id: &str,
) -> Result<Vec<(Arc<Application>, Endpoint)>, Error> {
    if !settings.webhook.listen.is_empty() {
        return Ok(Vec::new());
    }
    let source = |application: &Arc<Application>| Ok((application.clone(), source(settings, application, client_id)?));
    applications.iter().map(source).collect()
}

/// A subscription of an application. The server keeps nothing while there is no connection.
pub(super) fn subscription(settings: &ThingsStackSettings, filter: String) -> Subscription {
    Subscription::to([filter], settings.in_flight_max)
}
