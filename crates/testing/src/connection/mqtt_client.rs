//! An MQTT 5 client that publishes and receives.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use rumqttc::{
    Outgoing,
    v5::{AsyncClient, Event, EventLoop, MqttOptions, mqttbytes::QoS, mqttbytes::v5::Packet},
};
use serde_json::Value;
use tokio::{sync::mpsc, task::JoinHandle, time::timeout};

/// Long enough for anything that happens at all.
const PATIENCE: Duration = Duration::from_secs(120);
/// The pause before a connection is made again.
const RETRY_PAUSE: Duration = Duration::from_millis(5);

/// A message as it was published.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MqttMessage {
    /// The topic to which it was published.
    pub topic: String,
    /// Its content.
    pub payload: Vec<u8>,
}

impl MqttMessage {
    /// The content as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.payload).unwrap()
    }

    /// The last two levels of the topic, such as `event/up`.
    pub fn kind(&self) -> &str {
        let place = self.topic.rmatch_indices('/').nth(1).unwrap().0;
        &self.topic[place + 1..]
    }
}

/// A client of an MQTT broker that reconnects by itself, and then subscribes again if the session is gone.
pub struct MqttClient {
    client: AsyncClient,
    filters: Arc<Mutex<Vec<String>>>,
    confirmed: mpsc::UnboundedReceiver<()>,
    subscribed: mpsc::UnboundedReceiver<()>,
    messages: mpsc::UnboundedReceiver<MqttMessage>,
    task: JoinHandle<()>,
}

impl MqttClient {
    /// Connects with a clean session.
    pub async fn connect(url: &str) -> Self {
        Self::connect_as(url, "").await
    }

    /// With an id, the broker keeps the session when the connection is lost.
    pub async fn connect_as(url: &str, id: &str) -> Self {
        let mut options = options(url, id);
        if !id.is_empty() {
            options.set_session_expiry_interval(Some(3600));
        }
        Self::start(options)
    }

    /// Connects with a clean session as an application, with an access key.
    pub async fn connect_with(address: &str, app_id: &str, key: &str) -> Self {
        let mut options = options(address, "");
        options.set_credentials(app_id, key);
        Self::start(options)
    }

    fn start(options: MqttOptions) -> Self {
        let (client, connection) = AsyncClient::new(options, 1000);
        let (confirmed_sender, confirmed) = mpsc::unbounded_channel();
        let (subscribed_sender, subscribed) = mpsc::unbounded_channel();
        let (message_sender, messages) = mpsc::unbounded_channel();
        let filters = Arc::<Mutex<Vec<String>>>::default();
        let reports = Reports { confirmed: confirmed_sender, subscribed: subscribed_sender, messages: message_sender };
        let task = tokio::spawn(run((client.clone(), connection), filters.clone(), reports));
        Self { client, filters, confirmed, subscribed, messages, task }
    }

    /// Subscribes, and waits until the broker has granted it.
    pub async fn subscribe(&mut self, filter: &str) {
        self.client.subscribe(filter, QoS::AtLeastOnce).await.unwrap();
        soon("the subscription", self.subscribed.recv()).await.unwrap();
        self.filters.lock().unwrap().push(filter.to_owned());
    }

    /// Publishes a message, and waits until the broker has it.
    pub async fn publish(&mut self, topic: &str, payload: impl Into<Vec<u8>>) {
        self.client.publish(topic, QoS::AtLeastOnce, false, payload.into()).await.unwrap();
        soon("the acknowledgement", self.confirmed.recv()).await.unwrap();
    }

    /// The next message.
    pub async fn next(&mut self) -> MqttMessage {
        soon("a message", self.messages.recv()).await.unwrap()
    }
}

impl Drop for MqttClient {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    timeout(PATIENCE, future).await.unwrap_or_else(|_| panic!("{what} did not arrive"))
}

fn options(address: &str, id: &str) -> MqttOptions {
    let (host, port) = address.strip_prefix("mqtt://").unwrap_or(address).rsplit_once(':').unwrap();
    let mut options = MqttOptions::new(id, host, port.parse().unwrap());
    options.set_clean_start(id.is_empty()).set_max_packet_size(Some(1 << 20));
    options
}

/// Channels on which the connection's task reports.
struct Reports {
    confirmed: mpsc::UnboundedSender<()>,
    subscribed: mpsc::UnboundedSender<()>,
    messages: mpsc::UnboundedSender<MqttMessage>,
}

async fn run(
    (client, mut connection): (AsyncClient, EventLoop),
    filters: Arc<Mutex<Vec<String>>>,
    Reports { confirmed, subscribed, messages }: Reports,
) {
    // Of those that nobody waits for.
    let mut subscribing = 0;
    loop {
        match connection.poll().await {
            Ok(Event::Incoming(Packet::ConnAck(connected))) if !connected.session_present => {
                let filters = filters.lock().unwrap().clone();
                subscribing = filters.len();
                filters.iter().for_each(|filter| client.try_subscribe(filter, QoS::AtLeastOnce).unwrap());
            }
            Ok(Event::Incoming(Packet::SubAck(_))) if subscribing > 0 => subscribing -= 1,
            Ok(Event::Incoming(Packet::PubAck(_))) => _ = confirmed.send(()),
            Ok(Event::Incoming(Packet::SubAck(_))) => _ = subscribed.send(()),
            Ok(Event::Incoming(Packet::Publish(message))) => {
                let topic = String::from_utf8(message.topic.to_vec()).unwrap();
                _ = messages.send(MqttMessage { topic, payload: message.payload.to_vec() });
            }
            Ok(Event::Outgoing(Outgoing::Disconnect)) => return,
            Ok(_) => {}
            // A broker that is away is not asked all the time.
            Err(_) => tokio::time::sleep(RETRY_PAUSE).await,
        }
    }
}
