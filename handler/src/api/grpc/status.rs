//! The handler's status over gRPC.

use std::sync::Arc;

use api::handler::{
    StatusRequest,
    handler_manager_server::{HandlerManager, HandlerManagerServer},
};
use tonic::{Request, Response, Status};

use super::call::split;
use crate::api::operations::Operations;

/// Serves the handler manager.
pub(in crate::api) struct StatusService {
    operations: Arc<Operations>,
}

impl StatusService {
    /// Serves `operations`.
    pub(in crate::api) fn server(operations: Arc<Operations>) -> HandlerManagerServer<Self> {
        HandlerManagerServer::new(Self { operations })
    }
}

#[tonic::async_trait]
impl HandlerManager for StatusService {
    async fn get_status(&self, request: Request<StatusRequest>) -> Result<Response<api::handler::Status>, Status> {
        let (caller, _) = split(request)?;
        Ok(Response::new(self.operations.status(caller).await?))
    }
}
