//! The authorization endpoint: may this client act for this user, and where does the answer go?

use serde::{Deserialize, Serialize};
use types::{ClientId, Scope};

use super::{
    Client, GrantType, Refusal,
    pkce::Challenge,
    redirect::{self, URI_BYTES_MAX},
};
use crate::{Account, Error, Result, Session, audit, user::UserRecord};

/// The most bytes of `state`.
const STATE_BYTES_MAX: usize = 4096;

/// What a client asks of `/users/authorize`, as it came: in the query, or in the form that answers the question.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct AuthorizationRequest {
    /// The client.
    pub client_id: Option<String>,
    /// Where the user goes afterwards.
    pub redirect_uri: Option<String>,
    /// `code`.
    pub response_type: Option<String>,
    /// What the client wants to do, separated by spaces; without it, all that it may.
    pub scope: Option<String>,
    /// What the client wants to hear again.
    pub state: Option<String>,
    /// The hash of the client's verifier.
    pub code_challenge: Option<String>,
    /// `S256`.
    pub code_challenge_method: Option<String>,
}

/// What is to be done about such a request.
#[derive(Debug)]
pub enum Authorization {
    /// Send the user there: back to the client, with a code or a refusal.
    Redirect(String),
    /// Ask the user to log in for the sake of this, and then again.
    LogIn(Question),
    /// Ask the user this, and then [`Account::decide`].
    Ask(Question),
}

/// May this client do this?
#[derive(Debug, Serialize)]
pub struct Question {
    /// The client.
    pub client: ClientId,
    /// What its owner says of it.
    pub description: String,
    /// Whether the client belongs to the operator.
    pub first_party: bool,
    /// What it wants to do.
    pub scope: Vec<Scope>,
    /// Where the user goes afterwards.
    pub redirect_uri: String,
}

/// Who asks, and where answers may go: from here on refusals go there too.
struct Asker {
    client: Client,
    redirect_uri: String,
}

/// What is asked, once it is understood.
struct Asked {
    scope: Vec<Scope>,
    challenge: Option<Challenge>,
}

impl Account {
    /// Decides what to do about a request, given who is logged in.
    ///
    /// An error is for the user's eyes: nothing may be sent to where the request says.
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
        let question = Question { client: id, description, first_party, scope: asked.scope, redirect_uri };
        Ok(if user.is_some() { Authorization::Ask(question) } else { Authorization::LogIn(question) })
    }

    /// Takes the user's answer; says where to send the user.
    pub async fn decide(&self, session: &Session, request: &AuthorizationRequest, allow: bool) -> Result<String> {
        let asker = self.asker(request).await?;
        let asked = match understand(&asker.client, request) {
            Ok(asked) if allow => asked,
            Ok(_) => {
                audit::event("consent refused", session.user_id(), &asker.client.id);
                let denied = Error::oauth(Refusal::Denied, "the user does not allow it");
                return self.refuse(&asker, request, denied);
            }
            Err(error) => return self.refuse(&asker, request, error),
        };
        let before = &session.user.value;
        let user = self.give_consent(before, &asker.client.id, &asked.scope).await?;
        if user.not_before_s != before.not_before_s || user.disabled {
            return Err(Error::Ended);
        }
        self.send_code(&user, asker, asked, request).await
    }

    /// Whether the client is public that has users sent to this path of the site; none if there is no such client.
    pub(crate) async fn reads_code_at(&self, id: &ClientId, path: &str) -> Result<Option<bool>> {
        let client = self.client_named(id.as_str()).await?;
        let client = client.filter(|client| client.check_grant(GrantType::AuthorizationCode).is_ok());
        let client = client.filter(|client| client.redirect_uris.iter().any(|uri| uri == path));
        Ok(client.map(|client| client.is_public()))
    }

    /// The client, and one of its own redirect URIs.
    async fn asker(&self, request: &AuthorizationRequest) -> Result<Asker> {
        let invalid = |must| Error::Invalid { what: "authorization request", must };
        let id = request.client_id.as_deref().ok_or(invalid("must have client_id"))?;
        let client = self.client_named(id).await?;
        // Who waits for the operator looks like nobody.
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

    /// Where to send the user with a code.
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

    /// Where to send the user with a refusal; what is not in the words of OAuth is ours to answer.
    fn refuse(&self, asker: &Asker, request: &AuthorizationRequest, error: Error) -> Result<String> {
        let Error::OAuth { refusal, reason } = error else { return Err(error) };
        Ok(self.redirect(asker, request, &[("error", refusal.as_str()), ("error_description", &reason)]))
    }

    /// `iss` says who answers, so that a client of several services cannot be led to mix them up (RFC 9207).
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
        Some(_) => return Err(Error::oauth(Refusal::UnsupportedResponse, "response_type must be code")),
        None => return Err(Error::oauth(Refusal::Request, "response_type is missing")),
    }
    let challenge = match (&request.code_challenge, request.code_challenge_method.as_deref()) {
        (Some(challenge), method) => Some(Challenge::parse(challenge, method)?),
        (None, Some(_)) => return Err(Error::oauth(Refusal::Request, "code_challenge is missing")),
        (None, None) => None,
    };
    if challenge.is_none() && client.is_public() && !client.legacy {
        return Err(Error::oauth(Refusal::Request, "a client without a secret must send code_challenge"));
    }
    let words = request.scope.as_deref().unwrap_or_default().split_whitespace();
    let scope = client.scope_for(Some(&words.map(str::to_owned).collect::<Vec<_>>()))?;
    Ok(Asked { scope, challenge })
}
