//! Cayenne Low Power Payload, with the field names of The Things Network.
//!
//! An uplink is a sequence of channel, type and big-endian value, and becomes fields such as `temperature_7`. In a
//! downlink, every field `value_<channel>` becomes a channel and a 16-bit number of hundredths.
//!
//! Not a crate: the names, the rounding and the refused inputs have to be those of v2.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer, ser::SerializeMap};

use crate::Error;

/// The values of a payload by field name, in their order.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Values(Vec<(String, Value)>);

#[derive(Clone, Copy, Debug, PartialEq)]
enum Value {
    Number(f32),
    Axes([f32; 3]),
    Position([f32; 3]),
}

struct DataType {
    id: u8,
    name: &'static str,
    encoding: Encoding,
}

#[derive(Clone, Copy)]
enum Encoding {
    /// An unsigned number: its length in bytes, and its divisor.
    Unsigned(usize, f32),
    /// A signed number: its length in bytes, and its divisor.
    Signed(usize, f32),
    /// Three signed numbers of two bytes, and their divisor.
    Axes(f32),
    /// Latitude, longitude and altitude of three bytes each.
    Position,
}

const DATA_TYPES: [DataType; 12] = [
    DataType { id: 0, name: "digital_in", encoding: Encoding::Unsigned(1, 1.0) },
    DataType { id: 1, name: "digital_out", encoding: Encoding::Unsigned(1, 1.0) },
    DataType { id: 2, name: "analog_in", encoding: Encoding::Signed(2, 100.0) },
    DataType { id: 3, name: "analog_out", encoding: Encoding::Signed(2, 100.0) },
    DataType { id: 101, name: "luminosity", encoding: Encoding::Unsigned(2, 1.0) },
    DataType { id: 102, name: "presence", encoding: Encoding::Unsigned(1, 1.0) },
    DataType { id: 103, name: "temperature", encoding: Encoding::Signed(2, 10.0) },
    DataType { id: 104, name: "relative_humidity", encoding: Encoding::Unsigned(1, 2.0) },
    DataType { id: 113, name: "accelerometer", encoding: Encoding::Axes(1000.0) },
    DataType { id: 115, name: "barometric_pressure", encoding: Encoding::Signed(2, 10.0) },
    DataType { id: 134, name: "gyrometer", encoding: Encoding::Axes(100.0) },
    DataType { id: 136, name: "gps", encoding: Encoding::Position },
];

impl Values {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn insert(&mut self, name: String, value: Value) {
        match self.0.iter_mut().find(|(other, _)| *other == name) {
            Some((_, other)) => *other = value,
            None => self.0.push((name, value)),
        }
    }
}

/// Decodes a payload; [`Error::Invalid`] for an unknown type or a truncated value.
pub(crate) fn decode(payload: &[u8]) -> Result<Values, Error> {
    let mut values = Values::default();
    let mut rest = payload;
    while let [channel, id, tail @ ..] = rest {
        let Some(data_type) = DATA_TYPES.iter().find(|data_type| data_type.id == *id) else {
            return Err(Error::invalid("Cayenne LPP payload", format_args!("type {id} is unknown")));
        };
        let Some((bytes, tail)) = tail.split_at_checked(data_type.encoding.length()) else {
            return Err(truncated(data_type.name));
        };
        values.insert(format!("{}_{channel}", data_type.name), data_type.encoding.decode(bytes));
        rest = tail;
    }
    if rest.is_empty() { Ok(values) } else { Err(truncated("a channel")) }
}

/// Encodes every field `value_<channel>`, and ignores all others, as clients expect.
pub(crate) fn encode(fields: &serde_json::Map<String, serde_json::Value>) -> Vec<u8> {
    let channels: BTreeMap<u8, f64> = fields
        .iter()
        .filter_map(|(name, value)| Some((name.strip_prefix("value_")?.parse().ok()?, value.as_f64()?)))
        .collect();
    channels.into_iter().flat_map(|(channel, value)| encode_value(channel, value)).collect()
}

/// Hundredths, computed in 32-bit floating point, truncated and wrapped to 16 bits: as v2 encoded them.
fn encode_value(channel: u8, value: f64) -> [u8; 3] {
    let hundredths = (value as f32 * 100.0) as i64;
    let [.., high, low] = hundredths.to_be_bytes();
    [channel, high, low]
}

fn truncated(what: &str) -> Error {
    Error::invalid("Cayenne LPP payload", format_args!("it ends within {what}"))
}

impl Encoding {
    fn length(self) -> usize {
        match self {
            Self::Unsigned(length, _) | Self::Signed(length, _) => length,
            Self::Axes(_) => 6,
            Self::Position => 9,
        }
    }

    /// Decodes as many bytes as [`Encoding::length`] says.
    fn decode(self, bytes: &[u8]) -> Value {
        match self {
            Self::Unsigned(_, divisor) => Value::Number(unsigned(bytes) as f32 / divisor),
            Self::Signed(_, divisor) => Value::Number(signed(bytes) as f32 / divisor),
            Self::Axes(divisor) => Value::Axes(three(bytes, [divisor; 3])),
            Self::Position => Value::Position(three(bytes, [10_000.0, 10_000.0, 100.0])),
        }
    }
}

