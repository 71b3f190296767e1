//! `airlock devices info`: shows a device.

use client::handler::HandlerClient;
use types::{AppId, DevId, Timestamp};

use super::{args::BytesFormat, read};
use crate::terminal::fields;

pub(super) async fn run(
    handler: &HandlerClient,
    app_id: &AppId,
    dev_id: &DevId,
    format: BytesFormat,
) -> anyhow::Result<()> {
    let (device, lorawan) = read(handler, app_id, dev_id).await?;
    let last_seen = match lorawan.last_seen {
        0 => "never".to_owned(),
        nanos => Timestamp::from_nanos(nanos).to_string(),
    };
    let location = match (device.latitude, device.longitude, device.altitude) {
        (0.0, 0.0, 0) => String::new(),
        (latitude, longitude, altitude) => format!("{latitude}, {longitude}, {altitude} m"),
    };
    let attributes = device.attributes.iter().map(|(key, value)| format!("{key}: {value}")).collect::<Vec<_>>();
    fields([
        ("Application ID", device.app_id),
        ("Device ID", device.dev_id),
        ("Description", device.description),
        ("Location", location),
        ("Last Seen", last_seen),
        ("AppEUI", format_bytes(lorawan.app_eui.as_bytes(), format)),
        ("DevEUI", format_bytes(lorawan.dev_eui.as_bytes(), format)),
        ("DevAddr", format_bytes(lorawan.dev_addr.unwrap_or_default().as_bytes(), format)),
        ("AppKey", format_bytes(lorawan.app_key.unwrap_or_default().as_bytes(), format)),
        ("AppSKey", format_bytes(lorawan.app_s_key.unwrap_or_default().as_bytes(), format)),
        ("NwkSKey", format_bytes(lorawan.nwk_s_key.unwrap_or_default().as_bytes(), format)),
        ("FCntUp", lorawan.f_cnt_up.to_string()),
        ("FCntDown", lorawan.f_cnt_down.to_string()),
        ("Options", options(lorawan.disable_f_cnt_check, lorawan.uses32_bit_f_cnt)),
        ("Activation", lorawan.activation_constraints),
        ("Attributes", attributes.join(", ")),
    ])
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

fn options(disable_f_cnt_check: bool, uses32_bit_f_cnt: bool) -> String {
    let check = if disable_f_cnt_check { "FCntCheckDisabled" } else { "FCntCheckEnabled" };
    let width = if uses32_bit_f_cnt { "32BitFCnt" } else { "16BitFCnt" };
    format!("{check}, {width}")
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
