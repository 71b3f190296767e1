//! Device addresses that a handler assigns.

use api::lorawan::{
    DevAddrRequest, PrefixesRequest, dev_addr_manager_client::DevAddrManagerClient as Stub,
    prefixes_response::PrefixMapping,
};
use tonic::transport::Channel;
use types::DevAddr;

use super::HandlerClient;
use crate::{
    Result,
    transport::{
        grpc::{RESPONSE_BYTES_MAX, authorized},
        retry::Call,
    },
};

impl HandlerClient {
    /// Returns the prefixes of device addresses and their uses.
    pub async fn get_prefixes(&self) -> Result<Vec<PrefixMapping>> {
        let request = || authorized(PrefixesRequest {}, &self.credential);
        let send = |channel, request| async move { stub(channel).get_prefixes(request).await };
        Ok(self.peer.call(Call::Repeatable, request, send).await?.prefixes)
    }

    /// Returns a random address for these uses, which are words such as `abp` and `local`.
    ///
    /// It is not reserved.
    pub async fn get_dev_addr(&self, usage: &[&str]) -> Result<DevAddr> {
        let usage: Vec<String> = usage.iter().map(|word| (*word).to_owned()).collect();
        let request = || authorized(DevAddrRequest { usage: usage.clone() }, &self.credential);
        let send = |channel, request| async move { stub(channel).get_dev_addr(request).await };
        let dev_addr = self.peer.call(Call::Repeatable, request, send).await?.dev_addr;
        DevAddr::try_from(dev_addr.as_slice()).map_err(|error| self.peer.unreadable(error))
    }
}

fn stub(channel: Channel) -> Stub<Channel> {
    Stub::new(channel).max_decoding_message_size(RESPONSE_BYTES_MAX)
}
