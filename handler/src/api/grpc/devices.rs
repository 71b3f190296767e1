//! Finding, changing and moving devices over gRPC.

use std::mem;

use api::device::{
    ChangeDevicesRequest, ChangedDevices, FindDevicesRequest, FoundDevices, MoveDeviceRequest, MovedDevice,
    NewestUplinks, NewestUplinksRequest, device_manager_server::DeviceManager,
};
use server::grpc::split;
use tonic::{Request, Response, Status};

use super::Service;
use crate::api::wire::{
    app_id,
    attributes::{attribute_change, changed_message},
    device_move,
    find::{SentSearch, device_body, found_message, newest_message, newest_of},
};

#[tonic::async_trait]
impl DeviceManager for Service {
    async fn find_devices(&self, request: Request<FindDevicesRequest>) -> Result<Response<FoundDevices>, Status> {
        let (caller, message) = split(request)?;
        let (app_id, usage) = (app_id(&message.app_id)?, caller.usage.clone());
        let search = SentSearch::from(message).into_search()?;
        let (mut found, _turn) = self.operations.find_devices(caller, &app_id, &search).await?;
        let devices = usage.map_in_pieces(mem::take(&mut found.devices), device_body).await;
        Ok(Response::new(found_message(devices, &found)))
    }

    async fn list_newest_uplinks(
        &self,
        request: Request<NewestUplinksRequest>,
    ) -> Result<Response<NewestUplinks>, Status> {
        let (caller, NewestUplinksRequest { app_id: application, dev_ids, limit }) = split(request)?;
        let wanted = newest_of(dev_ids.iter().map(String::as_str), limit as usize)?;
        let newest = self.operations.newest_uplinks(caller, &app_id(&application)?, wanted).await?;
        Ok(Response::new(newest_message(newest)))
    }

    async fn change_devices(&self, request: Request<ChangeDevicesRequest>) -> Result<Response<ChangedDevices>, Status> {
        let (caller, ChangeDevicesRequest { app_id: application, dev_ids, key, value }) = split(request)?;
        let (app_id, change) = (app_id(&application)?, attribute_change(&dev_ids, key, value)?);
        Ok(Response::new(changed_message(self.operations.change_attribute(caller, &app_id, change).await?)))
    }

    async fn move_device(&self, request: Request<MoveDeviceRequest>) -> Result<Response<MovedDevice>, Status> {
        let (caller, message) = split(request)?;
        let moving = device_move::device_move(&message)?;
        let to = moving.to.clone();
        let dropped = self.operations.move_device(caller, moving).await?;
        Ok(Response::new(device_move::message(to, dropped)))
    }
}
