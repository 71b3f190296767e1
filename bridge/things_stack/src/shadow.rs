//! Shadow mode: decodes what passes by, and compares it with what The Things Stack made of it. Publishes nothing.

use std::sync::Arc;

use bridge::{
    Connections, Environment, Error, Observation, ObservedApplication, ObservedResult, Running, StateDir,
    codec::outcome::Run, metrics, receive::receive,
};
use futures::future::{BoxFuture, join_all};
use link::{delivery::Delivery, mqtt::Subscriber};
use tokio_util::task::AbortOnDropHandle;

use super::{
    application::{
        Application,
        topic::{Topic, device},
    },
    bridge::{brokers::source, subscription},
    formatter::{
        api::{check_api, directory},
        directory::Directory,
    },
    message::uplink::UplinkMessage,
    settings::ThingsStackSettings,
    uplink::{decoder::Decoder, result},
};

/// A running comparison.
pub struct ThingsStackShadow {
    directory: Arc<Directory>,
    messages: Vec<Subscriber>,
    connections: Connections,
    _refresh: AbortOnDropHandle<()>,
    _state_dir: StateDir,
}

impl ThingsStackShadow {
    /// Checks the settings and the API, and connects in the background. `observe` must not block.
    pub async fn start(
        settings: &ThingsStackSettings,
        environment: Environment,
        observe: impl Fn(Observation) + Send + Sync + 'static,
    ) -> Result<Self, Error> {
        metrics::describe();
        let applications = Application::all(settings)?;
        let state_dir = StateDir::open(environment.state_dir.clone())?;
        let client_id = state_dir.client_id(environment.random.as_ref())?;
        let sources = applications.iter().map(|application| source(settings, application, &client_id));
        let sources = sources.collect::<Result<Vec<_>, _>>()?;
        let directory = Arc::new(directory(settings, &applications, &environment, &state_dir)?);
        check_api(&directory, &settings.api.url).await?;
        let refresh = AbortOnDropHandle::new(tokio::spawn(directory.clone().run()));
        let decoder = Decoder { directory: directory.clone(), clock: environment.clock };
        let observer = Arc::new(Observer { decoder, observe: Box::new(observe) });
        let receive = |(application, endpoint): (&Arc<Application>, _)| {
            let observer = observer.clone();
            let subscription = subscription(settings, format!("v3/{}/devices/+/up", application.uid));
            receive(endpoint, subscription, device(String::new()), move |delivery| {
                let observer = observer.clone();
                Box::pin(async move { observer.handle(delivery).await })
            })
        };
        let messages: Vec<_> = applications.iter().zip(sources).map(receive).collect();
        let connected = messages.iter().map(|subscriber| subscriber.connection().connected()).collect();
        let connections = vec![("messages from The Things Stack", connected)];
        Ok(Self { directory, messages, connections, _refresh: refresh, _state_dir: state_dir })
    }

    /// Finishes the messages in progress, and stops.
    pub async fn stop(self) {
        join_all(self.messages.into_iter().map(Subscriber::drain)).await;
        self.directory.save().await;
    }
}

impl Running for ThingsStackShadow {
    fn connections(&self) -> &Connections {
        &self.connections
    }

    fn failure(&self) -> Option<String> {
        self.messages.iter().find_map(|subscriber| subscriber.connection().state().failure)
    }

    fn stop(self: Box<Self>) -> BoxFuture<'static, ()> {
        Box::pin(Self::stop(*self))
    }
}

struct Observer {
    decoder: Decoder,
    observe: Box<dyn Fn(Observation) + Send + Sync>,
}

impl Observer {
    async fn handle(&self, Delivery { topic, payload, ack, .. }: Delivery) {
        if let Some(topic) = Topic::parse(&topic, "") {
            self.compare(topic, &payload).await;
        }
        ack.acknowledge().await;
    }

    async fn compare(&self, topic: Topic<'_>, payload: &[u8]) {
        let message = match UplinkMessage::parse(payload) {
            Ok(message) if message.is_decodable() => message,
            Ok(_) => return metrics::uplink("unchanged"),
            Err(error) => {
                tracing::warn!(%topic, %error, "an uplink cannot be decoded");
                return metrics::uplink("malformed");
            }
        };
        let formatter = self.decoder.formatter(&message, topic).await;
        let codec = match &formatter {
            Ok(Some(formatter)) => (formatter.id.clone(), formatter.name.clone()),
            Ok(None) | Err(_) => (topic.application.to_owned(), topic.application.to_owned()),
        };
        let mut ran = Run::default();
        let decoded = match formatter {
            Ok(formatter) => self.decoder.decode(&message, formatter.as_deref(), &mut ran).await,
            Err(error) => Err(error),
        };
        metrics::uplink(result(&decoded));
        // It does not say that a formatter failed: then there is no payload either.
        let theirs = ObservedResult::of(message.decoded_payload().map(ToOwned::to_owned));
        let application = ObservedApplication { id: topic.application.to_owned(), name: String::new() };
        let ours = (decoded.map(|decoded| decoded.uplink), &ran);
        (self.observe)(Observation::new(application, codec, theirs, ours));
    }
}
