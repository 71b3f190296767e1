//! The downlink queues of devices over gRPC.

use api::{
    downlink::{Downlink, DownlinkList, downlink_manager_server::DownlinkManager},
    handler::DeviceIdentifier,
};
use server::grpc::split;
use tonic::{Request, Response, Status};

use super::Service;
use crate::api::wire::{app_id, dev_id, downlink};

#[tonic::async_trait]
impl DownlinkManager for Service {
    async fn schedule_downlink(&self, request: Request<Downlink>) -> Result<Response<Downlink>, Status> {
        let (caller, message) = split(request)?;
        let (app_id, dev_id) = (app_id(&message.app_id)?, dev_id(&message.dev_id)?);
        let sent = downlink::downlink(downlink::body(message)?)?;
        let scheduled = self.operations.schedule_downlink(caller, &app_id, &dev_id, &sent).await?;
        Ok(Response::new(downlink::scheduled_message(&app_id, &dev_id, scheduled)))
    }

    async fn get_downlinks_for_device(
        &self,
        request: Request<DeviceIdentifier>,
    ) -> Result<Response<DownlinkList>, Status> {
        let (caller, message) = split(request)?;
        let (app_id, dev_id) = (app_id(&message.app_id)?, dev_id(&message.dev_id)?);
        let queue = self.operations.list_downlinks(caller, &app_id, &dev_id).await?;
        let downlinks = queue.into_iter().map(|queued| downlink::queued_message(&app_id, &dev_id, queued)).collect();
        Ok(Response::new(DownlinkList { downlinks }))
    }

    async fn delete_downlinks_for_device(&self, request: Request<DeviceIdentifier>) -> Result<Response<()>, Status> {
        let (caller, message) = split(request)?;
        let (app_id, dev_id) = (app_id(&message.app_id)?, dev_id(&message.dev_id)?);
        self.operations.clear_downlinks(caller, &app_id, &dev_id).await?;
        Ok(Response::new(()))
    }
}
