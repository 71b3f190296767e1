//! A client of discovery, which knows the component that serves an application, and its address.

mod cache;

use std::sync::Arc;

use api::discovery::{
    Announcement, GetByAppEuiRequest, GetByAppIdRequest, GetByGatewayIdRequest, GetRequest, GetServiceRequest,
    Metadata, MetadataRequest, discovery_client::DiscoveryClient as Stub, metadata::Metadata as Served,
};
use tonic::{Request, Response, Status, transport::Channel};
use types::{AppEui, AppId, ComponentId, Credential, GatewayId, Secret, ServiceName};

use crate::{
    Result, Trust,
    transport::{
        grpc::{Peer, authorized},
        retry::Call,
    },
};

use self::cache::Cache;

/// A client of a discovery service.
///
/// Calls are attempted three times while the service is unavailable. Connecting may take 2 s, a response 10 s and 4
/// MiB, a call with all its attempts 30 s. Components and lists of components are cached for a minute, or until this
/// client or a clone of it changes something; look-ups by application, gateway or EUI are not cached.
#[derive(Clone, Debug)]
pub struct DiscoveryClient {
    peer: Peer,
    cache: Arc<Cache>,
}

impl DiscoveryClient {
    /// Prepares calls to an address like `localhost:1900`; the first call connects.
    ///
    /// Must be called inside a tokio runtime.
    pub fn connect(address: &str, trust: &Trust) -> Result<Self> {
        Ok(Self { peer: Peer::new("discovery service", address, trust)?, cache: Arc::default() })
    }

    /// Returns one component. Fails with `NotFound` if it is not announced.
    pub async fn get(&self, service: ServiceName, id: &ComponentId) -> Result<Announcement> {
        let key = (service, Some(id.clone()));
        if let Some(cached) = self.cache.get(&key).and_then(|cached| cached.into_iter().next()) {
            return Ok(cached);
        }
        let message = GetRequest { id: id.to_string(), service_name: service.to_string() };
        let response = self.call(message, None, |mut stub, request| async move { stub.get(request).await }).await?;
        self.cache.insert(key, std::slice::from_ref(&response));
        Ok(response)
    }

    /// Returns all components of a service.
    pub async fn get_all(&self, service: ServiceName) -> Result<Vec<Announcement>> {
        let key = (service, None);
        if let Some(cached) = self.cache.get(&key) {
            return Ok(cached);
        }
        let message = GetServiceRequest { service_name: service.to_string() };
        let response = self.call(message, None, |mut stub, request| async move { stub.get_all(request).await }).await?;
        self.cache.insert(key, &response.services);
        Ok(response.services)
    }

    /// The handler that serves an application, without its metadata.
    pub async fn get_by_app_id(&self, app_id: &AppId) -> Result<Announcement> {
        let message = GetByAppIdRequest { app_id: app_id.to_string() };
        self.call(message, None, |mut stub, request| async move { stub.get_by_app_id(request).await }).await
    }

    /// The router that serves a gateway, without its metadata.
    pub async fn get_by_gateway_id(&self, gateway_id: &GatewayId) -> Result<Announcement> {
        let message = GetByGatewayIdRequest { gateway_id: gateway_id.to_string() };
        self.call(message, None, |mut stub, request| async move { stub.get_by_gateway_id(request).await }).await
    }

    /// The handler through which devices with this application EUI join, without its metadata.
    pub async fn get_by_app_eui(&self, app_eui: AppEui) -> Result<Announcement> {
        let message = GetByAppEuiRequest { app_eui: app_eui.as_bytes().to_vec() };
        self.call(message, None, |mut stub, request| async move { stub.get_by_app_eui(request).await }).await
    }

    /// Announces a component with its own token; its metadata stays.
    pub async fn announce(&self, token: &Secret, announcement: Announcement) -> Result<()> {
        let credential = Credential::Token(token.clone());
        self.call(announcement, Some(&credential), |mut stub, request| async move { stub.announce(request).await })
            .await
    }

    /// Records that a component serves something, and that no other one does.
    pub async fn add_metadata(
        &self,
        credential: &Credential,
        (service, id): (ServiceName, &ComponentId),
        served: Served,
    ) -> Result<()> {
        let message = request(service, id, served);
        self.call(message, Some(credential), |mut stub, request| async move { stub.add_metadata(request).await }).await
    }

    /// Records that a component no longer serves something.
    pub async fn delete_metadata(
        &self,
        credential: &Credential,
        (service, id): (ServiceName, &ComponentId),
        served: Served,
    ) -> Result<()> {
        let message = request(service, id, served);
        self.call(message, Some(credential), |mut stub, request| async move { stub.delete_metadata(request).await })
            .await
    }

    /// Records that a handler serves an application, and that no other one does.
    pub async fn add_application(&self, credential: &Credential, handler: &ComponentId, app_id: &AppId) -> Result<()> {
        self.add_metadata(credential, (ServiceName::Handler, handler), Served::AppId(app_id.to_string())).await
    }

    /// Records that a handler no longer serves an application.
    pub async fn delete_application(
        &self,
        credential: &Credential,
        handler: &ComponentId,
        app_id: &AppId,
    ) -> Result<()> {
        self.delete_metadata(credential, (ServiceName::Handler, handler), Served::AppId(app_id.to_string())).await
    }

    /// Makes a call. All calls are repeatable: the same change again has no effect.
    async fn call<M, T, F>(
        &self,
        message: M,
        credential: Option<&Credential>,
        send: impl Fn(Stub<Channel>, Request<M>) -> F,
    ) -> Result<T>
    where
        M: Clone,
        F: Future<Output = std::result::Result<Response<T>, Status>>,
    {
        if credential.is_some() {
            // Only changes take a credential.
            self.cache.clear();
        }
        let request = || match credential {
            Some(credential) => authorized(message.clone(), credential),
            None => Ok(Request::new(message.clone())),
        };
        self.peer.call(Call::Repeatable, request, |channel, request| send(Stub::new(channel), request)).await
    }
}

fn request(service: ServiceName, id: &ComponentId, served: Served) -> MetadataRequest {
    let metadata = Some(Metadata { metadata: Some(served) });
    MetadataRequest { id: id.to_string(), service_name: service.to_string(), metadata }
}
