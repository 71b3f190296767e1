//! The authorization endpoint: whether a client may act for a user, and where to redirect.

use serde::{Deserialize, Serialize};
use types::{ClientId, Scope};

use super::{
    Client, GrantType, OAuthErrorCode,
    pkce::Challenge,
    redirect::{self, URI_BYTES_MAX},
};
use crate::{Account, Error, Result, Session, audit, user::UserRecord};

/// Maximum length of `state`, in bytes.
const STATE_BYTES_MAX: usize = 4096;

/// The parameters of `/users/authorize`, from the query or the consent form.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct AuthorizationRequest {
    /// The client.
    pub client_id: Option<String>,
    /// Where to redirect the user.
    pub redirect_uri: Option<String>,
    /// `code`.
    pub response_type: Option<String>,
    /// The requested scopes, separated by spaces; defaults to all that the client may request.
    pub scope: Option<String>,
    /// Returned to the client unchanged.
    pub state: Option<String>,
    /// The hash of the PKCE verifier.
    pub code_challenge: Option<String>,
    /// `S256`.
    pub code_challenge_method: Option<String>,
}

/// The next step of an authorization.
#[derive(Debug)]
pub enum Authorization {
    /// Redirect the user to the client, with a code or an error.
    Redirect(String),
    /// Ask the user to log in for the sake of this, and then again.
    LogIn(ConsentRequest),
    /// Ask the user this, and then [`Account::decide`].
    Ask(ConsentRequest),
}

/// What the consent page asks.
#[derive(Debug, Serialize)]
pub struct ConsentRequest {
    /// The client.
    pub client: ClientId,
    /// Its description by its owner.
    pub description: String,
    /// Whether the client belongs to the operator.
    pub first_party: bool,
    /// The requested scopes.
    pub scope: Vec<Scope>,
    /// Where to redirect the user.
    pub redirect_uri: String,
}

/// A validated client and redirect URI, to which errors can be sent.
struct Asker {
    client: Client,
    redirect_uri: String,
}

/// A validated request.
struct Asked {
    scope: Vec<Scope>,
    challenge: Option<Challenge>,
}

impl Account {
    /// Determines the next step of an authorization for this session.
    ///
    /// An error must be shown to the user: it is not safe to redirect.
    pub async fn authorize(&self, session: Option<&Session>, request: &AuthorizationRequest) -> Result<Authorization> {
        let asker = self.asker(request).await?;
        let asked = match understand(&asker.client, request) {
            Ok(asked) => asked,
            Err(error) => return self.refuse(&asker, request, error).map(Authorization::Redirect),
        };
        let user = session.map(|session| &session.user.value);
        if let Some(user) = user.filter(|user| user.consents_to(&asker.client.id, &asked.scope)) {
            return self.send_code(user, asker, asked, request).await.map(Authorization::Redirect);
        }
        let Asker { client: Client { id, description, first_party, .. }, redirect_uri } = asker;
        let question = ConsentRequest { client: id, description, first_party, scope: asked.scope, redirect_uri };
        Ok(if user.is_some() { Authorization::Ask(question) } else { Authorization::LogIn(question) })
    }

    /// Records the user's decision; returns where to redirect.
    pub async fn decide(&self, session: &Session, request: &AuthorizationRequest, allow: bool) -> Result<String> {
        let asker = self.asker(request).await?;
        let asked = match understand(&asker.client, request) {
            Ok(asked) if allow => asked,
            Ok(_) => {
                audit::event("consent refused", session.user_id(), &asker.client.id);
                let denied = Error::oauth(OAuthErrorCode::AccessDenied, "the user does not allow it");
                return self.refuse(&asker, request, denied);
            }
            Err(error) => return self.refuse(&asker, request, error),
        };
        let before = &session.user.value;
        let user = self.give_consent(before, &asker.client.id, &asked.scope).await?;
        if user.not_before_s != before.not_before_s || user.disabled {
            return Err(Error::LoginEnded);
        }
        self.send_code(&user, asker, asked, request).await
    }

