//! Discovery: which component serves what, and where.

mod known;

use std::sync::Arc;

use api::discovery::{
    Announcement, GetByAppEuiRequest, GetByAppIdRequest, GetByGatewayIdRequest, GetRequest, GetServiceRequest,
    Metadata, MetadataRequest, discovery_client::DiscoveryClient as Stub, metadata::Metadata as Served,
};
use tonic::{Request, Response, Status, transport::Channel};
use types::{AppEui, AppId, ComponentId, Credential, GatewayId, Secret, ServiceName};

use crate::{
    Result, Trust,
    grpc::{ANSWER_BYTES_MAX, Peer, authorized},
    retry::Call,
};

use self::known::Known;

/// A client of a discovery service.
///
/// Calls are tried three times while the service is away. A connection may take 2 s, an answer 10 s and 4 MiB, a call
/// with all its tries 30 s. A component or a list that was read counts for a minute, unless this client or a clone of it
/// says something meanwhile; who serves an application, gateway or EUI is asked each time.
#[derive(Clone, Debug)]
pub struct DiscoveryClient {
    peer: Peer,
    known: Arc<Known>,
}

impl DiscoveryClient {
    /// Prepares calls to an address like `localhost:1900`; the first call connects.
    ///
    /// Must be called inside a tokio runtime.
    pub fn connect(address: &str, trust: &Trust) -> Result<Self> {
        Ok(Self { peer: Peer::new("discovery service", address, trust)?, known: Arc::default() })
    }

    /// One component.
    pub async fn get(&self, service: ServiceName, id: &ComponentId) -> Result<Announcement> {
        let question = (service, Some(id.clone()));
        if let Some(known) = self.known.find(&question).and_then(|known| known.into_iter().next()) {
            return Ok(known);
        }
        let message = GetRequest { id: id.to_string(), service_name: service.to_string() };
        let answer = self.call(message, None, |mut stub, request| async move { stub.get(request).await }).await?;
        self.known.keep(question, std::slice::from_ref(&answer));
        Ok(answer)
    }

    /// Every component of a service.
    pub async fn get_all(&self, service: ServiceName) -> Result<Vec<Announcement>> {
        let question = (service, None);
        if let Some(known) = self.known.find(&question) {
            return Ok(known);
        }
        let message = GetServiceRequest { service_name: service.to_string() };
        let answer = self.call(message, None, |mut stub, request| async move { stub.get_all(request).await }).await?;
        self.known.keep(question, &answer.services);
        Ok(answer.services)
    }

    /// The handler that serves an application; its metadata is left out.
    pub async fn get_by_app_id(&self, app_id: &AppId) -> Result<Announcement> {
        let message = GetByAppIdRequest { app_id: app_id.to_string() };
        self.call(message, None, |mut stub, request| async move { stub.get_by_app_id(request).await }).await
    }

    /// The router that serves a gateway; its metadata is left out.
    pub async fn get_by_gateway_id(&self, gateway_id: &GatewayId) -> Result<Announcement> {
        let message = GetByGatewayIdRequest { gateway_id: gateway_id.to_string() };
        self.call(message, None, |mut stub, request| async move { stub.get_by_gateway_id(request).await }).await
    }

    /// The handler through which devices with this application EUI join; its metadata is left out.
    pub async fn get_by_app_eui(&self, app_eui: AppEui) -> Result<Announcement> {
        let message = GetByAppEuiRequest { app_eui: app_eui.as_bytes().to_vec() };
        self.call(message, None, |mut stub, request| async move { stub.get_by_app_eui(request).await }).await
    }

    /// Says who and where a component is, with its own token; its metadata is kept.
    pub async fn announce(&self, token: &Secret, announcement: Announcement) -> Result<()> {
        let credential = Credential::Token(token.clone());
        self.call(announcement, Some(&credential), |mut stub, request| async move { stub.announce(request).await })
            .await
    }

    /// Says that a component serves something; it is moved from whichever of its service served it before.
    pub async fn add_metadata(
        &self,
        credential: &Credential,
        (service, id): (ServiceName, &ComponentId),
        served: Served,
    ) -> Result<()> {
        let message = request(service, id, served);
        self.call(message, Some(credential), |mut stub, request| async move { stub.add_metadata(request).await }).await
    }

    /// Says that a component no longer serves something.
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

    /// Says that a handler serves an application; it is moved from whoever served it before.
    pub async fn add_application(&self, credential: &Credential, handler: &ComponentId, app_id: &AppId) -> Result<()> {
        self.add_metadata(credential, (ServiceName::Handler, handler), Served::AppId(app_id.to_string())).await
    }

    /// Says that a handler no longer serves an application.
    pub async fn delete_application(
        &self,
        credential: &Credential,
        handler: &ComponentId,
        app_id: &AppId,
    ) -> Result<()> {
        self.delete_metadata(credential, (ServiceName::Handler, handler), Served::AppId(app_id.to_string())).await
    }

    /// Makes a call, which here may always be made twice: saying the same again changes nothing.
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
            // Whoever shows who they are is about to change something.
            self.known.forget();
        }
        let request = || match credential {
            Some(credential) => authorized(message.clone(), credential),
            None => Ok(Request::new(message.clone())),
        };
        let stub = |channel| Stub::new(channel).max_decoding_message_size(ANSWER_BYTES_MAX);
        self.peer.call(Call::Repeatable, request, |channel, request| send(stub(channel), request)).await
    }
}

fn request(service: ServiceName, id: &ComponentId, served: Served) -> MetadataRequest {
    let metadata = Some(Metadata { metadata: Some(served) });
    MetadataRequest { id: id.to_string(), service_name: service.to_string(), metadata }
}
