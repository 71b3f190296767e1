//! Many simulated uplinks at once.

use api::{
    handler::SimulatedUplinkMessage,
    uplink::{UplinkAnswer, uplink_manager_client::UplinkManagerClient as Stub},
};
use futures::Stream;
use tonic::Streaming;

use super::HandlerClient;
use crate::{
    Result,
    transport::grpc::{Peer, RESPONSE_BYTES_MAX, authorized},
};

/// The answers to the uplinks of a batch, in their order.
#[derive(Debug)]
pub struct UplinkAnswers {
    answers: Streaming<UplinkAnswer>,
    peer: Peer,
}

impl HandlerClient {
    /// Sends uplinks of the application that the first one names, as if its devices had sent them. None is sent again.
    ///
    /// Read the answers while they are sent: the handler takes no more while answers wait. There is no time limit.
    pub async fn simulate_uplinks(
        &self,
        uplinks: impl Stream<Item = SimulatedUplinkMessage> + Send + 'static,
    ) -> Result<UplinkAnswers> {
        let request = authorized(uplinks, &self.credential)?;
        let mut stub = Stub::new(self.peer.channel()).max_decoding_message_size(RESPONSE_BYTES_MAX);
        let response = stub.simulate_uplinks(request).await.map_err(|status| self.peer.failed(status))?;
        Ok(UplinkAnswers { answers: response.into_inner(), peer: self.peer.clone() })
    }
}

impl UplinkAnswers {
    /// Waits for the answer to the next uplink; none after the last one.
    pub async fn next(&mut self) -> Result<Option<UplinkAnswer>> {
        self.answers.message().await.map_err(|status| self.peer.failed(status))
    }
}
