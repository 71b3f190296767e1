//! Radio parameters of frames, in the words of v2. Values that cannot be read are left out: they are no reason to drop
//! a message.

use serde::{Deserialize, Deserializer, de::DeserializeOwned};
use serde_json::value::RawValue;
use types::GatewayMetadata;

/// Modulation of a frame.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Modulation {
    /// `LORA` or `FSK`; empty for others.
    pub name: String,
    /// Of LoRa, such as `SF7BW125`.
    pub data_rate: String,
    /// Of FSK, in bit/s.
    pub bit_rate: u32,
}

/// Location of a gateway.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Location {
    #[serde(deserialize_with = "lenient")]
    latitude: f32,
    #[serde(deserialize_with = "lenient")]
    longitude: f32,
    #[serde(deserialize_with = "lenient")]
    altitude: f32,
}

impl Modulation {
    /// LoRa with this spreading factor and bandwidth.
    pub fn lora(spreading_factor: u32, bandwidth_hz: u32) -> Self {
        let data_rate = format!("SF{spreading_factor}BW{}", bandwidth_hz / 1000);
        Self { name: "LORA".to_owned(), data_rate, bit_rate: 0 }
    }

    /// FSK with this bit rate.
    pub fn fsk(bit_rate: u32) -> Self {
        Self { name: "FSK".to_owned(), data_rate: String::new(), bit_rate }
    }
}

impl Location {
    /// The location at these degrees, and this height in metres.
    pub fn new(latitude: f64, longitude: f64, altitude: f64) -> Self {
        Self { latitude: latitude as f32, longitude: longitude as f32, altitude: altitude as f32 }
    }

    /// Adds the location to the metadata of a gateway.
    pub fn of(&self, gateway: GatewayMetadata) -> GatewayMetadata {
        let Self { latitude, longitude, altitude } = *self;
        GatewayMetadata { latitude, longitude, altitude: altitude as i32, ..gateway }
    }
}

/// Reads a value, or takes the default in place of one that cannot be read.
pub fn lenient<'de, T, D>(deserializer: D) -> Result<T, D::Error>
where
    T: DeserializeOwned + Default,
    D: Deserializer<'de>,
{
    let value = <&RawValue>::deserialize(deserializer)?;
    Ok(serde_json::from_str(value.get()).unwrap_or_default())
}

/// Reads a list without the items that cannot be read.
pub fn lenient_list<'de, T, D>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    T: DeserializeOwned,
    D: Deserializer<'de>,
{
    <&RawValue>::deserialize(deserializer).map(readable_items)
}

/// The items of a list that can be read; none of what is no list.
pub fn readable_items<T: DeserializeOwned>(list: &RawValue) -> Vec<T> {
    let items: Vec<&RawValue> = serde_json::from_str(list.get()).unwrap_or_default();
    items.into_iter().filter_map(|item| serde_json::from_str(item.get()).ok()).collect()
}
