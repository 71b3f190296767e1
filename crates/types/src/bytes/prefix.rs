//! Prefixes of device addresses, written like `26000000/20`.

use std::{fmt, str::FromStr};

use crate::DevAddr;

/// A range of device addresses with a common prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DevAddrPrefix {
    address: DevAddr,
    /// The number of fixed bits, 0 to 32.
    bits: u8,
}

/// A value that is not a prefix of device addresses.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("DevAddrPrefix not valid: {0}")]
pub struct PrefixError(&'static str);

impl DevAddrPrefix {
    /// The length in bytes on the wire: one byte for the number of bits, then an address.
    pub const LENGTH: usize = 1 + DevAddr::LENGTH;

    /// Creates a prefix. Bits after the prefix must be zero, so that each prefix has one spelling.
    pub fn new(bits: u8, address: DevAddr) -> Result<Self, PrefixError> {
        if bits > 32 || number(address) & !mask(bits) != 0 {
            let rule = "must be a length of at most 32 bits, and an address that is zero behind them";
            return Err(PrefixError(rule));
        }
        Ok(Self { address, bits })
    }

    /// Returns true if some address has both prefixes.
    pub fn overlaps(&self, other: &Self) -> bool {
        let shorter = self.bits.min(other.bits);
        number(self.address) & mask(shorter) == number(other.address) & mask(shorter)
    }

    /// Returns the address with this prefix and the remaining bits of `rest`.
    pub fn address(&self, rest: [u8; DevAddr::LENGTH]) -> DevAddr {
        let address = number(self.address) | (u32::from_be_bytes(rest) & !mask(self.bits));
        DevAddr::new(address.to_be_bytes())
    }

    /// Encodes as one byte of length and four of address.
    pub fn to_bytes(self) -> Vec<u8> {
        [&[self.bits], &self.address.as_bytes()[..]].concat()
    }
}

impl TryFrom<&[u8]> for DevAddrPrefix {
    type Error = PrefixError;

    fn try_from(bytes: &[u8]) -> Result<Self, PrefixError> {
        match bytes {
            [bits, address @ ..] if address.len() == DevAddr::LENGTH => {
                Self::new(*bits, address.try_into().unwrap_or_default())
            }
            _ => Err(PrefixError("must be 5 bytes: the length of the prefix, then an address")),
        }
    }
}

/// The notation of The Things Network.
impl fmt::Display for DevAddrPrefix {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}/{}", self.address, self.bits)
    }
}

impl FromStr for DevAddrPrefix {
    type Err = PrefixError;

    fn from_str(text: &str) -> Result<Self, PrefixError> {
        let invalid = || PrefixError("must look like 26000000/20");
        let (address, bits) = text.split_once('/').ok_or_else(invalid)?;
        Self::new(bits.parse().map_err(|_| invalid())?, address.parse().map_err(|_| invalid())?)
    }
}

crate::serde_as_text!(DevAddrPrefix);

fn number(address: DevAddr) -> u32 {
    u32::from_be_bytes(*address.as_bytes())
}

/// A mask of the first `bits` of 32.
fn mask(bits: u8) -> u32 {
    u32::MAX.checked_shl(32 - u32::from(bits)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prefix(text: &str) -> DevAddrPrefix {
        text.parse().unwrap()
    }

    #[test]
    fn a_prefix_is_a_length_and_a_zero_padded_address() {
        for (bytes, text) in
            [([7, 0x26, 0, 0, 0], "26000000/7"), ([0; 5], "00000000/0"), ([32, 1, 2, 3, 4], "01020304/32")]
        {
            assert_eq!(DevAddrPrefix::try_from(&bytes[..]).unwrap().to_string(), text);
            assert_eq!(prefix(text).to_bytes(), bytes);
            assert_eq!(serde_json::to_string(&prefix(text)).unwrap(), format!("\"{text}\""));
        }
        for bytes in [&[][..], &[7, 0x26, 0, 0], &[33, 0, 0, 0, 0], &[7, 0x27, 0, 0, 0], &[0, 0, 0, 0, 1]] {
            assert!(DevAddrPrefix::try_from(bytes).is_err(), "{bytes:?}");
        }
        for text in ["", "26000000", "26000000/", "26000000/33", "2600/7", "26000001/20", "26000000/-1"] {
            assert!(text.parse::<DevAddrPrefix>().is_err(), "{text}");
        }
    }

    #[test]
    fn prefixes_overlap_if_one_contains_the_other() {
        assert!(prefix("26000000/7").overlaps(&prefix("26010000/16")));
        assert!(prefix("26010000/16").overlaps(&prefix("00000000/0")));
        assert!(!prefix("26010000/16").overlaps(&prefix("26020000/16")));
    }

    #[test]
    fn an_address_combines_the_prefix_with_the_other_bits() {
        for (text, expected) in [
            ("26000000/20", "26000FFF"),
            ("26000000/7", "27FFFFFF"),
            ("00000000/0", "FFFFFFFF"),
            ("01020304/32", "01020304"),
        ] {
            assert_eq!(prefix(text).address([0xff; 4]).to_string(), expected, "{text}");
            assert_eq!(prefix(text).address([0; 4]), prefix(text).address, "{text}");
        }
    }
}
