//! The devices that `airlock demo --chirpstack` plays, each with a codec in another style that vendors use.

use serde_json::{Value, json};
use types::Random;

/// A device, and its device profile.
pub(super) struct Device {
    pub(super) name: &'static str,
    pub(super) codec: &'static str,
    pub(super) variables: &'static [(&'static str, &'static str)],
    /// Makes up an uplink.
    pub(super) measure: fn(&dyn Random) -> Reading,
}

/// An uplink, and the object that the codec makes of it.
pub(super) struct Reading {
    pub(super) port: u8,
    pub(super) payload: Vec<u8>,
    pub(super) object: Value,
}

pub(super) const DEVICES: [Device; 4] = [
    Device { name: "Greenhouse", codec: include_str!("codecs/channels.js"), variables: &[], measure: greenhouse },
    Device {
        name: "Tank",
        codec: include_str!("codecs/bits.js"),
        // Where the sensor hangs, which only the device's owner knows.
        variables: &[("height_cm", "250")],
        measure: tank,
    },
    Device { name: "Water meter", codec: include_str!("codecs/module.js"), variables: &[], measure: meter },
    Device { name: "Front door", codec: include_str!("codecs/sloppy.js"), variables: &[], measure: door },
];

/// Channels, each with its number, a type and a value.
fn greenhouse(random: &dyn Random) -> Reading {
    let [warmth, damp, charge] = random.array();
    let temperature = 180 + i16::from(warmth % 80);
    let [low, high] = temperature.to_le_bytes();
    let (humidity, battery) = (90 + damp % 60, 80 + charge % 20);
    let payload = vec![0x01, 0x75, battery, 0x03, 0x67, low, high, 0x04, 0x68, humidity];
    let object = json!({
        "battery": battery, "temperature": f64::from(temperature) / 10.0, "humidity": f64::from(humidity) / 2.0,
    });
    Reading { port: 85, payload, object }
}

/// Fields of a few bits.
fn tank(random: &dyn Random) -> Reading {
    let [distance, charge] = random.array();
    let (distance_cm, millivolts) = (40 + u16::from(distance % 150), 3000 + u16::from(charge % 100) * 6);
    let is_low = distance_cm > 150;
    let head = millivolts | if is_low { 0x4000 } else { 0 };
    let payload = [head.to_be_bytes(), distance_cm.to_be_bytes()].concat();
    let object = json!({
        "battery": f64::from(millivolts) / 1000.0, "distance": distance_cm, "level": 250 - distance_cm, "low": is_low,
    });
    Reading { port: 2, payload, object }
}

/// A few readings in one message, each older than the last.
fn meter(random: &dyn Random) -> Reading {
    let dice: [u8; 3] = random.array();
    let mut volume = 48_213_u32;
    let volumes: Vec<u32> = dice
        .iter()
        .map(|litres| {
            volume += u32::from(litres % 30);
            volume
        })
        .collect();
    let mut payload = vec![0x10 | volumes.len() as u8];
    payload.extend(volumes.iter().flat_map(|volume| volume.to_le_bytes()));
    Reading { port: 3, payload, object: json!({"litres": volumes, "leak": false}) }
}

/// Flags and a counter.
fn door(random: &dyn Random) -> Reading {
    let [state, openings] = random.array();
    let is_open = state % 2 == 1;
    let object = json!({"open": is_open, "tampered": false, "openings": openings});
    Reading { port: 10, payload: vec![u8::from(is_open), 0, openings], object }
}
