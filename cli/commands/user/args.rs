//! `airlock user …`: the arguments.

use std::str::FromStr;

use clap::{Args as ClapArgs, Subcommand};
use types::{Secret, Username};

/// How many characters an access code has: more than a name can have.
const CODE_LENGTH: usize = 38;

/// `airlock user …`.
#[derive(Debug, Subcommand)]
pub enum User {
    /// Register a new user; asks for a password
    Register {
        /// Name to log in with
        username: Username,
        /// E-mail address
        email: String,
        /// Where the password comes from
        #[command(flatten)]
        password: Password,
    },
    /// Log in: with your name and password, or with an access code of the account site
    ///
    /// `airlock user login alice` asks for the password. `airlock user login` prints the address where you log in with
    /// a browser and let this program act for you; the access code that the page shows can be typed at once, or given
    /// later as `airlock user login <code>`. A code is told from a name by its length: it always has 38 characters, a
    /// name has 36 at most.
    Login {
        /// Name to log in with, or access code [default: print where to get a code, and ask for it]
        #[arg(value_name = "NAME|CODE")]
        by: Option<LoginBy>,
        /// Where the password comes from
        #[command(flatten)]
        password: Password,
    },
    /// Forget the login
    Logout,
}

/// What somebody logs in with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoginBy {
    /// A name, and the password that belongs to it.
    Name(Username),
    /// A code that the account site showed.
    Code(Secret),
}

/// Where a password comes from.
#[derive(Clone, Copy, Debug, ClapArgs)]
pub struct Password {
    /// Read the password from the first line of standard input instead of asking
    #[arg(long)]
    pub password_stdin: bool,
}

impl FromStr for LoginBy {
    type Err = types::IdError;

    fn from_str(text: &str) -> Result<Self, types::IdError> {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        match text.len() == CODE_LENGTH && text.bytes().all(plain) {
            true => Ok(Self::Code(Secret::new(text))),
            false => text.parse().map(Self::Name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_longer_than_any_name() {
        let longest = "a".repeat(36);
        assert_eq!(longest.parse(), Ok(LoginBy::Name(longest.parse().unwrap())));
        let code = "AvzE3f0-7ZQ_mE2uYF5pQrKc1Vb8sXw9dLh4Tj";
        assert_eq!(code.parse(), Ok(LoginBy::Code(Secret::new(code))));
        for neither in ["", "Alice", &code[1..], &format!("{code}x"), &code.replace('-', "/")] {
            assert!(neither.parse::<LoginBy>().is_err(), "{neither}");
        }
    }
}
