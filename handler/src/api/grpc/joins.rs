//! Joins over gRPC, as v2's network brokers send them.

use api::{
    broker::{ActivationChallengeRequest, ActivationChallengeResponse, DeduplicatedDeviceActivationRequest},
    handler::{DeviceActivationResponse, handler_server::Handler},
};
use server::grpc::split;
use tonic::{Request, Response, Status};

use super::Service;
use crate::{
    api::wire::device_ids,
    network::join::{ActivationRequest, JoinRequest},
};

#[tonic::async_trait]
impl Handler for Service {
    async fn activation_challenge(
        &self,
        request: Request<ActivationChallengeRequest>,
    ) -> Result<Response<ActivationChallengeResponse>, Status> {
        let (caller, message) = split(request)?;
        let ids = device_ids(&message.app_id, &message.dev_id)?;
        let join_request = JoinRequest::parse(&message.payload)?;
        let payload = self.operations.challenge(caller, (&ids).into(), &join_request).await?;
        Ok(Response::new(ActivationChallengeResponse { payload, message: None }))
    }

    async fn activate(
        &self,
        request: Request<DeduplicatedDeviceActivationRequest>,
    ) -> Result<Response<DeviceActivationResponse>, Status> {
        let (caller, mut message) = split(request)?;
        let activation = ActivationRequest::try_from(&message)?;
        let downlink_option = message.response_template.take().and_then(|template| template.downlink_option);
        let (metadata, trace) = (message.activation_metadata.take(), message.trace.take());
        let activated = self.operations.activate(caller, activation).await?;
        Ok(Response::new(DeviceActivationResponse {
            activation_metadata: Some(activated.metadata(metadata)),
            payload: activated.frame,
            message: None,
            downlink_option,
            trace,
        }))
    }
}
