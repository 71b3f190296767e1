//! A client of a handler: applications with their payload functions, devices, and device addresses.

mod addresses;
mod candidates;
mod device_activity;
mod downlinks;
mod find;
mod history;
mod moves;
mod uplinks;
mod versions;

use api::{
    discovery::Announcement,
    handler::{
        Application, ApplicationIdentifier, Device, DeviceIdentifier, DeviceList, DryDownlinkMessage,
        DryDownlinkResult, DryUplinkMessage, DryUplinkResult, SimulatedUplinkMessage, SimulatedUplinkResult,
        application_manager_client::ApplicationManagerClient as Stub,
    },
};
use tonic::{Request, Response, Status, transport::Channel};
use types::{AppId, Credential, DevId};

pub use self::{device_activity::DeviceActivity, uplinks::UplinkAnswers};
use crate::{
    Result, Trust,
    transport::{
        grpc::{Peer, authorized},
        retry::Call,
    },
};

/// A page of a list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// Maximum number of items; zero for the handler's default.
    pub limit: u32,
    /// Number of items to skip.
    pub offset: u32,
}

/// A client of a handler, with the credential of a user or an application.
///
/// Reads are tried up to three times while the handler is unavailable; writes are only retried if it asks for it. Time
/// limits are 2 s for a connection, 10 s for a response, and 30 s for a call with all its attempts. A response may have
/// 4 MiB.
#[derive(Clone, Debug)]
pub struct HandlerClient {
    peer: Peer,
    credential: Credential,
}

impl HandlerClient {
    /// Creates a client for an announced handler, trusting the announced certificate.
    ///
    /// Must be called in a tokio runtime.
    pub fn connect(announcement: &Announcement, credential: Credential) -> Result<Self> {
        Self::connect_to(&announcement.net_address, &Trust::announced(&announcement.certificate), credential)
    }

    /// Creates a client for an address such as `localhost:1904`.
    ///
    /// Must be called in a tokio runtime.
    pub fn connect_to(net_address: &str, trust: &Trust, credential: Credential) -> Result<Self> {
        Ok(Self { peer: Peer::new("handler", net_address, trust)?, credential })
    }

    /// Registers an application with the handler.
    pub async fn register_application(&self, app_id: &AppId) -> Result<()> {
        let message = ApplicationIdentifier { app_id: app_id.to_string() };
        let send = |channel, request| async move { Stub::new(channel).register_application(request).await };
        self.call(Call::Once, message, send).await
    }

    /// Returns an application with its payload functions.
    pub async fn get_application(&self, app_id: &AppId) -> Result<Application> {
        let message = ApplicationIdentifier { app_id: app_id.to_string() };
        let send = |channel, request| async move { Stub::new(channel).get_application(request).await };
        self.call(Call::Repeatable, message, send).await
    }

    /// Replaces an application's payload functions.
    pub async fn set_application(&self, application: Application) -> Result<()> {
        let send = |channel, request| async move { Stub::new(channel).set_application(request).await };
        self.call(Call::Once, application, send).await
    }

    /// Removes an application from the handler, with its devices.
    pub async fn delete_application(&self, app_id: &AppId) -> Result<()> {
        let message = ApplicationIdentifier { app_id: app_id.to_string() };
        let send = |channel, request| async move { Stub::new(channel).delete_application(request).await };
        self.call(Call::Once, message, send).await
    }

    /// Returns a device, with its counters.
    pub async fn get_device(&self, app_id: &AppId, dev_id: &DevId) -> Result<Device> {
        let message = device(app_id, dev_id);
        let send = |channel, request| async move { Stub::new(channel).get_device(request).await };
        self.call(Call::Repeatable, message, send).await
    }

    /// Creates or changes a device.
    pub async fn set_device(&self, device: Device) -> Result<()> {
        let send = |channel, request| async move { Stub::new(channel).set_device(request).await };
        self.call(Call::Once, device, send).await
    }

    /// Removes a device.
    pub async fn delete_device(&self, app_id: &AppId, dev_id: &DevId) -> Result<()> {
        let message = device(app_id, dev_id);
        let send = |channel, request| async move { Stub::new(channel).delete_device(request).await };
        self.call(Call::Once, message, send).await
    }

    /// Lists devices of an application.
    pub async fn list_devices(&self, app_id: &AppId, page: Page) -> Result<Vec<Device>> {
        let message = ApplicationIdentifier { app_id: app_id.to_string() };
        let request = || {
            let mut request = authorized(message.clone(), &self.credential)?;
            for (name, number) in [("limit", page.limit), ("offset", page.offset)] {
                if number > 0 {
                    request.metadata_mut().insert(name, number.into());
                }
            }
            Ok(request)
        };
        let list: DeviceList = self
            .peer
            .call(Call::Repeatable, request, |channel, request| async move {
                Stub::new(channel).get_devices_for_application(request).await
            })
            .await?;
        Ok(list.devices)
    }

    /// Decodes an uplink without publishing anything.
    pub async fn dry_uplink(&self, uplink: DryUplinkMessage) -> Result<DryUplinkResult> {
        let send = |channel, request| async move { Stub::new(channel).dry_uplink(request).await };
        self.call(Call::Repeatable, uplink, send).await
    }

    /// Encodes a downlink without sending anything.
    pub async fn dry_downlink(&self, downlink: DryDownlinkMessage) -> Result<DryDownlinkResult> {
        let send = |channel, request| async move { Stub::new(channel).dry_downlink(request).await };
        self.call(Call::Repeatable, downlink, send).await
    }

    /// Processes an uplink as if a device had sent it. Handlers of v2 do not report its cost and its outcome.
    pub async fn simulate_uplink(&self, uplink: SimulatedUplinkMessage) -> Result<SimulatedUplinkResult> {
        let send = |channel, request| async move { Stub::new(channel).simulate_uplink(request).await };
        self.call(Call::Once, uplink, send).await
    }

    async fn call<M, T, F>(&self, call: Call, message: M, send: impl Fn(Channel, Request<M>) -> F) -> Result<T>
    where
        M: Clone,
        F: Future<Output = std::result::Result<Response<T>, Status>>,
    {
        let request = || authorized(message.clone(), &self.credential);
        self.peer.call(call, request, send).await
    }
}

fn device(app_id: &AppId, dev_id: &DevId) -> DeviceIdentifier {
    DeviceIdentifier { app_id: app_id.to_string(), dev_id: dev_id.to_string() }
}
