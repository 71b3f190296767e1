//! Reasons why a login at a provider failed.

use types::{Kind, Kinded};

/// Maximum length of a provider's text, in characters.
const TEXT_MAX: usize = 400;

/// Reasons why a login at an OpenID Connect provider failed.
#[derive(Debug, thiserror::Error)]
pub enum ProviderError {
    /// The provider is away, or its answer cannot be read.
    #[error(transparent)]
    Call(#[from] client::Error),
    /// The provider answers with an error.
    #[error(
        "it does not give {what} ({reason}): try again later; if that does not help, the operator of this network must \
         check `account.login_providers.<name>` and the provider"
    )]
    Withheld {
        /// The request: a noun for the message.
        what: &'static str,
        /// The provider's text, or the status.
        reason: String,
    },
    /// The provider does not give tokens for the code.
    #[error(
        "it gave no token ({0}): begin again; if that does not help, the operator of this network must check id and \
         secret of the client"
    )]
    Tokens(String),
    /// A call to the provider failed a moment ago.
    #[error("a call to it failed a moment ago: try again in a few seconds")]
    Away,
    /// The provider describes another issuer.
    #[error(
        "it describes itself as the issuer `{found}`: the operator of this network must set \
         `account.login_providers.<name>.issuer` to exactly that, if it is right"
    )]
    Description {
        /// The issuer in the description.
        found: String,
    },
    /// The browser has not begun this login, or too long ago.
    #[error("it was not begun in this browser, or more than ten minutes ago: begin again")]
    State,
    /// The browser comes from another provider.
    #[error("the answer comes from another issuer: begin again")]
    Answerer,
    /// The user declined, or may not log in.
    #[error("you did not allow it there, or may not use it")]
    Declined,
    /// The provider answered with an error.
    #[error("it answered with the error `{0}`: tell the operator of this network")]
    Refused(String),
    /// The browser brings neither a code nor an error.
    #[error("it sent no code: begin again")]
    NoCode,
    /// The ID token is not signed in a way that is accepted here.
    #[error(
        "its ID token is not signed with RS256, PS256, ES256, ES384 or EdDSA: the operator of this network must change \
         that in the provider's settings for this client"
    )]
    Algorithm,
    /// The provider has no key with the id in the token.
    #[error("its ID token is signed with a key that it does not publish: try again in a minute")]
    UnknownKey,
    /// The signature is wrong.
    #[error("the signature of its ID token is wrong: tell the operator of this network")]
    Signature,
    /// A claim is missing, or has a wrong type or value.
    #[error("`{claim}` of its ID token {must}: tell the operator of this network")]
    Claim {
        /// Such as `aud`.
        claim: &'static str,
        /// The broken rule, such as `must be this client`.
        must: &'static str,
    },
    /// The claims cannot be read.
    #[error("the claims of its ID token cannot be read: tell the operator of this network")]
    Claims(#[source] serde_json::Error),
    /// The ID token has expired.
    #[error("its ID token has expired: check the clocks of both servers")]
    Expired,
    /// The ID token was issued in the future.
    #[error("its ID token was issued in the future: check the clocks of both servers")]
    Early,
    /// The profile is that of somebody else.
    #[error("it sent the profile of another user: tell the operator of this network")]
    OtherProfile,
    /// A new account needs an e-mail address.
    #[error(
        "it does not tell your e-mail address, which an account needs: add it to your profile there, or ask the operator \
         of this network to add `email` to the scope"
    )]
    NoEmail,
    /// No user is linked with this login.
    #[error("no account here is linked with it: log in with your password, and link it in your profile")]
    Unlinked,
    /// The operator disabled the user.
    #[error("your account is disabled: ask the operator of this network")]
    Disabled,
    /// The user logged out or in as somebody else in the meantime.
    #[error("you are no longer logged in as the user who wanted to link it: log in, and begin again")]
    OtherSession,
}

impl ProviderError {
    /// The error of a request for `what`.
    pub(super) fn of(what: &'static str, error: client::Error) -> Self {
        refusal(error).map_or_else(Self::Call, |reason| Self::Withheld { what, reason })
    }

    /// The error of a request for tokens.
    pub(super) fn of_tokens(error: client::Error) -> Self {
        refusal(error).map_or_else(Self::Call, Self::Tokens)
    }

    /// Returns false for what users mend themselves, what any browser can claim, and what follows from a failure that
    /// has just been logged.
    pub(super) fn concerns_operator(&self) -> bool {
        !matches!(
            self,
            Self::Away
                | Self::State
                | Self::Answerer
                | Self::Declined
                | Self::Refused(_)
                | Self::NoCode
                | Self::Unlinked
                | Self::Disabled
                | Self::OtherSession
        )
    }
}

impl Kinded for ProviderError {
    fn kind(&self) -> Kind {
        match self {
            Self::Call(_) | Self::Withheld { .. } | Self::Tokens(_) => Kind::Unavailable,
            Self::Away | Self::Description { .. } => Kind::Unavailable,
            _ => Kind::Denied,
        }
    }
}

/// The text of a provider that answers with an error.
fn refusal(error: client::Error) -> Result<String, client::Error> {
    match error {
        client::Error::Refused { message, .. }
        | client::Error::Foreign { message, .. }
        | client::Error::NotAccepted { message } => Ok(shortened(&message)),
        error => Err(error),
    }
}

/// A text of the provider, as pages and the log show it.
pub(super) fn shortened(text: &str) -> String {
    text.chars().take(TEXT_MAX).collect()
}
