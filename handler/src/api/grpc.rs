//! The handler's operations over gRPC, as v2 clients call them.

mod addresses;
mod joins;
mod status;

use std::sync::Arc;

use api::handler::{
    Application, ApplicationIdentifier, Device, DeviceIdentifier, DeviceList, DryDownlinkMessage, DryDownlinkResult,
    DryUplinkMessage, DryUplinkResult, SimulatedUplinkMessage,
    application_manager_server::{ApplicationManager, ApplicationManagerServer},
};
use api::{rest::handler as body, status::with_detail};
use server::{
    auth::credential_of,
    status::{grpc, to_status},
};
use tonic::{
    Request, Response, Status,
    metadata::{MetadataMap, MetadataValue},
};
use types::{Kind, Kinded};

use crate::{
    Error,
    api::operations::{Caller, DryRun, Operations},
    api::wire::{app_id, dev_id},
};

pub(crate) use self::{addresses::Addresses, joins::Joins, status::Figures};

/// The gRPC side of the application manager.
pub(crate) struct Service {
    operations: Arc<Operations>,
}

impl Service {
    /// Offers `operations` over gRPC.
    pub(crate) fn server(operations: Arc<Operations>) -> ApplicationManagerServer<Self> {
        ApplicationManagerServer::new(Self { operations })
    }
}

#[tonic::async_trait]
impl ApplicationManager for Service {
    async fn register_application(&self, request: Request<ApplicationIdentifier>) -> Result<Response<()>, Status> {
        let (caller, message) = open(request)?;
        let app_id = app_id(&message.app_id).map_err(refuse)?;
        answer(self.operations.register_application(caller, &app_id).await)
    }

    async fn get_application(&self, request: Request<ApplicationIdentifier>) -> Result<Response<Application>, Status> {
        let (caller, message) = open(request)?;
        let app_id = app_id(&message.app_id).map_err(refuse)?;
        let application = self.operations.get_application(caller, &app_id).await;
        answer(application.map(|application| body::Application::from(application).into()))
    }

    async fn set_application(&self, request: Request<Application>) -> Result<Response<()>, Status> {
        let (caller, message) = open(request)?;
        let application = body::Application::from(message).try_into().map_err(refuse)?;
        answer(self.operations.set_application(caller, application).await)
    }

    async fn delete_application(&self, request: Request<ApplicationIdentifier>) -> Result<Response<()>, Status> {
        let (caller, message) = open(request)?;
        let app_id = app_id(&message.app_id).map_err(refuse)?;
        answer(self.operations.delete_application(caller, &app_id).await)
    }

    async fn get_device(&self, request: Request<DeviceIdentifier>) -> Result<Response<Device>, Status> {
        let (caller, message) = open(request)?;
        let (app_id, dev_id) = (app_id(&message.app_id).map_err(refuse)?, dev_id(&message.dev_id).map_err(refuse)?);
        let device = self.operations.get_device(caller, &app_id, &dev_id).await;
        answer(device.map(|device| body::Device::from(device).into()))
    }

    async fn set_device(&self, request: Request<Device>) -> Result<Response<()>, Status> {
        let (caller, message) = open(request)?;
        let body = body::Device::try_from(message).map_err(|error| refuse(Error::invalid("Device", error)))?;
        let device = body.try_into().map_err(refuse)?;
        answer(self.operations.set_device(caller, device).await)
    }

    async fn delete_device(&self, request: Request<DeviceIdentifier>) -> Result<Response<()>, Status> {
        let (caller, message) = open(request)?;
        let (app_id, dev_id) = (app_id(&message.app_id).map_err(refuse)?, dev_id(&message.dev_id).map_err(refuse)?);
        answer(self.operations.delete_device(caller, &app_id, &dev_id).await)
    }

    async fn get_devices_for_application(
        &self,
        request: Request<ApplicationIdentifier>,
    ) -> Result<Response<DeviceList>, Status> {
        let (limit, offset) = (number(request.metadata(), "limit")?, number(request.metadata(), "offset")?);
        let (caller, message) = open(request)?;
        let app_id = app_id(&message.app_id).map_err(refuse)?;
        let page = self.operations.list_devices(caller, &app_id, offset, limit).await.map_err(refuse)?;
        let (total, selected) = (page.total, page.devices.len());
        let devices = page.devices.into_iter().map(|device| body::Device::from(device).into()).collect();
        let mut response = Response::new(DeviceList { devices });
        response.metadata_mut().insert("total", MetadataValue::from(total));
        response.metadata_mut().insert("selected", MetadataValue::from(selected));
        Ok(response)
    }

    async fn dry_uplink(&self, request: Request<DryUplinkMessage>) -> Result<Response<DryUplinkResult>, Status> {
        let (caller, message) = open(request)?;
        let run: DryRun<Vec<u8>> = message.try_into().map_err(refuse)?;
        let payload = run.input.clone();
        let decoded = self.operations.dry_uplink(caller, run).await;
        answer(decoded.map(|decoded| DryUplinkResult { payload, ..decoded.into() }))
    }

    async fn dry_downlink(&self, request: Request<DryDownlinkMessage>) -> Result<Response<DryDownlinkResult>, Status> {
        let (caller, message) = open(request)?;
        let run = message.try_into().map_err(refuse)?;
        answer(self.operations.dry_downlink(caller, run).await.map(Into::into))
    }

    /// Answers nothing, like v2; what the uplink cost stands in the metadata `fuel` and `microseconds`.
    async fn simulate_uplink(&self, request: Request<SimulatedUplinkMessage>) -> Result<Response<()>, Status> {
        let (caller, message) = open(request)?;
        let uplink = message.try_into().map_err(refuse)?;
        let cost = self.operations.simulate_uplink(caller, uplink).await.map_err(refuse)?;
        let mut response = Response::new(());
        response.metadata_mut().insert("fuel", MetadataValue::from(cost.fuel));
        response.metadata_mut().insert("microseconds", MetadataValue::from(cost.microseconds()));
        Ok(response)
    }
}

/// Takes a request apart into who calls and what they want.
fn open<T>(request: Request<T>) -> Result<(Caller, T), Status> {
    let (metadata, _, message) = request.into_parts();
    let caller = credential_of(&metadata.into_headers()).map_err(|error| to_status(&error))?;
    Ok((caller, message))
}

/// A number in the metadata; zero when it is not there.
fn number(metadata: &MetadataMap, name: &'static str) -> Result<usize, Status> {
    let Some(value) = metadata.get(name) else { return Ok(0) };
    let number = value.to_str().ok().and_then(|text| text.parse().ok());
    number.ok_or_else(|| refuse(Error::invalid(name, "must be a whole number from 0 up")))
}

fn answer<T>(result: Result<T, Error>) -> Result<Response<T>, Status> {
    result.map(Response::new).map_err(refuse)
}

#[expect(clippy::needless_pass_by_value, reason = "what `map_err` gives is given away")]
fn refuse(error: Error) -> Status {
    match &error {
        Error::Function(fault) if error.kind() == Kind::Invalid => {
            with_detail(grpc(Kind::Invalid), &error.to_string(), &fault.in_header())
        }
        Error::Throttled { exceeded, .. } => {
            let mut status = to_status(&error);
            status.metadata_mut().insert("retry-after", MetadataValue::from(exceeded.wait_s));
            status
        }
        _ => to_status(&error),
    }
}
