//! Device addresses over gRPC. As in v2, anybody may ask: an address is not secret, and none is reserved.

use api::lorawan::{
    DevAddrRequest, DevAddrResponse, PrefixesRequest, PrefixesResponse, dev_addr_manager_server::DevAddrManager,
    prefixes_response::PrefixMapping,
};
use tonic::{Request, Response, Status};

use super::Service;
use crate::registry::device::{Prefix, Usage};

#[tonic::async_trait]
impl DevAddrManager for Service {
    async fn get_prefixes(&self, _: Request<PrefixesRequest>) -> Result<Response<PrefixesResponse>, Status> {
        let prefixes = self.operations.addresses.prefixes().iter().map(mapping).collect();
        Ok(Response::new(PrefixesResponse { prefixes }))
    }

    async fn get_dev_addr(&self, request: Request<DevAddrRequest>) -> Result<Response<DevAddrResponse>, Status> {
        let usage = Usage::from_names(&request.get_ref().usage)?;
        let address = self.operations.addresses.random(&usage)?;
        Ok(Response::new(DevAddrResponse { dev_addr: address.as_bytes().to_vec() }))
    }
}

fn mapping(prefix: &Prefix) -> PrefixMapping {
    let usage = prefix.usage.iter().map(|usage| usage.as_str().to_owned()).collect();
    PrefixMapping { prefix: prefix.prefix.to_string(), usage }
}
