//! The words that members of examples take, and no others.

use runtime::Function;
use serde::Deserialize;

/// What is called.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Called {
    Uplink,
    Convert,
    Validate,
    DownlinkEncode,
    DownlinkDecode,
    UplinkNormalize,
}

/// How a call ends.
#[derive(Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Ending {
    Value,
    Undefined,
    Throws,
    Timeout,
}

/// How results are compared; the order of members and the tenth digit of numbers never count.
#[derive(Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Match {
    KeyOrder,
    #[serde(rename = "float-1e-9")]
    Float,
    ModuloNullOrEmpty,
}

/// What a result depends on beside its input.
#[derive(Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Dependence {
    /// The time zone, which is always UTC.
    Tz,
    Now,
    Random,
}

/// What is known of the JavaScript engine.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum QuickJs {
    Differs,
}

impl Called {
    pub(super) const fn function(self) -> Function {
        match self {
            Self::Uplink => Function::Decoder,
            Self::Convert => Function::Converter,
            Self::Validate => Function::Validator,
            Self::DownlinkEncode => Function::Encoder,
            Self::DownlinkDecode => Function::DecodeDownlink,
            Self::UplinkNormalize => Function::NormalizeUplink,
        }
    }
}
