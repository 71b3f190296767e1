//! The message that an uplink becomes.

use types::{Metadata, Uplink};

use crate::{
    payload::{Decoded, Payload, Validity},
    registry::device::Device,
};

/// The message that an uplink becomes.
pub(crate) fn message(device: &Device, mut payload: Payload, decoded: Decoded) -> Uplink {
    let metadata = metadata(device, &mut payload);
    let attributes = match decoded.validity {
        Validity::NotConverted => Default::default(),
        Validity::Valid | Validity::Invalid => device.attributes.clone(),
    };
    Uplink {
        app_id: device.app_id.clone(),
        dev_id: device.dev_id.clone(),
        hardware_serial: device.lorawan.dev_eui,
        port: payload.port,
        counter: payload.f_cnt,
        confirmed: payload.confirmed,
        is_retry: payload.is_retry,
        payload_raw: payload.bytes,
        payload_fields: decoded.fields,
        normalized_payload: decoded.normalized,
        metadata,
        attributes,
        revision: 0,
        corrects: String::new(),
    }
}

/// Returns the metadata of the message, with its time and the place of the device.
fn metadata(device: &Device, payload: &mut Payload) -> Metadata {
    Metadata {
        time: payload.received.to_rfc3339(),
        latitude: device.latitude,
        longitude: device.longitude,
        altitude: device.altitude,
        ..std::mem::take(&mut payload.metadata)
    }
}
