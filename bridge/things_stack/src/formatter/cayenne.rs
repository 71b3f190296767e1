//! Cayenne Low Power Payload, with the names of The Things Stack: `{"temperature_7":24.5}`.

use std::collections::BTreeMap;

use bridge::codec::cayenne::{DATA_TYPES, read};
use serde_json::{
    Map, Value,
    value::{RawValue, to_raw_value},
};

/// The names of [`DATA_TYPES`].
const NAMES: [&str; DATA_TYPES.len()] = [
    "digital_in",
    "digital_out",
    "analog_in",
    "analog_out",
    "luminosity",
    "presence",
    "temperature",
    "relative_humidity",
    "accelerometer",
    "barometric_pressure",
    "gyrometer",
    "gps",
];

/// Decodes a payload; the error describes the fault.
pub(crate) fn decode(payload: &[u8]) -> Result<Box<RawValue>, String> {
    let (readings, rest) = read(payload)?;
    if !rest.is_empty() {
        return Err("it ends within a channel".to_owned());
    }
    let named = |place: usize, channel| format!("{}_{channel}", NAMES[place]);
    let object: Map<String, Value> =
        readings.into_iter().map(|reading| (named(reading.place, reading.channel), reading.value)).collect();
    to_raw_value(&object).map_err(|error| error.to_string())
}

/// Encodes every member `value_<channel>` in hundredths, and ignores all others, as The Things Stack does.
pub(crate) fn encode(object: &str) -> Result<Vec<u8>, String> {
    let object: Map<String, Value> = serde_json::from_str(object).map_err(|error| error.to_string())?;
    let channels: BTreeMap<u8, f64> = object
        .iter()
        .filter_map(|(name, value)| Some((name.strip_prefix("value_")?.parse().ok()?, value.as_f64()?)))
        .collect();
    let bytes = |(channel, value): (u8, f64)| {
        let [.., high, low] = ((value * 100.0) as i64).to_be_bytes();
        [channel, high, low]
    };
    Ok(channels.into_iter().flat_map(bytes).collect())
}

/// Decodes what [`encode`] makes: channels with a value in hundredths each, up to the end or a channel 255.
pub(crate) fn decode_downlink(payload: &[u8]) -> Result<Box<RawValue>, String> {
    let end = payload.iter().step_by(3).position(|channel| *channel == 0xff).map_or(payload.len(), |count| count * 3);
    let (values, []) = payload[..end].as_chunks() else { return Err("it ends within a channel".to_owned()) };
    let named = |[channel, high, low]: &[u8; 3]| {
        (format!("value_{channel}"), f64::from(i16::from_be_bytes([*high, *low])) / 100.0)
    };
    let object: BTreeMap<String, f64> = values.iter().map(named).collect();
    to_raw_value(&object).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decodes_with_the_names_of_the_things_stack() {
        for (payload, object) in [
            (vec![], "{}"),
            (vec![3, 103, 1, 16, 5, 104, 41], r#"{"temperature_3":27.2,"relative_humidity_5":20.5}"#),
            (vec![6, 113, 4, 0xd2, 0xfb, 0x2e, 0, 0], r#"{"accelerometer_6":{"x":1.234,"y":-1.234,"z":0.0}}"#),
        ] {
            assert_eq!(decode(&payload).unwrap().get(), object);
        }
        assert!(decode(&[1, 103, 0, 1, 9]).unwrap_err().contains("within a channel"));
        assert!(decode(&[1, 5, 0]).unwrap_err().contains("type 5"));
    }

    #[test]
    fn encodes_values_in_hundredths() {
        let object = r#"{"value_2":-1.5,"value_1":10,"temperature_1":20,"value_300":1}"#;
        assert_eq!(encode(object).unwrap(), [1, 3, 0xe8, 2, 0xff, 0x6a]);
        assert!(encode("[]").is_err());
    }

    #[test]
    fn decodes_what_it_encodes() {
        let payload = [1, 3, 0xe8, 2, 0xff, 0x6a];
        assert_eq!(decode_downlink(&payload).unwrap().get(), r#"{"value_1":10.0,"value_2":-1.5}"#);
        assert_eq!(decode_downlink(&[1, 3, 0xe8, 0xff, 7]).unwrap().get(), r#"{"value_1":10.0}"#);
        assert!(decode_downlink(&[1, 3]).unwrap_err().contains("within a channel"));
    }
}
