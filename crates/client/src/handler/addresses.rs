//! Device addresses that a handler assigns.

use api::lorawan::{
    DevAddrRequest, PrefixesRequest, dev_addr_manager_client::DevAddrManagerClient as Stub,
    prefixes_response::PrefixMapping,
};
use types::DevAddr;

use super::HandlerClient;
use crate::{Result, transport::retry::Call};

impl HandlerClient {
    /// Returns the prefixes of device addresses and their uses.
    pub async fn get_prefixes(&self) -> Result<Vec<PrefixMapping>> {
        let send = |channel, request| async move { Stub::new(channel).get_prefixes(request).await };
        Ok(self.call(Call::Repeatable, PrefixesRequest {}, send).await?.prefixes)
    }

    /// Returns a random address for these uses, which are words such as `abp` and `local`.
    ///
    /// It is not reserved.
    pub async fn get_dev_addr(&self, usage: &[&str]) -> Result<DevAddr> {
        let usage: Vec<String> = usage.iter().map(|word| (*word).to_owned()).collect();
        let send = |channel, request| async move { Stub::new(channel).get_dev_addr(request).await };
        let dev_addr = self.call(Call::Repeatable, DevAddrRequest { usage }, send).await?.dev_addr;
        DevAddr::try_from(dev_addr.as_slice()).map_err(|error| self.peer.unreadable(error))
    }
}
