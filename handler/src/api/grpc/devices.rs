//! Moves of devices over gRPC.

use api::device::{MoveDeviceRequest, MovedDevice, device_manager_server::DeviceManager};
use server::grpc::split;
use tonic::{Request, Response, Status};

use super::Service;
use crate::api::wire::device_move;

#[tonic::async_trait]
impl DeviceManager for Service {
    async fn move_device(&self, request: Request<MoveDeviceRequest>) -> Result<Response<MovedDevice>, Status> {
        let (caller, message) = split(request)?;
        let moving = device_move::device_move(&message)?;
        let to = moving.to.clone();
        let dropped = self.operations.move_device(caller, moving).await?;
        Ok(Response::new(device_move::message(to, dropped)))
    }
}
