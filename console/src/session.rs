//! Sessions of users: a sealed cookie with the user's token.
//!
//! The token is in the cookie, and not in a table of the console, so that logins survive restarts and several consoles
//! can share a key file. It is sealed, and no script can read the cookie.

use std::time::Duration;

use api::rest::account::{TokenResponse, User};
use client::account::CodeVerifier;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use server::seal::{KeyedHash, Sealed};
use types::{Credential, Secret, Timestamp, UserId, Username};

use crate::{Console, Result, console::ConsoleAddress};

/// Maximum time that a login may take.
pub(crate) const LOGIN_LIFETIME: Duration = Duration::from_secs(600);
/// Time for which a browser keeps a session, so that it outlives its token and what was typed meanwhile is not lost.
pub(crate) const SESSION_LIFETIME: Duration = Duration::from_secs(14 * 24 * 3600);
/// Time before its end at which a token is renewed, so that it outlives a request.
const MARGIN: Duration = Duration::from_secs(30);

const SESSION: &str = "session";
const LOGIN: &str = "login";

/// A user with a token.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Session {
    pub(crate) user_id: UserId,
    pub(crate) username: Username,
    token: Secret,
    expires: Timestamp,
    /// The hash of the account site's session, with which this one ends; none if it is on another site.
    account_session: Option<KeyedHash>,
}

/// A login that waits for its authorization code.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct PendingLogin {
    pub(crate) state: String,
    verifier: Secret,
    /// The path to open after the login.
    pub(crate) next: String,
    expires: Timestamp,
}

impl Session {
    pub(crate) fn credential(&self) -> Credential {
        Credential::Token(self.token.clone())
    }

    pub(crate) fn token(&self) -> &Secret {
        &self.token
    }
}

impl PendingLogin {
    pub(crate) fn verifier(&self) -> CodeVerifier {
        CodeVerifier::from_secret(self.verifier.clone())
    }
}

impl Console {
    pub(crate) fn begin_login(&self, next: &str) -> PendingLogin {
        PendingLogin {
            state: hex::encode(self.random.array::<16>()),
            verifier: CodeVerifier::new(self.random.as_ref()).secret().clone(),
            next: next.to_owned(),
            expires: self.clock.now().plus(LOGIN_LIFETIME),
        }
    }

    pub(crate) fn session_of(&self, response: TokenResponse, user: User, account_cookie: Option<&str>) -> Session {
        Session {
            user_id: user.id,
            username: user.username,
            token: response.access_token,
            expires: self.clock.now().plus(Duration::from_secs(response.expires_in)).minus(MARGIN),
            account_session: self.account_session(account_cookie),
        }
    }

    pub(crate) fn seal_session(&self, session: &Session) -> Result<String> {
        self.seal(SESSION, session)
    }

    pub(crate) fn seal_login(&self, login: &PendingLogin) -> Result<String> {
        self.seal(LOGIN, login)
    }

    /// The session in a cookie, also if its token has expired.
    pub(crate) fn open_session(&self, cookie: &str) -> Option<Session> {
        self.open(SESSION, cookie)
    }

    pub(crate) fn open_login(&self, cookie: &str) -> Option<PendingLogin> {
        self.open(LOGIN, cookie).filter(|login: &PendingLogin| login.expires > self.clock.now())
    }

    /// Returns true if the session's token is valid, and the user did not log out of the account site.
    pub(crate) fn is_current(&self, session: &Session, account_cookie: Option<&str>) -> bool {
        session.expires > self.clock.now() && session.account_session == self.account_session(account_cookie)
    }

    fn account_session(&self, cookie: Option<&str>) -> Option<KeyedHash> {
        match *self.place {
            ConsoleAddress::WithAccount { .. } => {
                Some(self.keys.hash("account session", cookie.unwrap_or_default().as_bytes()))
            }
            ConsoleAddress::Alone { .. } => None,
        }
    }

    fn seal(&self, what: &'static str, value: &impl Serialize) -> Result<String> {
        // Texts and numbers can always be written.
        let json = serde_json::to_vec(value).unwrap_or_default();
        Ok(self.keys.seal(what, &json, self.random.as_ref())?.as_str().to_owned())
    }

    fn open<T: DeserializeOwned>(&self, what: &'static str, text: &str) -> Option<T> {
        let opened = self.keys.open(what, what, &Sealed::new(text)).ok()?;
        serde_json::from_slice(&opened).ok()
    }
}
