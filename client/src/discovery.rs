//! Discovery: which component serves what, and where.

use api::discovery::{
    Announcement, GetByAppIdRequest, GetRequest, GetServiceRequest, Metadata, MetadataRequest,
    discovery_client::DiscoveryClient as Stub, metadata,
};
use tonic::transport::Channel;
use types::{AppId, ComponentId, Credential, Secret, ServiceName};

use crate::{
    Result, Trust,
    grpc::{ANSWER_BYTES_MAX, Peer, authorized},
    retry::{Call, retry},
};

/// A client of a discovery service.
///
/// Calls that change nothing are tried three times while the service is away. A connection may take 2 s, an answer
/// 10 s and 4 MiB.
#[derive(Clone, Debug)]
pub struct DiscoveryClient {
    peer: Peer,
}

impl DiscoveryClient {
    /// Prepares calls to an address like `localhost:1900`; the first call connects.
    ///
    /// Must be called inside a tokio runtime.
    pub fn connect(address: &str, trust: &Trust) -> Result<Self> {
        Ok(Self { peer: Peer::new("discovery service", address, trust)? })
    }

    /// One component.
    pub async fn get(&self, service: ServiceName, id: &ComponentId) -> Result<Announcement> {
        let message = GetRequest { id: id.to_string(), service_name: service.to_string() };
        retry(Call::Read, || async {
            let answer = self.stub().get(message.clone()).await;
            answer.map(tonic::Response::into_inner).map_err(|status| self.peer.failed(status))
        })
        .await
    }

    /// Every component of a service.
    pub async fn get_all(&self, service: ServiceName) -> Result<Vec<Announcement>> {
        let message = GetServiceRequest { service_name: service.to_string() };
        retry(Call::Read, || async {
            let answer = self.stub().get_all(message.clone()).await;
            answer.map(|answer| answer.into_inner().services).map_err(|status| self.peer.failed(status))
        })
        .await
    }

    /// The handler that serves an application; its metadata is left out.
    pub async fn get_by_app_id(&self, app_id: &AppId) -> Result<Announcement> {
        let message = GetByAppIdRequest { app_id: app_id.to_string() };
        retry(Call::Read, || async {
            let answer = self.stub().get_by_app_id(message.clone()).await;
            answer.map(tonic::Response::into_inner).map_err(|status| self.peer.failed(status))
        })
        .await
    }

    /// Says who and where a component is, with its own token; its metadata is kept.
    pub async fn announce(&self, token: &Secret, announcement: Announcement) -> Result<()> {
        let credential = Credential::Token(token.clone());
        // Announcing twice is announcing once, so it is as safe to repeat as a read.
        retry(Call::Read, || async {
            let request = authorized(announcement.clone(), &credential)?;
            self.stub().announce(request).await.map(drop).map_err(|status| self.peer.failed(status))
        })
        .await
    }

    /// Says that a handler serves an application; it is moved from whoever served it before.
    pub async fn add_application(&self, credential: &Credential, handler: &ComponentId, app_id: &AppId) -> Result<()> {
        let message = serves(handler, app_id);
        retry(Call::Read, || async {
            let request = authorized(message.clone(), credential)?;
            self.stub().add_metadata(request).await.map(drop).map_err(|status| self.peer.failed(status))
        })
        .await
    }

    /// Says that a handler no longer serves an application.
    pub async fn delete_application(
        &self,
        credential: &Credential,
        handler: &ComponentId,
        app_id: &AppId,
    ) -> Result<()> {
        let message = serves(handler, app_id);
        retry(Call::Change, || async {
            let request = authorized(message.clone(), credential)?;
            self.stub().delete_metadata(request).await.map(drop).map_err(|status| self.peer.failed(status))
        })
        .await
    }

    fn stub(&self) -> Stub<Channel> {
        Stub::new(self.peer.channel.clone()).max_decoding_message_size(ANSWER_BYTES_MAX)
    }
}

fn serves(handler: &ComponentId, app_id: &AppId) -> MetadataRequest {
    MetadataRequest {
        id: handler.to_string(),
        service_name: ServiceName::Handler.to_string(),
        metadata: Some(Metadata { metadata: Some(metadata::Metadata::AppId(app_id.to_string())) }),
    }
}
