//! The handler's figures over gRPC.

use std::sync::Arc;

use api::handler::{
    StatusRequest,
    handler_manager_server::{HandlerManager, HandlerManagerServer},
};
use tonic::{Request, Response, Status};

use super::{answer, open};
use crate::api::operations::Operations;

/// The gRPC side of the figures.
pub(crate) struct Figures {
    operations: Arc<Operations>,
}

impl Figures {
    /// Offers the figures of `operations` over gRPC.
    pub(crate) fn server(operations: Arc<Operations>) -> HandlerManagerServer<Self> {
        HandlerManagerServer::new(Self { operations })
    }
}

#[tonic::async_trait]
impl HandlerManager for Figures {
    async fn get_status(&self, request: Request<StatusRequest>) -> Result<Response<api::handler::Status>, Status> {
        let (caller, _) = open(request)?;
        answer(self.operations.status(caller).await)
    }
}
