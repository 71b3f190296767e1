//! Cayenne Low Power Payload, with the names of ChirpStack: `{"temperatureSensor":{"7":24.5}}`.

use std::collections::BTreeMap;

use bridge::codec::cayenne::{DATA_TYPES, Reading, read};
use serde_json::{Map, Value, value::RawValue};

/// Decodes a payload; the error describes the fault.
pub(crate) fn decode(payload: &[u8]) -> Result<Box<RawValue>, String> {
    let mut object: BTreeMap<usize, BTreeMap<u8, Value>> = BTreeMap::new();
    // ChirpStack ignores a single byte at the end.
    let (readings, _) = read(payload)?;
    for Reading { place, channel, value } in readings {
        object.entry(place).or_default().insert(channel, value);
    }
    let object: Map<String, Value> = object
        .into_iter()
        .map(|(place, channels)| {
            let channels = channels.into_iter().map(|(channel, value)| (channel.to_string(), value));
            (DATA_TYPES[place].name.to_owned(), Value::Object(channels.collect()))
        })
        .collect();
    serde_json::value::to_raw_value(&object).map_err(|error| error.to_string())
}

/// Encodes an object of the form that [`decode`] returns.
pub(crate) fn encode(object: &str) -> Result<Vec<u8>, String> {
    let object: Map<String, Value> = serde_json::from_str(object).map_err(|error| error.to_string())?;
    if let Some(name) = object.keys().find(|name| DATA_TYPES.iter().all(|data_type| data_type.name != name.as_str())) {
        return Err(format!("`{name}` is not a type of Cayenne LPP"));
    }
    let mut payload = Vec::new();
    // ChirpStack encodes them in the same order.
    for data_type in &DATA_TYPES {
        for (channel, value) in channels(object.get(data_type.name), data_type.name)? {
            payload.extend([channel, data_type.id]);
            data_type.write(value, &mut payload)?;
        }
    }
    Ok(payload)
}

fn channels<'a>(value: Option<&'a Value>, name: &str) -> Result<BTreeMap<u8, &'a Value>, String> {
    let Some(value) = value else { return Ok(BTreeMap::new()) };
    let channels = value.as_object().ok_or_else(|| format!("`{name}` must be an object of channels"))?;
    let channel = |(channel, value): (&String, &'a Value)| {
        Ok((channel.parse().map_err(|_| format!("`{name}.{channel}` is not a channel from 0 to 255"))?, value))
    };
    channels.iter().map(channel).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decodes_and_encodes_every_type() {
        for (payload, object) in [
            (vec![], "{}"),
            (vec![3, 0, 1, 5, 1, 255], r#"{"digitalInput":{"3":1.0},"digitalOutput":{"5":255.0}}"#),
            (vec![3, 2, 0xff, 0xd8, 4, 3, 1, 0x2c], r#"{"analogInput":{"3":-0.4},"analogOutput":{"4":3.0}}"#),
            (vec![1, 101, 255, 255, 2, 102, 1], r#"{"illuminanceSensor":{"1":65535.0},"presenceSensor":{"2":1.0}}"#),
            (vec![3, 103, 1, 16, 5, 103, 0, 255], r#"{"temperatureSensor":{"3":27.2,"5":25.5}}"#),
            (vec![4, 104, 41], r#"{"humiditySensor":{"4":20.5}}"#),
            (vec![6, 113, 4, 0xd2, 0xfb, 0x2e, 0, 0], r#"{"accelerometer":{"6":{"x":1.234,"y":-1.234,"z":0.0}}}"#),
            (vec![10, 115, 0x29, 0xef], r#"{"barometer":{"10":1073.5}}"#),
            (vec![6, 134, 0, 100, 0, 200, 0xfe, 0x58], r#"{"gyrometer":{"6":{"x":1.0,"y":2.0,"z":-4.24}}}"#),
            (
                vec![1, 136, 6, 0x76, 0x5f, 0xf2, 0x96, 0x0a, 0, 3, 0xe8],
                r#"{"gpsLocation":{"1":{"latitude":42.3519,"longitude":-87.9094,"altitude":10.0}}}"#,
            ),
        ] {
            assert_eq!(decode(&payload).unwrap().get(), object);
            assert_eq!(encode(object).unwrap(), payload, "{object}");
        }
    }

    #[test]
    fn rejects_what_is_malformed() {
        for (payload, reason) in [(vec![1, 5, 0], "type 5"), (vec![1, 103, 0], "ends within temperatureSensor")] {
            assert!(decode(&payload).unwrap_err().contains(reason));
        }
        for (object, reason) in [
            ("[]", "map"),
            (r#"{"other":{}}"#, "`other`"),
            (r#"{"temperatureSensor":1}"#, "object of channels"),
            (r#"{"temperatureSensor":{"256":1}}"#, "256"),
            (r#"{"temperatureSensor":{"1":"x"}}"#, "number"),
            (r#"{"accelerometer":{"1":{"x":1}}}"#, "y must"),
        ] {
            let error = encode(object).unwrap_err();
            assert!(error.contains(reason), "{object}: {error}");
        }
    }

    #[test]
    fn values_out_of_range_are_bounded() {
        assert_eq!(
            encode(r#"{"digitalInput":{"1":300},"temperatureSensor":{"1":-1e9}}"#).unwrap(),
            [1, 0, 255, 1, 103, 0x80, 0]
        );
    }
}
