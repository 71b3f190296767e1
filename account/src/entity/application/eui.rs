//! The configured block of EUIs, and validation of EUIs.

use std::{collections::BTreeSet, fmt, str::FromStr};

use types::{AppEui, Random};

use crate::{Error, Result};

/// Maximum number of EUIs per application.
pub(crate) const EUIS_MAX: usize = 100;

/// A block of EUIs with a common prefix, written like `0200000000000000/8`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EuiBlock {
    first: u64,
    fixed_bits: u32,
}

/// The text is not a block of EUIs.
#[derive(Clone, Debug, thiserror::Error)]
#[error("block of EUIs not valid: must be 16 hexadecimal digits, `/`, and 1 to 56 fixed bits, the others being zero")]
pub struct EuiBlockError;

impl EuiBlock {
    pub(crate) fn draw(self, random: &dyn Random) -> AppEui {
        let free = u64::from_be_bytes(random.array()) & (u64::MAX >> self.fixed_bits);
        AppEui::new((self.first | free).to_be_bytes())
    }
}

impl Default for EuiBlock {
    /// Unicast, locally administered EUIs whose first byte is 02.
    fn default() -> Self {
        Self { first: 0x02 << 56, fixed_bits: 8 }
    }
}

impl FromStr for EuiBlock {
    type Err = EuiBlockError;

    fn from_str(text: &str) -> std::result::Result<Self, EuiBlockError> {
        let (first, fixed_bits) = text.split_once('/').ok_or(EuiBlockError)?;
        let digits = first.len() == 16 && first.bytes().all(|byte| byte.is_ascii_hexdigit());
        let first = u64::from_str_radix(first, 16).map_err(|_| EuiBlockError)?;
        let fixed_bits: u32 = fixed_bits.parse().map_err(|_| EuiBlockError)?;
        let block = digits && (1..=56).contains(&fixed_bits) && first & (u64::MAX >> fixed_bits) == 0;
        if block { Ok(Self { first, fixed_bits }) } else { Err(EuiBlockError) }
    }
}

types::serde_as_text!(EuiBlock);

impl fmt::Display for EuiBlock {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:016X}/{}", self.first, self.fixed_bits)
    }
}

/// Parses an EUI in a path: 16 upper-case hexadecimal digits, not all zero.
pub(crate) fn parse(text: &str) -> Result<AppEui> {
    let digits = text.len() == 16 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'A'..=b'F'));
    match text.parse::<AppEui>() {
        Ok(eui) if digits && !eui.is_zero() => Ok(eui),
        _ => Err(Error::Invalid { what: "EUI", must: "must be 16 upper-case hexadecimal digits, not all zero" }),
    }
}

pub(crate) fn check_list(euis: &[AppEui]) -> Result<()> {
    let different: BTreeSet<_> = euis.iter().collect();
    if euis.len() <= EUIS_MAX && different.len() == euis.len() && !euis.iter().any(AppEui::is_zero) {
        Ok(())
    } else {
        Err(Error::Invalid { what: "euis", must: "must have at most 100 entries, each only once and none all zero" })
    }
}
