//! A client of ChirpStack's API: device profiles with their codecs, and devices with their variables.

use std::sync::Arc;

use api::chirpstack::{
    DeviceQueueItem, Empty, EnqueueDeviceQueueItemRequest, GetApplicationRequest, GetApplicationResponse,
    GetDeviceProfileRequest, GetDeviceProfileResponse, GetDeviceRequest, GetDeviceResponse, ListApplicationsRequest,
    ListApplicationsResponse, ListDeviceProfilesRequest, ListDeviceProfilesResponse, ListDevicesRequest,
    ListDevicesResponse, ListTenantsRequest, ListTenantsResponse,
    application_service_client::ApplicationServiceClient as ApplicationStub,
    device_profile_service_client::DeviceProfileServiceClient as ProfileStub,
    device_service_client::DeviceServiceClient as DeviceStub, tenant_service_client::TenantServiceClient as TenantStub,
};
use parking_lot::RwLock;
use tonic::{Request, Response, Status, transport::Channel};
use types::Secret;

use crate::{
    Error, Result, Trust,
    transport::{
        grpc::{Peer, with_bearer},
        retry::Call,
    },
};

/// Number of items in one page of a list.
pub const PAGE_ITEMS: u32 = 1000;

const SERVICE: &str = "ChirpStack API";

/// A client of a ChirpStack server, with an API key. Limits and retries are those of `HandlerClient`.
#[derive(Clone, Debug)]
pub struct ChirpStackClient {
    peer: Peer,
    token: Arc<RwLock<Secret>>,
}

impl ChirpStackClient {
    /// Creates a client for a URL such as `http://localhost:8080`; `trust` matters for `https` only.
    ///
    /// Must be called in a tokio runtime.
    pub fn connect(url: &str, trust: &Trust, token: Secret) -> Result<Self> {
        let (address, trust) = match url.trim_end_matches('/').split_once("://") {
            Some(("http", address)) => (with_port(address, 80), &Trust::Plaintext),
            Some(("https", address)) => (with_port(address, 443), trust),
            _ => return Err(Error::Address { address: url.to_owned(), expected: "http(s)://host(:port)" }),
        };
        Ok(Self { peer: Peer::new(SERVICE, &address, trust)?, token: Arc::new(RwLock::new(token)) })
    }

    /// Uses another API key from now on.
    pub fn set_token(&self, token: Secret) {
        *self.token.write() = token;
    }

    fn token(&self) -> Secret {
        self.token.read().clone()
    }

    /// Checks that the server answers and accepts the token.
    pub async fn check(&self) -> Result<()> {
        let send = |channel, request| async move { ProfileStub::new(channel).list_adr_algorithms(request).await };
        self.call(Call::Repeatable, Empty {}, send).await.map(drop)
    }

    /// Returns a device profile with its codec.
    pub async fn device_profile(&self, id: &str) -> Result<GetDeviceProfileResponse> {
        let message = GetDeviceProfileRequest { id: id.to_owned() };
        let send = |channel, request| async move { ProfileStub::new(channel).get(request).await };
        self.call(Call::Repeatable, message, send).await
    }

    /// Returns a page of the device profiles of a tenant, without their codecs.
    pub async fn device_profiles(&self, tenant_id: &str, offset: u32) -> Result<ListDeviceProfilesResponse> {
        let message = ListDeviceProfilesRequest { limit: PAGE_ITEMS, offset, tenant_id: tenant_id.to_owned() };
        let send = |channel, request| async move { ProfileStub::new(channel).list(request).await };
        self.call(Call::Repeatable, message, send).await
    }

    /// Returns a device with its variables.
    pub async fn device(&self, dev_eui: &str) -> Result<GetDeviceResponse> {
        let message = GetDeviceRequest { dev_eui: dev_eui.to_owned() };
        let send = |channel, request| async move { DeviceStub::new(channel).get(request).await };
        self.call(Call::Repeatable, message, send).await
    }

    /// Returns a page of the devices of an application, without their variables.
    pub async fn devices(&self, application_id: &str, offset: u32) -> Result<ListDevicesResponse> {
        let message = ListDevicesRequest { limit: PAGE_ITEMS, offset, application_id: application_id.to_owned() };
        let send = |channel, request| async move { DeviceStub::new(channel).list(request).await };
        self.call(Call::Repeatable, message, send).await
    }

    /// Returns an application with its name.
    pub async fn application(&self, id: &str) -> Result<GetApplicationResponse> {
        let message = GetApplicationRequest { id: id.to_owned() };
        let send = |channel, request| async move { ApplicationStub::new(channel).get(request).await };
        self.call(Call::Repeatable, message, send).await
    }

    /// Returns the first page of the applications of a tenant whose names have this part, in any case.
    pub async fn applications_named(&self, tenant_id: &str, part: &str) -> Result<ListApplicationsResponse> {
        let message = ListApplicationsRequest {
            limit: PAGE_ITEMS,
            search: part.to_owned(),
            tenant_id: tenant_id.to_owned(),
            ..ListApplicationsRequest::default()
        };
        let send = |channel, request| async move { ApplicationStub::new(channel).list(request).await };
        self.call(Call::Repeatable, message, send).await
    }

    /// Returns the first page of the tenants. The key of a tenant is refused.
    pub async fn tenants(&self) -> Result<ListTenantsResponse> {
        let message = ListTenantsRequest { limit: PAGE_ITEMS, offset: 0 };
        let send = |channel, request| async move { TenantStub::new(channel).list(request).await };
        self.call(Call::Repeatable, message, send).await
    }

    /// Adds a downlink to the queue of its device, which is emptied first if `flush_queue`; returns the downlink's id.
    pub async fn enqueue(&self, item: DeviceQueueItem, flush_queue: bool) -> Result<String> {
        let message = EnqueueDeviceQueueItemRequest { queue_item: Some(item), flush_queue };
        let send = |channel, request| async move { DeviceStub::new(channel).enqueue(request).await };
        self.call(Call::Once, message, send).await.map(|response| response.id)
    }

    async fn call<M: Clone, T, F>(&self, call: Call, message: M, send: impl Fn(Channel, Request<M>) -> F) -> Result<T>
    where
        F: Future<Output = std::result::Result<Response<T>, Status>>,
    {
        let request = || with_bearer(message.clone(), &self.token());
        self.peer.call(call, request, send).await
    }
}

fn with_port(address: &str, port: u16) -> String {
    let host_end = address.rfind(']').unwrap_or(0);
    if address[host_end..].contains(':') { address.to_owned() } else { format!("{address}:{port}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn accepts_urls_and_nothing_else() {
        for (url, fits) in [
            ("http://localhost:8080", true),
            ("http://localhost:8080/", true),
            ("https://chirpstack.example", true),
            ("https://[::1]:8080", true),
            ("localhost:8080", false),
            ("mqtt://localhost:1883", false),
            ("http://", false),
            ("http://user:secret@localhost:8080", false),
            ("http://localhost:8080/api", false),
        ] {
            let result = ChirpStackClient::connect(url, &Trust::System, Secret::new("token"));
            assert_eq!(result.is_ok(), fits, "{url}");
        }
    }

    #[test]
    fn a_url_without_a_port_has_that_of_its_scheme() {
        assert_eq!(with_port("chirpstack.example", 443), "chirpstack.example:443");
        assert_eq!(with_port("[::1]", 80), "[::1]:80");
        assert_eq!(with_port("[::1]:8080", 80), "[::1]:8080");
    }
}
