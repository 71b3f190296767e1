//! The connection to one network broker: a stream of uplinks, a stream of downlinks, and their end.

use std::{sync::Arc, time::Duration};

use client::network_broker::NetworkBrokerClient;
use server::status::ErrorChain;
use tokio::{
    sync::{Notify, mpsc},
    time::{Instant, sleep},
};
use types::{ComponentId, ServiceName};

use super::{NetworkBrokers, UplinkReceiver};

/// Maximum number of downlinks that wait to be written. Others stay in the queues of the devices.
const DOWNLINKS_MAX: usize = 1024;
/// The pause after a connection has ended; it doubles as long as none lasts. A network broker drops the uplinks of a
/// handler that is not connected.
const PAUSE_MIN: Duration = Duration::from_millis(200);
const PAUSE_MAX: Duration = Duration::from_secs(5);
/// After this long, a connection has lasted.
const LASTING: Duration = Duration::from_secs(60);

/// The connection to a network broker.
pub(super) struct Connection {
    pub(super) id: ComponentId,
    pub(super) brokers: Arc<NetworkBrokers>,
    pub(super) receiver: Arc<UplinkReceiver>,
    /// Notified each time it has subscribed.
    pub(super) subscribed: Arc<Notify>,
}

impl Connection {
    /// Stays connected, until it is dropped.
    pub(super) async fn run(&self) {
        let (mut pause, mut last_problem) = (PAUSE_MIN, String::new());
        loop {
            let started = Instant::now();
            let problem = match self.connect().await {
                Ok(()) => "it has ended the stream".to_owned(),
                Err(error) => ErrorChain(&error).to_string(),
            };
            if started.elapsed() > LASTING {
                (pause, last_problem) = (PAUSE_MIN, String::new());
            }
            if problem != last_problem {
                tracing::warn!(id = %self.id, problem, "no uplinks from a network broker: trying again");
                last_problem = problem;
            }
            sleep(pause).await;
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }

    /// Connects, and takes uplinks as long as the connection lasts.
    async fn connect(&self) -> Result<(), client::Error> {
        let NetworkBrokers { discovery, caller, .. } = self.brokers.as_ref();
        let announcement = discovery.get(ServiceName::Broker, &self.id).await?;
        let client = NetworkBrokerClient::connect(&announcement, caller.clone())?;
        let (replies, downlinks) = mpsc::channel(DOWNLINKS_MAX);
        // If one of the streams ends, the other is of no use.
        tokio::select! {
            ended = self.take_uplinks(&client, replies) => ended,
            ended = client.publish(downlinks) => ended,
        }
    }

    async fn take_uplinks(
        &self,
        client: &NetworkBrokerClient,
        replies: mpsc::Sender<api::broker::DownlinkMessage>,
    ) -> Result<(), client::Error> {
        let mut uplinks = client.subscribe().await?;
        tracing::info!(id = %self.id, "subscribed to the uplinks of a network broker");
        self.subscribed.notify_one();
        while let Some(uplink) = uplinks.next().await? {
            self.receiver.receive(uplink, replies.clone()).await;
        }
        Ok(())
    }
}
