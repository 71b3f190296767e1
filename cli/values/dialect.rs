//! The names of the dialects, as arguments spell them.

use clap::ValueEnum;
use runtime::Dialect;

/// A dialect of payload functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DialectName {
    /// LoRa Alliance TS013: `decodeUplink`, `encodeDownlink`
    Ts013,
    /// The Things Network 2: `Decoder`, `Converter`, `Validator`, `Encoder`
    V2,
    /// ChirpStack 3: `Decode`, `Encode`
    #[value(name = "chirpstack3")]
    ChirpStack3,
}

impl From<DialectName> for Dialect {
    fn from(name: DialectName) -> Self {
        match name {
            DialectName::Ts013 => Self::Ts013,
            DialectName::V2 => Self::V2,
            DialectName::ChirpStack3 => Self::ChirpStack3,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_dialect_has_one_spelling() {
        for dialect in DialectName::value_variants() {
            let name = Dialect::from(*dialect).name();
            assert_eq!(DialectName::from_str(name, false), Ok(*dialect));
        }
    }
}