fn unsigned(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0, |number, byte| number << 8 | u32::from(*byte))
}

fn signed(bytes: &[u8]) -> i32 {
    let unused = 32 - 8 * bytes.len();
    ((unsigned(bytes) << unused) as i32) >> unused
}

fn three(bytes: &[u8], divisors: [f32; 3]) -> [f32; 3] {
    let width = bytes.len() / 3;
    std::array::from_fn(|axis| signed(&bytes[axis * width..(axis + 1) * width]) as f32 / divisors[axis])
}

impl Serialize for Values {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (names, values) = match self {
            Self::Number(number) => return Number(*number).serialize(serializer),
            Self::Axes(values) => (["x", "y", "z"], values),
            Self::Position(values) => (["latitude", "longitude", "altitude"], values),
        };
        let mut map = serializer.serialize_map(Some(names.len()))?;
        for (name, value) in names.iter().zip(values) {
            map.serialize_entry(name, &Number(*value))?;
        }
        map.end()
    }
}

/// A number with as many digits as its 32 bits need; whole numbers have no fraction.
struct Number(f32);

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.0.fract() == 0.0 { serializer.serialize_i32(self.0 as i32) } else { serializer.serialize_f32(self.0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(payload: &str) -> String {
        serde_json::to_string(&decode(&hex::decode(payload).unwrap()).unwrap()).unwrap()
    }

    #[test]
    fn decodes_every_type() {
        for (payload, expected) in [
            ("", "{}"),
            ("070001", r#"{"digital_in_7":1}"#),
            ("0701FF", r#"{"digital_out_7":255}"#),
            ("0302FFD8", r#"{"analog_in_3":-0.4}"#),
            ("0303012C", r#"{"analog_out_3":3}"#),
            ("0165FFFF", r#"{"luminosity_1":65535}"#),
            ("016601", r#"{"presence_1":1}"#),
            ("076700F5", r#"{"temperature_7":24.5}"#),
            ("046829", r#"{"relative_humidity_4":20.5}"#),
            ("067104D2FB2E0000", r#"{"accelerometer_6":{"x":1.234,"y":-1.234,"z":0}}"#),
            ("0A7329EF", r#"{"barometric_pressure_10":1073.5}"#),
            ("0686006400C8FE58", r#"{"gyrometer_6":{"x":1,"y":2,"z":-4.24}}"#),
            ("018806765FF2960A0003E8", r#"{"gps_1":{"latitude":42.3519,"longitude":-87.9094,"altitude":10}}"#),
            ("0167001001670020", r#"{"temperature_1":3.2}"#),
            ("016700100267FFFF", r#"{"temperature_1":1.6,"temperature_2":-0.1}"#),
        ] {
            assert_eq!(decoded(payload), expected, "{payload}");
        }
    }

    #[test]
    fn refuses_unknown_types_and_truncated_values() {
        for payload in ["01", "0105", "01FF00", "0167", "016700", "01670010FF", "0188067650"] {
            assert!(decode(&hex::decode(payload).unwrap()).is_err(), "{payload}");
        }
    }

    #[test]
    fn encodes_like_v2() {
        for (fields, expected) in [
            (r#"{"value_5":-15.6}"#, "05f9e8"),
            (r#"{"value_2":-50.51}"#, "02ec45"),
            (r#"{"value_9":1,"value_2":2,"other":3,"value_256":4,"value_x":5,"value_3":"6"}"#, "0200c8090064"),
            (r#"{"temperature_1":2}"#, ""),
        ] {
            assert_eq!(hex::encode(encode(&serde_json::from_str(fields).unwrap())), expected, "{fields}");
        }
    }

    #[test]
    fn never_panics() {
        // A deterministic generator, so that every run tests the same inputs.
        let mut state = 1_u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize
        };
        let mut decoded = 0;
        for round in 0..20_000 {
            let mut payload = Vec::new();
            for _ in 0..next() % 20 {
                let data_type = &DATA_TYPES[next() % DATA_TYPES.len()];
                payload.extend([next() as u8 % 4, data_type.id]);
                payload.extend((0..data_type.encoding.length()).map(|_| next() as u8));
            }
            match round % 4 {
                0 => payload.truncate(next() % 200),
                1 => payload.extend((0..next() % 30).map(|_| next() as u8)),
                _ => {}
            }
            if let Ok(values) = decode(&payload) {
                serde_json::to_string(&values).unwrap();
                decoded += 1;
            }
            let number = ["1e999", "-1e308", "1e308", "-0.0", "327.68", "0.005", "[1]", "null"][round % 8];
            let fields = format!(r#"{{"value_{}":{number},"value_":1,"value_-1":2,"value_1e1":3}}"#, next() % 300);
            if let Ok(fields) = serde_json::from_str(&fields) {
                encode(&fields);
            }
        }
        assert!((10_000..20_000).contains(&decoded), "{decoded} of 20,000 payloads were decoded");
    }
}
