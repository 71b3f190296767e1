//! A client of a network broker of The Things Network v2, as handlers use it.

use std::{fmt, sync::Arc, time::Duration};

use api::{
    broker::{
        ApplicationHandlerRegistration, DeduplicatedUplinkMessage, DownlinkMessage, SubscribeRequest,
        broker_client::BrokerClient, broker_manager_client::BrokerManagerClient,
    },
    discovery::Announcement,
    lorawan::{Device, DeviceIdentifier, device_manager_client::DeviceManagerClient},
};
use futures::stream;
use tokio::sync::mpsc;
use tonic::{Request, Streaming, metadata::AsciiMetadataValue, transport::Channel};
use types::{AppEui, AppId, ComponentId, DevEui, Secret, ServiceName};

use crate::{
    Error, Result, Trust,
    transport::{grpc::Peer, retry::Call},
};

const SERVICE: &str = "network broker";
/// The port of network brokers that announce none.
const PORT_DEFAULT: u16 = 1902;
/// Time after which a call beyond a rate limit is repeated. The limits of v2 are five calls per second, and name no
/// time.
const RATE_LIMIT_WAIT: Duration = Duration::from_secs(1);

/// The component that calls. It signs a token for each call with the key that it announces.
#[derive(Clone)]
pub struct CallingComponent {
    /// As it is announced.
    pub id: ComponentId,
    /// The kind of the component.
    pub service: ServiceName,
    /// Of its program.
    pub version: String,
    /// Address at which it can be reached.
    pub net_address: String,
    /// Signs a token that is valid for a moment; `None` if that fails.
    pub sign: Arc<dyn Fn() -> Option<Secret> + Send + Sync>,
}

/// A client of a network broker.
///
/// Streams have no time limit: a connection that is silent for a minute is tested, and ends if it does not answer.
#[derive(Clone, Debug)]
pub struct NetworkBrokerClient {
    peer: Peer,
    caller: CallingComponent,
}

/// Uplinks of a handler's applications, as a network broker receives them.
#[derive(Debug)]
pub struct UplinkStream {
    messages: Streaming<DeduplicatedUplinkMessage>,
    peer: Peer,
}

impl NetworkBrokerClient {
    /// Prepares calls to the network broker of an announcement; the first call connects.
    ///
    /// Must be called inside a tokio runtime.
    pub fn connect(announcement: &Announcement, caller: CallingComponent) -> Result<Self> {
        let address = with_port(&announcement.net_address);
        let trust = Trust::announced(&announcement.certificate);
        let peer = Peer::for_streams(SERVICE, &address, &trust)?.with_rate_limit_wait(RATE_LIMIT_WAIT);
        Ok(Self { peer, caller })
    }

    /// Subscribes to the uplinks of the caller's applications.
    pub async fn subscribe(&self) -> Result<UplinkStream> {
        let request = self.caller.sign(SubscribeRequest {})?;
        let response = self.stub().subscribe(request).await.map_err(|status| self.peer.failed(status))?;
        Ok(UplinkStream { messages: response.into_inner(), peer: self.peer.clone() })
    }

    /// Sends downlinks, until the sender of `downlinks` is dropped or the connection ends.
    pub async fn publish(&self, downlinks: mpsc::Receiver<DownlinkMessage>) -> Result<()> {
        let next = async |mut downlinks: mpsc::Receiver<_>| Some((downlinks.recv().await?, downlinks));
        let request = self.caller.sign(stream::unfold(downlinks, next))?;
        self.stub().publish(request).await.map(drop).map_err(|status| self.peer.failed(status))
    }

    /// Says that the caller handles an application, in the name of a user who may change its settings.
    pub async fn register_application(&self, token: &Secret, app_id: &AppId) -> Result<()> {
        let message =
            ApplicationHandlerRegistration { app_id: app_id.to_string(), handler_id: self.caller.id.to_string() };
        let request = || self.caller.request(message.clone(), token);
        let send = |channel, request| async move {
            BrokerManagerClient::new(channel).register_application_handler(request).await
        };
        self.peer.call(Call::Repeatable, request, send).await
    }

