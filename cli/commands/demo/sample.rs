//! The sample application: three simulated sensors, and the fields that their uplinks must have.

use serde_json::{Value, json};
use types::Random;

/// The decoder, in the dialect of The Things Network v2.
pub(crate) const DECODER: &str = include_str!("decoder.js");
pub(crate) const CONVERTER: &str = include_str!("converter.js");
pub(crate) const VALIDATOR: &str = include_str!("validator.js");

pub(crate) const DEVICES: [&str; 3] = ["cold-room", "greenhouse", "water-meter"];

/// One uplink of a device, and its expected fields.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Reading {
    pub(crate) port: u8,
    pub(crate) payload: Vec<u8>,
    pub(crate) fields: Value,
}

pub(crate) struct Sensors {
    /// In hundredths of a degree Celsius, of the cold room and the greenhouse.
    temperatures: [i16; 2],
    /// In halves of a percent.
    humidities: [u8; 2],
    /// The reading of the water meter, in litres.
    volume: u32,
}

impl Sensors {
    pub(crate) fn new() -> Self {
        Self { temperatures: [410, 2350], humidities: [170, 124], volume: 48_213 }
    }

    /// The next uplink of a device, given by its index in [`DEVICES`].
    pub(crate) fn measure(&mut self, device: usize, random: &dyn Random) -> Reading {
        let dice = random.array::<3>();
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

/// A random step of at most a fifth of a degree.
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

#[cfg(test)]
mod tests {
    use testing::FixedRandom;
    use workbench::differences;

    use super::*;

    #[test]
    fn a_reading_has_its_expected_fields() {
        let reading = Sensors::new().measure(0, &FixedRandom::new([20]));
        assert_eq!(reading.payload, [0x01, 0x9a, 168, 160]);
        let expected = json!({"temperature": 4.1, "humidity": 84.0, "battery": 3.6, "dew_point": 1.6});
        assert_eq!(differences(&expected, &reading.fields, false), []);
    }

    #[test]
    fn readings_stay_in_range() {
        let mut sensors = Sensors::new();
        for step in 0..1000_u32 {
            for device in 0..DEVICES.len() {
                let fields = sensors.measure(device, &FixedRandom::new([(step % 256) as u8])).fields;
                assert!(fields["temperature"].as_f64().is_none_or(|degrees| (-40.0..85.0).contains(&degrees)));
                assert!(fields["humidity"].as_f64().is_none_or(|percent| percent <= 100.0));
            }
        }
    }
}
