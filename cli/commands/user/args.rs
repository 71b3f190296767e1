//! The arguments of `airlock user …`.

use std::str::FromStr;

use clap::Subcommand;
use types::{Secret, Username};

use crate::terminal::PasswordSource;

/// Length of an access code: longer than any username.
const CODE_LENGTH: usize = 38;

#[derive(Debug, Subcommand)]
pub(crate) enum User {
    /// Show who is logged in (the default)
    #[command(after_help = "Example:\n  airlock user get --output json")]
    Get,
    /// Register a new user; prompts for a password
    #[command(visible_alias = "create")]
    #[command(after_help = "Example:\n  airlock user register alice alice@example.com")]
    Register {
        /// Username
        username: Username,
        /// E-mail address
        email: String,
        #[command(flatten)]
        password: PasswordSource,
    },
    /// Log in with a username and password, or with an access code from the account site
    ///
    /// `airlock user login alice` prompts for the password. `airlock user login` opens a browser, where you log in and
    /// authorize this program. Where there is none, it prints a URL to open elsewhere; then enter the access code that the
    /// page shows, or pass it later to `airlock user login <code>`. An access code has 38 characters; usernames have at
    /// most 36.
    #[command(
        after_help = "Examples:\n  airlock user login\n  airlock user login alice\n  airlock user login alice --password-stdin"
    )]
    Login {
        /// Username or access code [default: open a browser, or say where to get a code and prompt for it]
        #[arg(value_name = "NAME|CODE", allow_hyphen_values = true)]
        by: Option<LoginBy>,
        /// Do not open a browser: print where to get an access code, and prompt for it
        #[arg(long)]
        no_browser: bool,
        #[command(flatten)]
        password: PasswordSource,
    },
    /// List all users of the network; only for its operators
    ///
    /// Operators are the users whose ids are in the settings of the account service, in `account.operators`; as long as
    /// there are none, the user of the first account. On the server, `airlock account users list` needs no login.
    #[command(visible_alias = "ls")]
    #[command(after_help = "Examples:\n  airlock user list\n  airlock user list --search example.com --output json")]
    List {
        /// Only those whose name, id or e-mail address has this text
        #[arg(long, value_name = "TEXT")]
        search: Option<String>,
        /// Start after this username
        #[arg(long, value_name = "NAME")]
        after: Option<Username>,
    },
    /// Log out
    #[command(after_help = "Example:\n  airlock user logout")]
    Logout,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LoginBy {
    /// With a password.
    Name(Username),
    /// With an access code from the account site.
    Code(Secret),
}

impl FromStr for LoginBy {
    type Err = types::IdError;

    fn from_str(text: &str) -> Result<Self, types::IdError> {
        let is_base64url = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        match text.len() == CODE_LENGTH && text.bytes().all(is_base64url) {
            true => Ok(Self::Code(Secret::new(text))),
            false => text.parse().map(Self::Name),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[test]
    fn tells_codes_from_usernames_by_their_length() {
        let longest = "a".repeat(36);
        assert_eq!(longest.parse(), Ok(LoginBy::Name(longest.parse().unwrap())));
        let code = "AvzE3f0-7ZQ_mE2uYF5pQrKc1Vb8sXw9dLh4Tj";
        assert_eq!(code.parse(), Ok(LoginBy::Code(Secret::new(code))));
        for neither in ["", "Alice", &code[1..], &format!("{code}x"), &code.replace('-', "/")] {
            assert!(neither.parse::<LoginBy>().is_err(), "{neither}");
        }
    }

    #[derive(Debug, Parser)]
    struct Line {
        #[command(subcommand)]
        user: User,
    }

    #[test]
    fn a_code_may_begin_with_a_hyphen() {
        let code = "-vzE3f0-7ZQ_mE2uYF5pQrKc1Vb8sXw9dLh4Tj";
        let line = Line::try_parse_from(["user", "login", code]).unwrap();
        assert!(matches!(line.user, User::Login { by: Some(LoginBy::Code(found)), .. } if found.expose() == code));
        let line = Line::try_parse_from(["user", "login", "--password-stdin", "alice"]).unwrap();
        assert!(
            matches!(line.user, User::Login { by: Some(LoginBy::Name(_)), password, .. } if password.password_stdin)
        );
        assert!(Line::try_parse_from(["user", "login", "--password"]).is_err());
    }
}