    /// Creates or changes a device in the network server, in the name of a user who may see the application's devices.
    pub async fn set_device(&self, token: &Secret, device: &Device) -> Result<()> {
        let request = || self.caller.request(device.clone(), token);
        let send = |channel, request| async move { DeviceManagerClient::new(channel).set_device(request).await };
        self.peer.call(Call::Repeatable, request, send).await
    }

    /// Returns the network server's record of a device, in the name of a user who may see the application's devices.
    /// Fails with `NotFound` if it has none.
    pub async fn get_device(&self, token: &Secret, app_eui: AppEui, dev_eui: DevEui) -> Result<Device> {
        let message = identifier(app_eui, dev_eui);
        let request = || self.caller.request(message.clone(), token);
        let send = |channel, request| async move { DeviceManagerClient::new(channel).get_device(request).await };
        self.peer.call(Call::Repeatable, request, send).await
    }

    /// Deletes a device in the network server.
    pub async fn delete_device(&self, token: &Secret, app_eui: AppEui, dev_eui: DevEui) -> Result<()> {
        let message = identifier(app_eui, dev_eui);
        let request = || self.caller.request(message.clone(), token);
        let send = |channel, request| async move { DeviceManagerClient::new(channel).delete_device(request).await };
        self.peer.call(Call::Repeatable, request, send).await
    }

    fn stub(&self) -> BrokerClient<Channel> {
        BrokerClient::new(self.peer.channel())
    }
}

fn identifier(app_eui: AppEui, dev_eui: DevEui) -> DeviceIdentifier {
    DeviceIdentifier { app_eui: app_eui.as_bytes().to_vec(), dev_eui: dev_eui.as_bytes().to_vec() }
}

impl UplinkStream {
    /// Waits for the next uplink; `None` when the network broker has ended the stream.
    pub async fn next(&mut self) -> Result<Option<DeduplicatedUplinkMessage>> {
        self.messages.message().await.map_err(|status| self.peer.failed(status))
    }
}

impl CallingComponent {
    /// A request in the name of this component.
    fn sign<T>(&self, message: T) -> Result<Request<T>> {
        self.request(message, &(self.sign)().ok_or(Error::Credential)?)
    }

    /// A request from this component with a token.
    fn request<T>(&self, message: T, token: &Secret) -> Result<Request<T>> {
        let mut request = Request::new(message);
        let service = self.service.to_string();
        for (name, text) in [
            ("id", self.id.as_str()),
            ("service-name", &service),
            ("service-version", &self.version),
            ("net-address", &self.net_address),
            ("token", token.expose()),
        ] {
            let mut value: AsciiMetadataValue = text.parse().map_err(|_| Error::Credential)?;
            value.set_sensitive(name == "token");
            request.metadata_mut().insert(name, value);
        }
        Ok(request)
    }
}

impl fmt::Debug for CallingComponent {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("CallingComponent").field("id", &self.id).finish_non_exhaustive()
    }
}

/// The first of the addresses, with a port.
fn with_port(net_address: &str) -> String {
    let address = net_address.split(',').next().unwrap_or_default().trim();
    let host = address.rsplit_once(']').map_or(address, |(_, rest)| rest);
    if address.is_empty() || host.contains(':') { address.to_owned() } else { format!("{address}:{PORT_DEFAULT}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_without_a_port_has_that_of_network_brokers() {
        for (announced, expected) in [
            ("broker.example.com", "broker.example.com:1902"),
            ("broker.example.com:443, other:1", "broker.example.com:443"),
            ("[::1]", "[::1]:1902"),
            ("[::1]:7", "[::1]:7"),
            ("", ""),
        ] {
            assert_eq!(with_port(announced), expected);
        }
    }
}
