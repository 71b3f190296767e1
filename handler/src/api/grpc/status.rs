//! The handler's status over gRPC.

use api::handler::{StatusRequest, handler_manager_server::HandlerManager};
use server::grpc::split;
use tonic::{Request, Response, Status};

use super::Service;

#[tonic::async_trait]
impl HandlerManager for Service {
    async fn get_status(&self, request: Request<StatusRequest>) -> Result<Response<api::handler::Status>, Status> {
        let (caller, _) = split(request)?;
        Ok(Response::new(self.operations.status(caller).await?))
    }
}
