//! Parses join requests from network brokers, and writes the responses with the session.

use api::{
    broker::DeduplicatedDeviceActivationRequest,
    gateway::RxMetadata,
    lorawan::{self, Modulation},
    protocol,
};
use types::{AppEui, DevEui, GatewayMetadata, Metadata, Timestamp};

use super::{app_id, dev_id};
use crate::{
    Error,
    join::{Activated, ActivationRequest, JoinAccept, JoinRequest},
};

/// Maximum number of gateways that an event names.
const GATEWAYS_MAX: usize = 100;

impl TryFrom<&DeduplicatedDeviceActivationRequest> for ActivationRequest {
    type Error = Error;

    fn try_from(message: &DeduplicatedDeviceActivationRequest) -> Result<Self, Error> {
        let join_request = JoinRequest::parse(&message.payload)?;
        let euis = (AppEui::try_from(&message.app_eui[..]), DevEui::try_from(&message.dev_eui[..]));
        if euis != (Ok(join_request.app_eui), Ok(join_request.dev_eui)) {
            return Err(Error::invalid("Activation", "AppEUI and DevEUI are not those of the payload"));
        }
        let template = message.response_template.as_ref().filter(|template| template.downlink_option.is_some());
        Ok(Self {
            app_id: app_id(&message.app_id)?,
            dev_id: dev_id(&message.dev_id)?,
            join_request,
            join_accept: template.map(|template| JoinAccept::parse(&template.payload)).transpose()?,
            metadata: metadata(message),
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

fn metadata(message: &DeduplicatedDeviceActivationRequest) -> Metadata {
    let lorawan = message.protocol_metadata.as_ref().and_then(|metadata| metadata.protocol.as_ref());
    let gateways = &message.gateway_metadata;
    let metadata = Metadata {
        time: time(message.server_time),
        frequency: gateways.first().map_or(0.0, |gateway| (gateway.frequency as f64 / 1e6) as f32),
        gateways: gateways.iter().take(GATEWAYS_MAX).map(gateway).collect(),
        ..Metadata::default()
    };
    let Some(protocol::rx_metadata::Protocol::Lorawan(lorawan)) = lorawan else { return metadata };
    let modulation = match lorawan.modulation() {
        Modulation::Lora => "LORA",
        Modulation::Fsk => "FSK",
    };
    Metadata {
        modulation: modulation.to_owned(),
        data_rate: lorawan.data_rate.clone(),
        bit_rate: lorawan.bit_rate,
        coding_rate: lorawan.coding_rate.clone(),
        ..metadata
    }
}

fn gateway(gateway: &RxMetadata) -> GatewayMetadata {
    let location = gateway.location.unwrap_or_default();
    GatewayMetadata {
        gtw_id: gateway.gateway_id.clone(),
        gtw_trusted: gateway.gateway_trusted,
        timestamp: gateway.timestamp,
        time: time(gateway.time),
        channel: gateway.channel,
        rssi: gateway.rssi,
        snr: gateway.snr,
        rf_chain: gateway.rf_chain,
        latitude: location.latitude,
        longitude: location.longitude,
        altitude: location.altitude,
    }
}

/// Nanoseconds since 1970 as text; empty for zero, which means unknown.
fn time(nanos: i64) -> String {
    if nanos == 0 { String::new() } else { Timestamp::from_nanos(nanos).to_rfc3339() }
}
