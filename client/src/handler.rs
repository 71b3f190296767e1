//! A handler's application manager: applications with their payload functions, and devices.

use api::{
    discovery::Announcement,
    handler::{
        Application, ApplicationIdentifier, Device, DeviceIdentifier, SimulatedUplinkMessage,
        application_manager_client::ApplicationManagerClient as Stub,
    },
};
use tonic::{Request, transport::Channel};
use types::{AppId, Credential, DevId};

use crate::{
    Result, Trust,
    grpc::{ANSWER_BYTES_MAX, Peer, authorized},
    retry::{Call, retry},
};

/// Which part of a list is asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// At most so many; zero leaves it to the handler.
    pub limit: u32,
    /// Skip so many.
    pub offset: u32,
}

/// A client of a handler, with the credential of a user or an application.
///
/// Calls that change nothing are tried three times while the handler is away; those that change something are tried
/// again only when it asks for it. A connection may take 2 s, an answer 10 s and 4 MiB.
#[derive(Clone, Debug)]
pub struct HandlerClient {
    peer: Peer,
    credential: Credential,
}

impl HandlerClient {
    /// Prepares calls to an announced handler, trusting the certificate that it announced.
    ///
    /// Must be called inside a tokio runtime.
    pub fn connect(announcement: &Announcement, credential: Credential) -> Result<Self> {
        Self::connect_to(&announcement.net_address, &Trust::announced(&announcement.certificate), credential)
    }

    /// Prepares calls to an address like `localhost:1904`.
    ///
    /// Must be called inside a tokio runtime.
    pub fn connect_to(net_address: &str, trust: &Trust, credential: Credential) -> Result<Self> {
        Ok(Self { peer: Peer::new("handler", net_address, trust)?, credential })
    }

    /// Registers an application with the handler.
    pub async fn register_application(&self, app_id: &AppId) -> Result<()> {
        let message = ApplicationIdentifier { app_id: app_id.to_string() };
        retry(Call::Change, || async {
            let answer = self.stub().register_application(self.request(message.clone())?).await;
            answer.map(drop).map_err(|status| self.peer.failed(status))
        })
        .await
    }

    /// An application with its payload functions.
    pub async fn get_application(&self, app_id: &AppId) -> Result<Application> {
        let message = ApplicationIdentifier { app_id: app_id.to_string() };
        retry(Call::Read, || async {
            let answer = self.stub().get_application(self.request(message.clone())?).await;
            answer.map(tonic::Response::into_inner).map_err(|status| self.peer.failed(status))
        })
        .await
    }

    /// Replaces an application's payload functions.
    pub async fn set_application(&self, application: Application) -> Result<()> {
        retry(Call::Change, || async {
            let answer = self.stub().set_application(self.request(application.clone())?).await;
            answer.map(drop).map_err(|status| self.peer.failed(status))
        })
        .await
    }

    /// Removes an application from the handler, with its devices.
    pub async fn delete_application(&self, app_id: &AppId) -> Result<()> {
        let message = ApplicationIdentifier { app_id: app_id.to_string() };
        retry(Call::Change, || async {
            let answer = self.stub().delete_application(self.request(message.clone())?).await;
            answer.map(drop).map_err(|status| self.peer.failed(status))
        })
        .await
    }

    /// A device, with its counters.
    pub async fn get_device(&self, app_id: &AppId, dev_id: &DevId) -> Result<Device> {
        let message = device(app_id, dev_id);
        retry(Call::Read, || async {
            let answer = self.stub().get_device(self.request(message.clone())?).await;
            answer.map(tonic::Response::into_inner).map_err(|status| self.peer.failed(status))
        })
        .await
    }

    /// Creates or changes a device.
    pub async fn set_device(&self, device: Device) -> Result<()> {
        retry(Call::Change, || async {
            let answer = self.stub().set_device(self.request(device.clone())?).await;
            answer.map(drop).map_err(|status| self.peer.failed(status))
        })
        .await
    }

    /// Removes a device.
    pub async fn delete_device(&self, app_id: &AppId, dev_id: &DevId) -> Result<()> {
        let message = device(app_id, dev_id);
        retry(Call::Change, || async {
            let answer = self.stub().delete_device(self.request(message.clone())?).await;
            answer.map(drop).map_err(|status| self.peer.failed(status))
        })
        .await
    }

    /// Devices of an application, without their counters.
    pub async fn list_devices(&self, app_id: &AppId, page: Page) -> Result<Vec<Device>> {
        let message = ApplicationIdentifier { app_id: app_id.to_string() };
        retry(Call::Read, || async {
            let mut request = self.request(message.clone())?;
            for (name, number) in [("limit", page.limit), ("offset", page.offset)] {
                if number > 0 {
                    request.metadata_mut().insert(name, number.into());
                }
            }
            let answer = self.stub().get_devices_for_application(request).await;
            answer.map(|answer| answer.into_inner().devices).map_err(|status| self.peer.failed(status))
        })
        .await
    }

    /// Has an uplink treated as if a device had sent it.
    pub async fn simulate_uplink(&self, uplink: SimulatedUplinkMessage) -> Result<()> {
        retry(Call::Change, || async {
            let answer = self.stub().simulate_uplink(self.request(uplink.clone())?).await;
            answer.map(drop).map_err(|status| self.peer.failed(status))
        })
        .await
    }

    fn request<T>(&self, message: T) -> Result<Request<T>> {
        authorized(message, &self.credential)
    }

    fn stub(&self) -> Stub<Channel> {
        Stub::new(self.peer.channel.clone()).max_decoding_message_size(ANSWER_BYTES_MAX)
    }
}

fn device(app_id: &AppId, dev_id: &DevId) -> DeviceIdentifier {
    DeviceIdentifier { app_id: app_id.to_string(), dev_id: dev_id.to_string() }
}