    /// Whether the client that redirects to this path of the site is public; `None` if there is no such client.
    pub(crate) async fn reads_code_at(&self, id: &ClientId, path: &str) -> Result<Option<bool>> {
        let client = self.client_named(id.as_str()).await?;
        let client = client.filter(|client| client.check_grant(GrantType::AuthorizationCode).is_ok());
        let client = client.filter(|client| client.redirect_uris.iter().any(|uri| uri == path));
        Ok(client.map(|client| client.is_public()))
    }

    /// Validates the client and its redirect URI.
    async fn asker(&self, request: &AuthorizationRequest) -> Result<Asker> {
        let invalid = |must| Error::Invalid { what: "authorization request", must };
        let id = request.client_id.as_deref().ok_or(invalid("must have client_id"))?;
        let client = self.client_named(id).await?;
        // A client that awaits approval looks like an unknown one.
        let client = client.filter(|client| client.check_grant(GrantType::AuthorizationCode).is_ok());
        let client = client.ok_or(invalid("must name a client that is registered here and accepted"))?;
        if request.state.as_ref().is_some_and(|state| state.len() > STATE_BYTES_MAX) {
            return Err(invalid("must have at most 4096 bytes of state"));
        }
        let redirect_uri = match (&request.redirect_uri, &client.redirect_uris[..]) {
            (Some(sent), registered) if sent.len() <= URI_BYTES_MAX && redirect::is_registered(registered, sent) => {
                sent.clone()
            }
            (None, [only]) if client.legacy => only.clone(),
            _ => return Err(invalid("must have a redirect_uri that is registered for the client, letter for letter")),
        };
        Ok(Asker { client, redirect_uri })
    }

    /// Returns where to redirect the user with a code.
    async fn send_code(
        &self,
        user: &UserRecord,
        asker: Asker,
        asked: Asked,
        request: &AuthorizationRequest,
    ) -> Result<String> {
        let target = (asker.redirect_uri.clone(), asked.challenge);
        let code = self.issue_code(user, &asker.client.id, asked.scope, target).await?;
        Ok(self.redirect(&asker, request, &[("code", code.expose())]))
    }

    /// Returns where to redirect the user with an OAuth error; other errors are returned.
    fn refuse(&self, asker: &Asker, request: &AuthorizationRequest, error: Error) -> Result<String> {
        let Error::OAuth { code, reason } = error else { return Err(error) };
        Ok(self.redirect(asker, request, &[("error", code.as_str()), ("error_description", &reason)]))
    }

    /// Adds `iss`, which identifies this service, so that clients of several services cannot be confused (RFC 9207).
    fn redirect(&self, asker: &Asker, request: &AuthorizationRequest, parameters: &[(&str, &str)]) -> String {
        let issuer = self.public_url.to_string();
        let mut all = parameters.to_vec();
        all.extend(request.state.as_deref().map(|state| ("state", state)));
        all.push(("iss", &issuer));
        redirect::with_parameters(&asker.redirect_uri, &all)
    }
}

fn understand(client: &Client, request: &AuthorizationRequest) -> Result<Asked> {
    match request.response_type.as_deref() {
        Some("code") => {}
        Some(_) => return Err(Error::oauth(OAuthErrorCode::UnsupportedResponseType, "response_type must be code")),
        None => return Err(Error::oauth(OAuthErrorCode::InvalidRequest, "response_type is missing")),
    }
    let challenge = match (&request.code_challenge, request.code_challenge_method.as_deref()) {
        (Some(challenge), method) => Some(Challenge::parse(challenge, method)?),
        (None, Some(_)) => return Err(Error::oauth(OAuthErrorCode::InvalidRequest, "code_challenge is missing")),
        (None, None) => None,
    };
    if challenge.is_none() && client.is_public() && !client.legacy {
        return Err(Error::oauth(OAuthErrorCode::InvalidRequest, "a client without a secret must send code_challenge"));
    }
    let words = request.scope.as_deref().unwrap_or_default().split_whitespace();
    let scope = client.scope_for(Some(&words.map(str::to_owned).collect::<Vec<_>>()))?;
    Ok(Asked { scope, challenge })
}
