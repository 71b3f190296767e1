//! Whose calling convention functions follow, in the words that people write.

use clap::ValueEnum;
use runtime::Dialect;
use serde::Deserialize;

/// Whose calling convention functions follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Style {
    /// LoRa Alliance TS013: `decodeUplink`, `encodeDownlink`
    Ts013,
    /// The Things Network 2: `Decoder`, `Converter`, `Validator`, `Encoder`
    V2,
    /// ChirpStack 3: `Decode`, `Encode`
    #[value(name = "chirpstack3")]
    ChirpStack3,
}

impl From<Style> for Dialect {
    fn from(style: Style) -> Self {
        match style {
            Style::Ts013 => Self::Ts013,
            Style::V2 => Self::V2,
            Style::ChirpStack3 => Self::ChirpStack3,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{from_value, json};

    use super::*;

    #[test]
    fn records_arguments_and_settings_spell_it_alike() {
        for style in Style::value_variants() {
            let name = Dialect::from(*style).name();
            assert_eq!(Style::from_str(name, false), Ok(*style));
            assert_eq!(from_value::<Style>(json!(name)).unwrap(), *style);
        }
    }
}
