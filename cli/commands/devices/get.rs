//! `airlock devices info`: shows a device.

use api::rest::handler::{Device, LorawanDevice};
use client::handler::HandlerClient;
use serde_json::{Value, json};
use types::{AppId, DevId, Timestamp};

use super::args::BytesFormat;
use crate::output::{Cell, Output, Record};

/// Completes when a device was last seen and what it had counted. Its record has joins and the frames of network
/// brokers; history also has simulated uplinks and those of bridges.
pub(super) async fn complete(
    handler: &HandlerClient,
    (app_id, dev_id): (&AppId, &DevId),
    lorawan: LorawanDevice,
) -> LorawanDevice {
    // History may be off, or the caller may not read messages.
    let Ok(heard) = handler.device_activity(app_id, dev_id, lorawan.last_seen).await else { return lorawan };
    let f_cnt_up = heard.f_cnt_up.unwrap_or(lorawan.f_cnt_up);
    LorawanDevice { last_seen: heard.last_seen, f_cnt_up, ..lorawan }
}

pub(super) fn record((device, lorawan): (Device, LorawanDevice), format: BytesFormat, output: &Output) -> Record {
    let last_seen = match lorawan.last_seen {
        0 => Cell::new("never", Value::Null),
        nanos => output.time(Timestamp::from_nanos(nanos)),
    };
    let bytes = |bytes: &[u8]| Cell::from(format_bytes(bytes, format));
    let attributes = device.attributes.iter().map(|(key, value)| format!("{key}: {value}")).collect::<Vec<_>>();
    let options = options(lorawan.disable_f_cnt_check, lorawan.uses32_bit_f_cnt);
    Record::new([
        (("app_id", "Application ID"), device.app_id.as_str().into()),
        (("dev_id", "Device ID"), device.dev_id.as_str().into()),
        (("description", "Description"), device.description.as_str().into()),
        (("location", "Location"), location(&device)),
        (("last_seen", "Last Seen"), last_seen),
        (("app_eui", "AppEUI"), bytes(lorawan.app_eui.as_bytes())),
        (("dev_eui", "DevEUI"), bytes(lorawan.dev_eui.as_bytes())),
        (("dev_addr", "DevAddr"), bytes(lorawan.dev_addr.unwrap_or_default().as_bytes())),
        (("app_key", "AppKey"), bytes(lorawan.app_key.unwrap_or_default().as_bytes())),
        (("app_s_key", "AppSKey"), bytes(lorawan.app_s_key.unwrap_or_default().as_bytes())),
        (("nwk_s_key", "NwkSKey"), bytes(lorawan.nwk_s_key.unwrap_or_default().as_bytes())),
        (("f_cnt_up", "FCntUp"), lorawan.f_cnt_up.into()),
        (("f_cnt_down", "FCntDown"), lorawan.f_cnt_down.into()),
        (("options", "Options"), Cell::list(&options, ", ")),
        (("activation", "Activation"), lorawan.activation_constraints.into()),
        (("attributes", "Attributes"), Cell::new(attributes.join(", "), json!(device.attributes))),
    ])
}

/// Degrees and metres; nothing where no location is set.
fn location(device: &Device) -> Cell {
    match (device.latitude, device.longitude, device.altitude) {
        (0.0, 0.0, 0) => Cell::new("", Value::Null),
        (latitude, longitude, altitude) => {
            // Not the digits that single precision adds.
            let exact = |degrees: f32| degrees.to_string().parse::<f64>().unwrap_or_default();
            let value = json!({"latitude": exact(latitude), "longitude": exact(longitude), "altitude": altitude});
            Cell::new(format!("{latitude}, {longitude}, {altitude} m"), value)
        }
    }
}

/// Bytes in hexadecimal or as a C array; empty if all are zero, which means that none are set.
fn format_bytes(bytes: &[u8], format: BytesFormat) -> String {
    let array = |bytes: &mut dyn Iterator<Item = &u8>| {
        format!("{{ {} }}", bytes.map(|byte| format!("0x{byte:02X}")).collect::<Vec<_>>().join(", "))
    };
    match format {
        _ if bytes.iter().all(|byte| *byte == 0) => String::new(),
        BytesFormat::Hex => hex::encode_upper(bytes),
        BytesFormat::Msb => array(&mut bytes.iter()) + " (msb first)",
        BytesFormat::Lsb => array(&mut bytes.iter().rev()) + " (lsb first)",
    }
}

fn options(disable_f_cnt_check: bool, uses32_bit_f_cnt: bool) -> [&'static str; 2] {
    let check = if disable_f_cnt_check { "FCntCheckDisabled" } else { "FCntCheckEnabled" };
    let width = if uses32_bit_f_cnt { "32BitFCnt" } else { "16BitFCnt" };
    [check, width]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_bytes() {
        for (format, expected) in [
            (BytesFormat::Hex, "260120FF"),
            (BytesFormat::Msb, "{ 0x26, 0x01, 0x20, 0xFF } (msb first)"),
            (BytesFormat::Lsb, "{ 0xFF, 0x20, 0x01, 0x26 } (lsb first)"),
        ] {
            assert_eq!(format_bytes(&[0x26, 0x01, 0x20, 0xff], format), expected);
            assert_eq!(format_bytes(&[0; 4], format), "");
        }
    }
}
