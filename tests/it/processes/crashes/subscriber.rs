//! An MQTT client whose session outlives its connections, and itself.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
    time::Duration,
};

use rumqttc::{AsyncClient, Event, EventLoop, MqttOptions, Packet, QoS};
use tokio::{
    select,
    sync::watch,
    task::AbortHandle,
    time::{sleep, timeout},
};

use super::number_of;
use crate::harness::{MESSAGE_TIMEOUT, Owner};

/// A subscriber, with the uplinks that it got.
pub(super) struct Subscriber {
    address: watch::Sender<String>,
    numbers: Arc<Mutex<Vec<u32>>>,
    /// Name and password.
    credentials: (String, String),
    receiving: AbortHandle,
}

impl Subscriber {
    /// Returns once it is subscribed.
    pub(super) async fn start(owner: &Owner, address: &str) -> Self {
        let credentials = (owner.app_id.to_string(), owner.key.expose().to_owned());
        let (client, mut events) = connect(address, &credentials);
        client.subscribe("+/devices/+/up", QoS::AtLeastOnce).await.unwrap();
        while !matches!(events.poll().await.unwrap(), Event::Incoming(Packet::SubAck(_))) {}
        client.disconnect().await.unwrap();
        while events.poll().await.is_ok() {}
        let (address, numbers) = (watch::Sender::new(address.to_owned()), Arc::default());
        let receiving = receive(&address, &credentials, &numbers);
        Self { address, numbers, credentials, receiving }
    }

    /// The broker has another address now.
    pub(super) fn move_to(&self, address: &str) {
        self.address.send_replace(address.to_owned());
    }

    /// Ends it without a word, and starts another one with the same name.
    pub(super) fn restart(&mut self) {
        self.receiving.abort();
        self.receiving = receive(&self.address, &self.credentials, &self.numbers);
    }

    /// Waits until it has got all of these; returns all that it got.
    pub(super) async fn wait_for(&self, expected: &[u32]) -> Vec<u32> {
        let is_missing = || {
            let numbers = BTreeSet::from_iter(self.numbers.lock().unwrap().iter().copied());
            expected.iter().any(|number| !numbers.contains(number))
        };
        let waiting = async {
            while is_missing() {
                sleep(Duration::from_millis(50)).await;
            }
        };
        timeout(MESSAGE_TIMEOUT * 3, waiting).await.expect("the rest arrives");
        self.numbers.lock().unwrap().clone()
    }
}

impl Drop for Subscriber {
    fn drop(&mut self) {
        self.receiving.abort();
    }
}

fn connect(address: &str, (name, password): &(String, String)) -> (AsyncClient, EventLoop) {
    let (host, port) = address.rsplit_once(':').unwrap();
    let mut options = MqttOptions::new("subscriber", host, port.parse().unwrap());
    options.set_clean_session(false).set_credentials(name, password);
    // Otherwise it acknowledges what it has read before it is noted.
    options.set_manual_acks(true);
    AsyncClient::new(options, 1000)
}

fn receive(
    address: &watch::Sender<String>,
    credentials: &(String, String),
    numbers: &Arc<Mutex<Vec<u32>>>,
) -> AbortHandle {
    let (mut address, credentials, numbers) = (address.subscribe(), credentials.clone(), numbers.clone());
    let receiving = async move {
        loop {
            let place = address.borrow_and_update().clone();
            let (client, mut events) = connect(&place, &credentials);
            // A connection to the place where the broker was before may take long to fail.
            while let Some(Ok(event)) = select! {
                event = events.poll() => Some(event),
                Ok(()) = address.changed() => None,
            } {
                if let Event::Incoming(Packet::Publish(message)) = event {
                    numbers.lock().unwrap().push(number_of(&serde_json::from_slice(&message.payload).unwrap()));
                    client.try_ack(&message).unwrap();
                }
            }
            sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::spawn(receiving).abort_handle()
}
