//! The authorization endpoint.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use types::{ClientId, Scope};

use super::{
    client::{Client, GrantType},
    error_code::OAuthErrorCode,
    pkce::Challenge,
    redirect::{self, URI_BYTES_MAX},
};
use crate::{Account, Error, Result, Session, user::UserRecord};

const STATE_BYTES_MAX: usize = 4096;

/// The parameters of an authorization request, from the query or from the consent form.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(inline)]
pub(crate) struct AuthorizationRequest {
    /// The client's id.
    pub(crate) client_id: Option<String>,
    /// Where to redirect the user.
    pub(crate) redirect_uri: Option<String>,
    /// Must be `code`.
    pub(crate) response_type: Option<String>,
    /// The requested scopes, separated by spaces. Defaults to all that the client may request.
    pub(crate) scope: Option<String>,
    /// Returned to the client unchanged.
    pub(crate) state: Option<String>,
    /// The SHA-256 of the client's verifier (PKCE).
    pub(crate) code_challenge: Option<String>,
    /// Must be `S256`.
    pub(crate) code_challenge_method: Option<String>,
}

/// The next step for an authorization request.
#[derive(Debug)]
pub(crate) enum Authorization {
    /// Redirect to the client with a code or an error.
    Redirect(String),
    /// Let the user log in, then repeat the request.
    LogIn(ConsentRequest),
    /// Ask the user for consent, then call [`Account::decide`].
    Ask(ConsentRequest),
}

/// Request that the user is asked to allow.
#[derive(Debug, Serialize)]
pub(crate) struct ConsentRequest {
    /// The client's id.
    pub(crate) client: ClientId,
    pub(crate) description: String,
    pub(crate) first_party: bool,
    /// True for the console of this site, for which users are not asked.
    pub(crate) is_own_console: bool,
    /// The revision of the client that is shown here.
    pub(crate) revision: u32,
    /// The requested scopes.
    pub(crate) scope: Vec<Scope>,
    pub(crate) redirect_uri: String,
}

/// A valid client and redirect URI. From here on, errors are sent there.
struct Target {
    client: Client,
    redirect_uri: String,
}

/// The validated parameters of a request.
struct Parameters {
    scope: Vec<Scope>,
    challenge: Option<Challenge>,
}

impl Account {
    /// Determines the next step, given the user's session.
    ///
    /// Errors are shown to the user, because the redirect URI cannot be trusted.
    pub(crate) async fn authorize(
        &self,
        session: Option<&Session>,
        request: &AuthorizationRequest,
    ) -> Result<Authorization> {
        let target = self.validate_target(request).await?;
        let parameters = match validate(&target.client, request) {
            Ok(parameters) => parameters,
            Err(error) => return self.refuse(&target, request, error).map(Authorization::Redirect),
        };
        let user = session.map(|session| &session.user.value);
        if let Some(user) = user.filter(|user| user.consents_to(target.client.revision(), &parameters.scope)) {
            return self.send_code(user, target, parameters, request).await.map(Authorization::Redirect);
        }
        let is_own_console = self.is_own_console(&target.client, &target.redirect_uri);
        if let Some(user) = user.filter(|_| is_own_console) {
            let user = self.give_consent(user, target.client.revision(), &parameters.scope).await?;
            return self.send_code(&user, target, parameters, request).await.map(Authorization::Redirect);
        }
        let Target { client: Client { id, description, first_party, revision, .. }, redirect_uri } = target;
        let scope = parameters.scope;
        let consent =
            ConsentRequest { client: id, description, first_party, is_own_console, revision, scope, redirect_uri };
        Ok(if user.is_some() { Authorization::Ask(consent) } else { Authorization::LogIn(consent) })
    }

    /// Handles the user's decision. Returns the URI to redirect to.
    ///
    /// `shown` is the revision of the client that the user was shown. Without it, the user allows what the client is
    /// now.
    pub(crate) async fn decide(
        &self,
        session: &Session,
        request: &AuthorizationRequest,
        (allow, shown): (bool, Option<u32>),
    ) -> Result<String> {
        let target = self.validate_target(request).await?;
        if allow && shown.is_some_and(|shown| shown != target.client.revision) {
            return Err(Error::ClientChanged(target.client.id));
        }
        let parameters = match validate(&target.client, request) {
            Ok(parameters) if allow => parameters,
            Ok(_) => {
                self.audit.note_refusal("consent refused", session.user_id(), &target.client.id);
                let denied = Error::oauth(OAuthErrorCode::AccessDenied, "the user does not allow it");
                return self.refuse(&target, request, denied);
            }
            Err(error) => return self.refuse(&target, request, error),
        };
        let before = &session.user.value;
        let user = self.give_consent(before, target.client.revision(), &parameters.scope).await?;
        if user.not_before_s != before.not_before_s || user.disabled {
            return Err(Error::LoginEnded);
        }
        self.send_code(&user, target, parameters, request).await
    }

    /// Returns true if the client that redirects to this path of the site is public; none if there is no such client.
    pub(crate) async fn reads_code_at(&self, id: &ClientId, path: &str) -> Result<Option<bool>> {
        let client = self.client_named(id.as_str()).await?;
        let client = client.filter(|client| client.check_grant(GrantType::AuthorizationCode).is_ok());
        let client = client.filter(|client| client.redirect_uris.iter().any(|uri| uri == path));
        Ok(client.map(|client| client.is_public()))
    }

    /// Validates the client and its redirect URI.
    async fn validate_target(&self, request: &AuthorizationRequest) -> Result<Target> {
        let invalid = |must| Error::Invalid { what: "authorization request", must };
        let id = request.client_id.as_deref().ok_or(invalid("must have client_id"))?;
        let client = self.client_named(id).await?;
        // Clients that are not approved look like unknown ones.
        let client = client.filter(|client| client.check_grant(GrantType::AuthorizationCode).is_ok());
        let client = client.ok_or(invalid("must name a client that is registered here and approved"))?;
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
        Ok(Target { client, redirect_uri })
    }

    async fn send_code(
        &self,
        user: &UserRecord,
        target: Target,
        parameters: Parameters,
        request: &AuthorizationRequest,
    ) -> Result<String> {
        let bound_to = (target.redirect_uri.clone(), parameters.challenge);
        let code = self.issue_code(user, &target.client.id, parameters.scope, bound_to).await?;
        Ok(self.redirect(&target, request, &[("code", code.expose())]))
    }

    /// The redirect URI with an OAuth error. Other errors are shown to the user.
    fn refuse(&self, target: &Target, request: &AuthorizationRequest, error: Error) -> Result<String> {
        let Error::OAuth { code, reason } = error else { return Err(error) };
        Ok(self.redirect(target, request, &[("error", code.as_str()), ("error_description", &reason)]))
    }

    /// Includes `iss`, so that clients of several authorization servers cannot mix them up (RFC 9207).
    fn redirect(&self, target: &Target, request: &AuthorizationRequest, response: &[(&str, &str)]) -> String {
        let issuer = self.public_url.to_string();
        let mut all = response.to_vec();
        all.extend(request.state.as_deref().map(|state| ("state", state)));
        all.push(("iss", &issuer));
        redirect::with_parameters(&target.redirect_uri, &all)
    }
}

fn validate(client: &Client, request: &AuthorizationRequest) -> Result<Parameters> {
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
    Ok(Parameters { scope, challenge })
}
