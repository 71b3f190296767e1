//! Discovery's operations over gRPC, as v2 clients call them.

use std::sync::Arc;

use api::discovery::{
    Announcement, AnnouncementsResponse, GetByAppEuiRequest, GetByAppIdRequest, GetByGatewayIdRequest, GetRequest,
    GetServiceRequest, MetadataRequest,
    discovery_server::{Discovery, DiscoveryServer},
};
use server::{
    grpc::{number, split},
    status::to_status,
    usage::Usage,
};
use tonic::{Request, Response, Status, metadata::MetadataMap};
use types::AppEui;

use crate::{
    Error,
    error::Result as OurResult,
    operations::{Assignment, Operations},
    registry::Page,
};

pub(crate) struct Service {
    operations: Arc<Operations>,
}

type GrpcResult<T> = Result<Response<T>, Status>;

impl Service {
    pub(crate) fn server(operations: Arc<Operations>) -> DiscoveryServer<Self> {
        DiscoveryServer::new(Self { operations })
    }
}

#[tonic::async_trait]
impl Discovery for Service {
    async fn announce(&self, request: Request<Announcement>) -> GrpcResult<()> {
        let (caller, message) = split(request)?;
        let announcement = message.try_into().map_err(refuse)?;
        response(self.operations.announce(caller, &announcement).await)
    }

    async fn get_all(&self, request: Request<GetServiceRequest>) -> GrpcResult<AnnouncementsResponse> {
        let page = page(request.metadata()).map_err(refuse)?;
        // An unknown service has no components.
        let Ok(service) = request.get_ref().service_name.parse() else { return Ok(Response::new(Default::default())) };
        let usage = Usage::in_extensions(request.extensions());
        let services = self.operations.get_all(service, page, &usage).await;
        response(services.map(|services| AnnouncementsResponse { services }))
    }

    async fn get(&self, request: Request<GetRequest>) -> GrpcResult<Announcement> {
        let usage = Usage::in_extensions(request.extensions());
        let GetRequest { id, service_name } = request.into_inner();
        let service = service_name.parse().map_err(refuse)?;
        response(self.operations.get(service, &id.parse().map_err(refuse)?, &usage).await)
    }

    async fn add_metadata(&self, request: Request<MetadataRequest>) -> GrpcResult<()> {
        let (caller, message) = split(request)?;
        response(self.operations.add_metadata(caller, &assignment(message).map_err(refuse)?).await)
    }

    async fn delete_metadata(&self, request: Request<MetadataRequest>) -> GrpcResult<()> {
        let (caller, message) = split(request)?;
        response(self.operations.delete_metadata(caller, &assignment(message).map_err(refuse)?).await)
    }

    async fn get_by_app_id(&self, request: Request<GetByAppIdRequest>) -> GrpcResult<Announcement> {
        let app_id = request.get_ref().app_id.parse().map_err(refuse)?;
        response(self.operations.get_by_app_id(app_id).await)
    }

    async fn get_by_gateway_id(&self, request: Request<GetByGatewayIdRequest>) -> GrpcResult<Announcement> {
        let gateway_id = request.get_ref().gateway_id.parse().map_err(refuse)?;
        response(self.operations.get_by_gateway_id(gateway_id).await)
    }

    async fn get_by_app_eui(&self, request: Request<GetByAppEuiRequest>) -> GrpcResult<Announcement> {
        let app_eui = app_eui(&request.get_ref().app_eui).map_err(refuse)?;
        response(self.operations.get_by_app_eui(app_eui).await)
    }
}

fn assignment(message: MetadataRequest) -> OurResult<Assignment> {
    let metadata = message.metadata.and_then(|metadata| metadata.metadata);
    let metadata = metadata.ok_or_else(|| Error::denied("Unknown Metadata type"))?;
    Ok(Assignment { service: message.service_name.parse()?, id: message.id.parse()?, metadata: metadata.try_into()? })
}

/// Reads the requested page from the metadata `limit` and `offset`.
fn page(metadata: &MetadataMap) -> OurResult<Page> {
    let number = |name| number(metadata, name, Error::invalid);
    Ok(Page { limit: number("limit")?, offset: number("offset")? })
}

/// Parses a join EUI; an empty one is all zeros.
fn app_eui(bytes: &[u8]) -> OurResult<AppEui> {
    if bytes.is_empty() {
        return Ok(AppEui::default());
    }
    bytes.try_into().map_err(|_| Error::invalid("AppEUI", "must be 8 bytes"))
}

fn response<T>(outcome: OurResult<T>) -> GrpcResult<T> {
    outcome.map(Response::new).map_err(refuse)
}

fn refuse(error: impl Into<Error>) -> Status {
    to_status(&error.into())
}
