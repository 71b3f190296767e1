//! The application manager over gRPC: applications, devices, dry runs and simulated uplinks.

use api::{
    handler::{
        Application, ApplicationIdentifier, Device, DeviceIdentifier, DeviceList, DryDownlinkMessage,
        DryDownlinkResult, DryUplinkMessage, DryUplinkResult, SimulatedUplinkMessage, SimulatedUplinkResult,
        application_manager_server::ApplicationManager,
    },
    rest::handler as body,
};
use server::grpc::{number, split};
use tonic::{Request, Response, Status, metadata::MetadataValue};

use super::Service;
use crate::{
    Error,
    api::{
        operations::DownlinkInput,
        wire::{app_id, device_ids, dry_run_application, uplink_input},
    },
};

#[tonic::async_trait]
impl ApplicationManager for Service {
    async fn register_application(&self, request: Request<ApplicationIdentifier>) -> Result<Response<()>, Status> {
        let (caller, message) = split(request)?;
        self.operations.register_application(caller, &app_id(&message.app_id)?).await?;
        Ok(Response::new(()))
    }

    async fn get_application(&self, request: Request<ApplicationIdentifier>) -> Result<Response<Application>, Status> {
        let (caller, message) = split(request)?;
        let application = self.operations.get_application(caller, &app_id(&message.app_id)?).await?;
        Ok(Response::new(body::HandlerApplication::from(application).into()))
    }

    async fn set_application(&self, request: Request<Application>) -> Result<Response<()>, Status> {
        let (caller, message) = split(request)?;
        self.operations.set_application(caller, body::HandlerApplication::from(message).try_into()?).await?;
        Ok(Response::new(()))
    }

    async fn delete_application(&self, request: Request<ApplicationIdentifier>) -> Result<Response<()>, Status> {
        let (caller, message) = split(request)?;
        self.operations.delete_application(caller, &app_id(&message.app_id)?).await?;
        Ok(Response::new(()))
    }

    async fn get_device(&self, request: Request<DeviceIdentifier>) -> Result<Response<Device>, Status> {
        let (caller, message) = split(request)?;
        let ids = device_ids(&message.app_id, &message.dev_id)?;
        let device = self.operations.get_device(caller, (&ids).into()).await?;
        Ok(Response::new(body::Device::from(device).into()))
    }

    async fn set_device(&self, request: Request<Device>) -> Result<Response<()>, Status> {
        let (caller, message) = split(request)?;
        let body = body::Device::try_from(message).map_err(|error| Error::invalid("Device", error))?;
        self.operations.set_device(caller, body.try_into()?).await?;
        Ok(Response::new(()))
    }

    async fn delete_device(&self, request: Request<DeviceIdentifier>) -> Result<Response<()>, Status> {
        let (caller, message) = split(request)?;
        let (app_id, dev_id) = device_ids(&message.app_id, &message.dev_id)?;
        self.operations.delete_device(caller, app_id, dev_id).await?;
        Ok(Response::new(()))
    }

    async fn get_devices_for_application(
        &self,
        request: Request<ApplicationIdentifier>,
    ) -> Result<Response<DeviceList>, Status> {
        let number = |name| number(request.metadata(), name, Error::invalid);
        let (limit, offset) = (number("limit")?, number("offset")?);
        let (caller, message) = split(request)?;
        let usage = caller.usage.clone();
        let (page, _turn) = self.operations.list_devices(caller, &app_id(&message.app_id)?, offset, limit).await?;
        let (total, selected) = (page.total, page.devices.len());
        let devices = usage.map_in_pieces(page.devices, |device| body::Device::from(device).into()).await;
        let mut response = Response::new(DeviceList { devices });
        response.metadata_mut().insert("total", MetadataValue::from(total));
        response.metadata_mut().insert("selected", MetadataValue::from(selected));
        Ok(response)
    }

    async fn dry_uplink(&self, request: Request<DryUplinkMessage>) -> Result<Response<DryUplinkResult>, Status> {
        let (caller, message) = split(request)?;
        let DryUplinkMessage { payload, app, port, record } = message;
        let (application, input) = (dry_run_application(app)?, uplink_input(payload, port, &record)?);
        let (payload, decoded) = self.operations.dry_uplink(caller, application, input).await?;
        Ok(Response::new(DryUplinkResult { payload, ..decoded.into() }))
    }

    async fn dry_downlink(&self, request: Request<DryDownlinkMessage>) -> Result<Response<DryDownlinkResult>, Status> {
        let (caller, message) = split(request)?;
        let DryDownlinkMessage { payload, fields, app, port } = message;
        let (application, input) = (dry_run_application(app)?, DownlinkInput { fields, payload });
        Ok(Response::new(self.operations.dry_downlink(caller, application, port, input).await?.into()))
    }

    /// The cost is also in the metadata `fuel` and `microseconds`, for clients of v2, where the message is empty.
    async fn simulate_uplink(
        &self,
        request: Request<SimulatedUplinkMessage>,
    ) -> Result<Response<SimulatedUplinkResult>, Status> {
        let (caller, message) = split(request)?;
        let simulated = self.operations.simulate_uplink(caller, message.try_into()?).await?;
        let result = SimulatedUplinkResult::from(simulated);
        let cost = [("fuel", result.fuel), ("microseconds", result.microseconds)];
        let mut response = Response::new(result);
        for (name, number) in cost {
            response.metadata_mut().insert(name, MetadataValue::from(number));
        }
        Ok(response)
    }
}
