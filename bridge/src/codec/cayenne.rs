//! The data types of Cayenne Low Power Payload, and how their values are read and written.
//!
//! The handler has its own, with the rounding of The Things Network v2; what they share is too little for a crate.

use serde_json::{Value, json};

/// A type of value.
pub struct DataType {
    /// The byte that stands for it.
    pub id: u8,
    /// Its name, such as `temperatureSensor`.
    pub name: &'static str,
    /// The names of its values; none for a single one.
    axes: &'static [&'static str],
    bytes: usize,
    is_signed: bool,
    /// For each value.
    divisors: &'static [f64],
}

const AXES: &[&str] = &["x", "y", "z"];
const POSITION: &[&str] = &["latitude", "longitude", "altitude"];

/// All types, by [`DataType::id`].
pub const DATA_TYPES: [DataType; 12] = [
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

/// A value of a payload.
pub struct Reading {
    /// The place of its type in [`DATA_TYPES`].
    pub place: usize,
    /// Channel, which identifies the sensor.
    pub channel: u8,
    /// A number, or an object of numbers.
    pub value: Value,
}

/// Reads the values of a payload, and returns the rest: one byte at most. The error describes the fault.
pub fn read(payload: &[u8]) -> Result<(Vec<Reading>, &[u8]), String> {
    let (mut readings, mut rest) = (Vec::new(), payload);
    while let [channel, id, tail @ ..] = rest {
        let (place, data_type) = DATA_TYPES
            .iter()
            .enumerate()
            .find(|(_, data_type)| data_type.id == *id)
            .ok_or(format!("type {id} is unknown"))?;
        let length = data_type.bytes * data_type.divisors.len();
        let (bytes, tail) =
            tail.split_at_checked(length).ok_or_else(|| format!("it ends within {}", data_type.name))?;
        readings.push(Reading { place, channel: *channel, value: data_type.read(bytes) });
        rest = tail;
    }
    Ok((readings, rest))
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

    /// Writes a value; the error describes the fault.
    pub fn write(&self, value: &Value, payload: &mut Vec<u8>) -> Result<(), String> {
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
