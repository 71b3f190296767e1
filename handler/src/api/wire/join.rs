//! Parses join requests from network brokers, and writes the responses with the session.

use api::{broker::DeduplicatedDeviceActivationRequest, lorawan, protocol};
use types::{AppEui, DevEui};

use super::device_ids;
use crate::{
    Error,
    network::{
        join::{Activated, ActivationRequest, JoinAccept, JoinRequest},
        network_broker::metadata,
    },
};

impl TryFrom<&DeduplicatedDeviceActivationRequest> for ActivationRequest {
    type Error = Error;

    fn try_from(message: &DeduplicatedDeviceActivationRequest) -> Result<Self, Error> {
        let join_request = JoinRequest::parse(&message.payload)?;
        let euis = (AppEui::try_from(&message.app_eui[..]), DevEui::try_from(&message.dev_eui[..]));
        if euis != (Ok(join_request.app_eui), Ok(join_request.dev_eui)) {
            return Err(Error::invalid("Activation", "AppEUI and DevEUI are not those of the payload"));
        }
        let template = message.response_template.as_ref().filter(|template| template.downlink_option.is_some());
        let (app_id, dev_id) = device_ids(&message.app_id, &message.dev_id)?;
        Ok(Self {
            app_id,
            dev_id,
            join_request,
            join_accept: template.map(|template| JoinAccept::parse(&template.payload)).transpose()?,
            metadata: metadata(
                message.protocol_metadata.as_ref(),
                &message.gateway_metadata,
                message.server_time,
                message.payload.len(),
            ),
        })
    }
}

impl Activated {
    /// The network's own metadata, completed with the session.
    pub(crate) fn metadata(&self, given: Option<protocol::ActivationMetadata>) -> protocol::ActivationMetadata {
        let given = given.and_then(|metadata| metadata.protocol);
        let lorawan = given.map(|protocol::activation_metadata::Protocol::Lorawan(lorawan)| lorawan);
        let lorawan = lorawan::ActivationMetadata {
            dev_addr: self.dev_addr.as_bytes().to_vec(),
            nwk_s_key: self.nwk_s_key.as_bytes().to_vec(),
            ..lorawan.unwrap_or_default()
        };
        protocol::ActivationMetadata { protocol: Some(protocol::activation_metadata::Protocol::Lorawan(lorawan)) }
    }
}
