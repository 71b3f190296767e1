//! A sample application: three devices that measure something, and what their uplinks must become.

use serde_json::{Map, Value, json};
use types::Random;

/// The sample's decoder, in the dialect of The Things Network v2.
pub(crate) const DECODER: &str = include_str!("decoder.js");
/// The sample's converter.
pub(crate) const CONVERTER: &str = include_str!("converter.js");
/// The sample's validator.
pub(crate) const VALIDATOR: &str = include_str!("validator.js");

/// The devices, by the id that they are registered with.
pub(crate) const DEVICES: [&str; 3] = ["cold-room", "greenhouse", "water-meter"];

/// One uplink of a device, and the fields that the functions must make of it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Reading {
    /// The LoRaWAN port.
    pub(crate) port: u8,
    /// What the device sends.
    pub(crate) payload: Vec<u8>,
    /// What must arrive.
    pub(crate) fields: Value,
}

/// The state of the world that the devices measure.
pub(crate) struct World {
    /// Hundredths of a degree, in the cold room and in the greenhouse.
    temperatures: [i16; 2],
    /// Halves of a percent.
    humidities: [u8; 2],
    /// Litres since the start.
    volume: u32,
}

impl World {
    /// A day like any other.
    pub(crate) fn new() -> Self {
        Self { temperatures: [410, 2350], humidities: [170, 124], volume: 48_213 }
    }

    /// What the device of that number in [`DEVICES`] sends next.
    pub(crate) fn measure(&mut self, device: usize, random: &dyn Random) -> Reading {
        let mut dice = [0; 3];
        random.fill(&mut dice);
        match self.temperatures.get_mut(device) {
            Some(temperature) => {
                *temperature = drift(*temperature, dice[0]);
                let humidity = &mut self.humidities[device];
                *humidity = humidity.saturating_add(dice[1] % 5).saturating_sub(2).clamp(60, 199);
                climate(*temperature, *humidity, 160 + dice[2] % 4)
            }
            None => {
                let flow = u16::from(dice[0] % 200);
                self.volume += u32::from(flow) / 10;
                meter(self.volume, flow, dice[1] < 8, 158 + dice[2] % 3)
            }
        }
    }
}

/// A step of at most a fifth of a degree.
fn drift(temperature: i16, dice: u8) -> i16 {
    temperature + i16::from(dice % 41) - 20
}

fn climate(temperature: i16, humidity: u8, battery: u8) -> Reading {
    let [high, low] = temperature.to_be_bytes();
    let (degrees, percent) = (f64::from(temperature) / 100.0, f64::from(humidity) / 2.0);
    let gamma = (percent / 100.0).ln() + 17.62 * degrees / (243.12 + degrees);
    let dew_point = (243.12 * gamma / (17.62 - gamma) * 10.0).round() / 10.0;
    let fields = json!({
        "temperature": degrees,
        "humidity": percent,
        "battery": volts(battery),
        "dew_point": dew_point,
    });
    Reading { port: 1, payload: vec![high, low, humidity, battery], fields }
}

fn meter(volume: u32, flow: u16, leak: bool, battery: u8) -> Reading {
    let mut payload = volume.to_be_bytes().to_vec();
    payload.extend(flow.to_be_bytes());
    payload.extend([u8::from(leak), battery]);
    let fields = json!({ "volume": volume, "flow": f64::from(flow) / 10.0, "leak": leak, "battery": volts(battery) });
    Reading { port: 2, payload, fields }
}

fn volts(battery: u8) -> f64 {
    (2000.0 + f64::from(battery) * 10.0) / 1000.0
}

/// Whether two JSON values mean the same; numbers may differ in their last digit.
pub(crate) fn same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => match (left.as_f64(), right.as_f64()) {
            (Some(left), Some(right)) => (left - right).abs() <= 1e-9 * left.abs().max(1.0),
            _ => left == right,
        },
        (Value::Object(left), Value::Object(right)) => same_members(left, right),
        _ => left == right,
    }
}

fn same_members(left: &Map<String, Value>, right: &Map<String, Value>) -> bool {
    left.len() == right.len()
        && left.iter().all(|(name, value)| right.get(name).is_some_and(|other| same(value, other)))
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Dice(u8);

    impl Random for Dice {
        fn fill(&self, bytes: &mut [u8]) {
            bytes.fill(self.0);
        }
    }

    #[test]
    fn a_reading_says_what_must_become_of_it() {
        let reading = World::new().measure(0, &Dice(20));
        assert_eq!(reading.payload, [0x01, 0x9a, 168, 160]);
        let expected = json!({"temperature": 4.1, "humidity": 84.0, "battery": 3.6, "dew_point": 1.6});
        assert!(same(&reading.fields, &expected), "{}", reading.fields);
    }

    #[test]
    fn a_thousand_readings_stay_believable() {
        let mut world = World::new();
        for step in 0..1000_u32 {
            for device in 0..DEVICES.len() {
                let fields = world.measure(device, &Dice((step % 256) as u8)).fields;
                assert!(fields["temperature"].as_f64().is_none_or(|degrees| (-40.0..85.0).contains(&degrees)));
                assert!(fields["humidity"].as_f64().is_none_or(|percent| percent <= 100.0));
            }
        }
    }

    #[test]
    fn different_fields_are_told_apart() {
        let fields = json!({"a": 1, "b": {"c": 0.1}});
        assert!(same(&fields, &json!({"b": {"c": 0.1 + 1e-12}, "a": 1.0})));
        for other in [json!({"a": 1}), json!({"a": 2, "b": {"c": 0.1}}), json!({"a": 1, "b": {"c": 0.1}, "d": 0})] {
            assert!(!same(&fields, &other), "{other}");
        }
    }
}
