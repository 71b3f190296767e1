//! The handler's operations over gRPC, as v2 clients call them.

mod addresses;
mod applications;
mod devices;
mod downlinks;
mod error;
mod history;
mod joins;
mod status;
mod uplinks;
mod versions;

use std::sync::Arc;

use api::{
    device::device_manager_server::DeviceManagerServer,
    downlink::downlink_manager_server::DownlinkManagerServer,
    handler::{
        application_manager_server::ApplicationManagerServer, handler_manager_server::HandlerManagerServer,
        handler_server::HandlerServer,
    },
    history::history_manager_server::HistoryManagerServer,
    lorawan::dev_addr_manager_server::DevAddrManagerServer,
    uplink::uplink_manager_server::UplinkManagerServer,
    version::version_manager_server::VersionManagerServer,
};
use tonic::service::RoutesBuilder;

use super::operations::Operations;
use crate::uplink::batch::LINE_BYTES_MAX;

/// Serves the operations; each file here implements one service.
#[derive(Clone)]
struct Service {
    operations: Arc<Operations>,
}

pub(super) fn add_services(routes: &mut RoutesBuilder, operations: Arc<Operations>) {
    let service = Service { operations };
    routes.add_service(ApplicationManagerServer::new(service.clone()));
    routes.add_service(DevAddrManagerServer::new(service.clone()));
    routes.add_service(DeviceManagerServer::new(service.clone()));
    routes.add_service(DownlinkManagerServer::new(service.clone()));
    routes.add_service(HandlerManagerServer::new(service.clone()));
    routes.add_service(HandlerServer::new(service.clone()));
    routes.add_service(HistoryManagerServer::new(service.clone()));
    let uplinks = UplinkManagerServer::new(service.clone());
    routes.add_service(uplinks.max_decoding_message_size(LINE_BYTES_MAX));
    routes.add_service(VersionManagerServer::new(service));
}
