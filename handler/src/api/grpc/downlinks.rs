//! The downlink queues of devices over gRPC.

use api::{
    downlink::{Downlink, DownlinkList, downlink_manager_server::DownlinkManager},
    handler::DeviceIdentifier,
};
use server::grpc::split;
use tonic::{Request, Response, Status};

use super::Service;
use crate::api::wire::{device_ids, downlink};

#[tonic::async_trait]
impl DownlinkManager for Service {
    async fn schedule_downlink(&self, request: Request<Downlink>) -> Result<Response<Downlink>, Status> {
        let (caller, message) = split(request)?;
        let ids = device_ids(&message.app_id, &message.dev_id)?;
        let sent = downlink::downlink(downlink::body(message)?)?;
        let scheduled = self.operations.schedule_downlink(caller, (&ids).into(), &sent).await?;
        Ok(Response::new(downlink::scheduled_message((&ids).into(), scheduled)))
    }

    async fn get_downlinks_for_device(
        &self,
        request: Request<DeviceIdentifier>,
    ) -> Result<Response<DownlinkList>, Status> {
        let (caller, message) = split(request)?;
        let ids = device_ids(&message.app_id, &message.dev_id)?;
        let queue = self.operations.list_downlinks(caller, (&ids).into()).await?;
        let downlinks = queue.into_iter().map(|queued| downlink::queued_message((&ids).into(), queued)).collect();
        Ok(Response::new(DownlinkList { downlinks }))
    }

    async fn delete_downlinks_for_device(&self, request: Request<DeviceIdentifier>) -> Result<Response<()>, Status> {
        let (caller, message) = split(request)?;
        let ids = device_ids(&message.app_id, &message.dev_id)?;
        self.operations.clear_downlinks(caller, (&ids).into()).await?;
        Ok(Response::new(()))
    }
}
