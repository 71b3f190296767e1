//! Devices that join, over gRPC, as brokers of v2 bring them.

use std::sync::Arc;

use api::{
    broker::{ActivationChallengeRequest, ActivationChallengeResponse, DeduplicatedDeviceActivationRequest},
    handler::{
        DeviceActivationResponse,
        handler_server::{Handler, HandlerServer},
    },
};
use tonic::{Request, Response, Status};

use super::{answer, open, refuse};
use crate::{
    api::operations::Operations,
    api::wire::{app_id, dev_id},
    join::{Join, JoinRequest},
};

/// The gRPC side of joining.
pub(crate) struct Joins {
    operations: Arc<Operations>,
}

impl Joins {
    /// Offers joining by `operations` over gRPC.
    pub(crate) fn server(operations: Arc<Operations>) -> HandlerServer<Self> {
        HandlerServer::new(Self { operations })
    }
}

#[tonic::async_trait]
impl Handler for Joins {
    async fn activation_challenge(
        &self,
        request: Request<ActivationChallengeRequest>,
    ) -> Result<Response<ActivationChallengeResponse>, Status> {
        let (caller, message) = open(request)?;
        let (app_id, dev_id) = (app_id(&message.app_id).map_err(refuse)?, dev_id(&message.dev_id).map_err(refuse)?);
        let join = JoinRequest::parse(&message.payload).map_err(refuse)?;
        let payload = self.operations.challenge(caller, &app_id, &dev_id, &join).await;
        answer(payload.map(|payload| ActivationChallengeResponse { payload, message: None }))
    }

    async fn activate(
        &self,
        request: Request<DeduplicatedDeviceActivationRequest>,
    ) -> Result<Response<DeviceActivationResponse>, Status> {
        let (caller, mut message) = open(request)?;
        let join = Join::try_from(&message).map_err(refuse)?;
        let option = message.response_template.take().and_then(|template| template.downlink_option);
        let (metadata, trace) = (message.activation_metadata.take(), message.trace.take());
        let joined = self.operations.activate(caller, join).await;
        answer(joined.map(|joined| DeviceActivationResponse {
            activation_metadata: Some(joined.metadata(metadata)),
            payload: joined.frame,
            message: None,
            downlink_option: option,
            trace,
        }))
    }
}
