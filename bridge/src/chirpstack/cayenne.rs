//! Cayenne Low Power Payload, with the names of ChirpStack: `{"temperatureSensor":{"7":24.5}}`.
//!
//! The handler has the names of The Things Network, and its rounding; what both share is too little for a module.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json, value::RawValue};

struct DataType {
    id: u8,
    name: &'static str,
    /// The names of its values; none for a single one.
    axes: &'static [&'static str],
    bytes: usize,
    is_signed: bool,
    /// For each value.
    divisors: &'static [f64],
}

const AXES: &[&str] = &["x", "y", "z"];
const POSITION: &[&str] = &["latitude", "longitude", "altitude"];

/// In the order in which ChirpStack encodes them.
const DATA_TYPES: [DataType; 12] = [
    plain(0, "digitalInput", 1, false, &[1.0]),
    plain(1, "digitalOutput", 1, false, &[1.0]),
    plain(2, "analogInput", 2, true, &[100.0]),
    plain(3, "analogOutput", 2, true, &[100.0]),
    plain(101, "illuminanceSensor", 2, false, &[1.0]),
    plain(102, "presenceSensor", 1, false, &[1.0]),
    plain(103, "temperatureSensor", 2, true, &[10.0]),
    plain(104, "humiditySensor", 1, false, &[2.0]),
    DataType { axes: AXES, ..plain(113, "accelerometer", 2, true, &[1000.0, 1000.0, 1000.0]) },
    plain(115, "barometer", 2, false, &[10.0]),
    DataType { axes: AXES, ..plain(134, "gyrometer", 2, true, &[100.0, 100.0, 100.0]) },
    DataType { axes: POSITION, ..plain(136, "gpsLocation", 3, true, &[10_000.0, 10_000.0, 100.0]) },
];

const fn plain(id: u8, name: &'static str, bytes: usize, is_signed: bool, divisors: &'static [f64]) -> DataType {
    DataType { id, name, axes: &[], bytes, is_signed, divisors }
}

/// Decodes a payload; the error says what is wrong with it.
pub(super) fn decode(payload: &[u8]) -> Result<Box<RawValue>, String> {
    let mut object: BTreeMap<usize, BTreeMap<u8, Value>> = BTreeMap::new();
    let mut rest = payload;
    // ChirpStack ignores a single byte at the end.
    while let [channel, id, tail @ ..] = rest {
        let (place, data_type) = DATA_TYPES
            .iter()
            .enumerate()
            .find(|(_, data_type)| data_type.id == *id)
            .ok_or(format!("type {id} is unknown"))?;
        let length = data_type.bytes * data_type.divisors.len();
        let (bytes, tail) =
            tail.split_at_checked(length).ok_or_else(|| format!("it ends within {}", data_type.name))?;
        object.entry(place).or_default().insert(*channel, data_type.read(bytes));
        rest = tail;
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
pub(super) fn encode(object: &str) -> Result<Vec<u8>, String> {
    let object: Map<String, Value> = serde_json::from_str(object).map_err(|error| error.to_string())?;
    if let Some(name) = object.keys().find(|name| DATA_TYPES.iter().all(|data_type| data_type.name != name.as_str())) {
        return Err(format!("`{name}` is not a type of Cayenne LPP"));
    }
    let mut payload = Vec::new();
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

impl DataType {
    fn read(&self, bytes: &[u8]) -> Value {
        let mut values =
            bytes.chunks(self.bytes).zip(self.divisors).map(|(bytes, divisor)| self.number(bytes) / divisor);
        if self.axes.is_empty() {
            return json!(values.next());
        }
        Value::Object(self.axes.iter().map(|axis| (*axis).to_owned()).zip(values.map(Value::from)).collect())
    }

    fn number(&self, bytes: &[u8]) -> f64 {
        let unsigned = bytes.iter().fold(0_u32, |number, byte| number << 8 | u32::from(*byte));
        let unused = 32 - 8 * bytes.len();
        if self.is_signed { f64::from(((unsigned << unused) as i32) >> unused) } else { f64::from(unsigned) }
    }

    fn write(&self, value: &Value, payload: &mut Vec<u8>) -> Result<(), String> {
        for (place, divisor) in self.divisors.iter().enumerate() {
            let (number, axis) = match self.axes.get(place) {
                Some(axis) => (&value[axis], *axis),
                None => (value, "value"),
            };
            let number = number.as_f64().ok_or_else(|| format!("`{}`: {axis} must be a number", self.name))?;
            payload.extend(&self.bounded(number * divisor).to_be_bytes()[4 - self.bytes..]);
        }
        Ok(())
    }

    /// Cut off to a whole number, within the range of the type.
    fn bounded(&self, number: f64) -> i32 {
        let bits = 8 * self.bytes as i32;
        let (least, most) =
            if self.is_signed { (-(1_i64 << (bits - 1)), (1_i64 << (bits - 1)) - 1) } else { (0, (1_i64 << bits) - 1) };
        (number as i64).clamp(least, most) as i32
    }
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
