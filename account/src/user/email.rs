//! E-mail addresses.

mod confirmation;

use std::{fmt, str::FromStr};

use crate::{Error, Result};

/// The limit of SMTP.
const BYTES_MAX: usize = 254;

/// A syntactically plausible e-mail address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Email(String);

impl FromStr for Email {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let invalid =
            Error::Invalid { what: "email", must: "must look like name@example.com and have at most 254 bytes" };
        let Some((local, domain)) = text.rsplit_once('@') else { return Err(invalid) };
        let plain = text.chars().all(|character| !character.is_control() && !character.is_whitespace());
        let whole = !local.is_empty() && domain.split('.').all(|label| !label.is_empty());
        if plain && whole && text.len() <= BYTES_MAX { Ok(Self(text.to_owned())) } else { Err(invalid) }
    }
}

types::serde_as_text!(Email);

impl fmt::Display for Email {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}
