//! Device addresses over gRPC. Like in v2 anybody may ask: an address is no secret, and none is taken.

use std::sync::Arc;

use api::lorawan::{
    DevAddrRequest, DevAddrResponse, PrefixesRequest, PrefixesResponse,
    dev_addr_manager_server::{DevAddrManager, DevAddrManagerServer},
    prefixes_response::PrefixMapping,
};
use tonic::{Request, Response, Status};

use super::answer;
use crate::{
    api::operations::Operations,
    device::{Prefix, Usage},
};

/// The gRPC side of the addresses.
pub(crate) struct Addresses {
    operations: Arc<Operations>,
}

impl Addresses {
    /// Offers the addresses of `operations` over gRPC.
    pub(crate) fn server(operations: Arc<Operations>) -> DevAddrManagerServer<Self> {
        DevAddrManagerServer::new(Self { operations })
    }
}

#[tonic::async_trait]
impl DevAddrManager for Addresses {
    async fn get_prefixes(&self, _: Request<PrefixesRequest>) -> Result<Response<PrefixesResponse>, Status> {
        let prefixes = self.operations.addresses.prefixes().iter().map(mapping).collect();
        Ok(Response::new(PrefixesResponse { prefixes }))
    }

    async fn get_dev_addr(&self, request: Request<DevAddrRequest>) -> Result<Response<DevAddrResponse>, Status> {
        let usage = Usage::from_words(&request.get_ref().usage);
        let address = usage.and_then(|usage| self.operations.addresses.random(&usage));
        answer(address.map(|address| DevAddrResponse { dev_addr: address.as_bytes().to_vec() }))
    }
}

fn mapping(prefix: &Prefix) -> PrefixMapping {
    let usage = prefix.usage.iter().map(|usage| usage.as_str().to_owned()).collect();
    PrefixMapping { prefix: prefix.prefix.to_string(), usage }
}
