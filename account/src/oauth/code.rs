//! Authorization codes: valid once, for one minute.
//!
//! A code is the id of its future grant with an HMAC. So a code that is used twice is recognized and revokes the grant,
//! because somebody copied it.

use std::time::Duration;

use api::rest::account::{TokenRequest, TokenResponse};
use serde::{Deserialize, Serialize};
use store::Key;
use types::{ClientId, Scope, Secret, UserId};

use super::{
    client::Client,
    error_code::OAuthErrorCode,
    pkce::{self, Challenge},
    refresh::{Grant, GrantId, LIFETIME as GRANT_LIFETIME, RequestedScope},
    response,
};
use crate::{
    Account, Error, Result, metrics,
    user::{UserRecord, consent::ConsentVersion},
};

const LIFETIME: Duration = Duration::from_secs(60);
const CONTEXT: &str = "authorization code";

#[derive(Debug, Serialize, Deserialize)]
struct CodeRecord {
    user_id: UserId,
    client: ClientId,
    scope: Vec<Scope>,
    redirect_uri: String,
    challenge: Option<Challenge>,
    #[serde(rename = "anchor")]
    consent_version: ConsentVersion,
}

impl Account {
    /// Issues a code to a client that has the user's consent.
    pub(super) async fn issue_code(
        &self,
        user: &UserRecord,
        client: &ClientId,
        scope: Vec<Scope>,
        (redirect_uri, challenge): (String, Option<Challenge>),
    ) -> Result<Secret> {
        let id = GrantId(self.random.array());
        let (user_id, consent_version) = (user.id.clone(), user.consent_version(client));
        let record = CodeRecord { user_id, client: client.clone(), scope, redirect_uri, challenge, consent_version };
        self.documents.create_until(&code_key(id)?, &record, self.clock.now().plus(LIFETIME)).await?;
        self.audit.note("code issued", &user.id, client);
        Ok(self.write_code(id))
    }

    /// Exchanges a code for an access token and a refresh token.
    pub(super) async fn code_grant(&self, client: &Client, request: TokenRequest) -> Result<TokenResponse> {
        if client.redirect_uris.is_empty() {
            return Err(Error::oauth(
                OAuthErrorCode::UnauthorizedClient,
                "this client has no redirect URI, so no codes",
            ));
        }
        let missing = || Error::oauth(OAuthErrorCode::InvalidRequest, "code is missing");
        let id = self.read_code(&request.code.ok_or_else(missing)?).ok_or_else(refused)?;
        let Some(found) = self.documents.read::<CodeRecord>(&code_key(id)?).await? else {
            return self.revoke_reused_code(client, id).await;
        };
        let code = &found.value;
        if code.client != client.id {
            return Err(refused());
        }
        check_redirect(client, code, request.redirect_uri.as_deref())?;
        pkce::check(code.challenge.as_ref(), request.code_verifier.as_ref())?;
        let user = self.user(&code.user_id).await?;
        let user = user.filter(|user| !user.disabled && user.consent_to(client.revision()).is_some());
        let user = user.filter(|user| user.consent_version(&client.id) == code.consent_version);
        let user = user.ok_or_else(refused)?;
        // Signed first: if the user lacks rights to the scope, the code stays valid.
        let access_token = self.user_token(&user, &client.id, &code.scope).await?;
        let grant = Grant::new(&user, &client.id, (&code.scope, RequestedScope::Scope), self.clock.now());
        let expires = self.clock.now().plus(GRANT_LIFETIME);
        if !self.documents.exchange_until(&found, &id.key()?, &grant, expires).await? {
            return self.revoke_reused_code(client, id).await;
        }
        metrics::issued("authorization_code");
        self.audit.note("login", &user.id, &client.id);
        Ok(response(access_token, self.first_refresh_token(id)))
    }

    /// Revokes the grant of a code that is used twice. An expired code has no grant.
    async fn revoke_reused_code<T>(&self, client: &Client, id: GrantId) -> Result<T> {
        metrics::refused("authorization_code");
        self.revoke_reused(client, id, "grant revoked: a used code came back").await?;
        Err(refused())
    }

    fn write_code(&self, id: GrantId) -> Secret {
        Secret::new(self.keys.sign_text(CONTEXT, &id.0))
    }

    fn read_code(&self, text: &Secret) -> Option<GrantId> {
        self.keys.verify_text(CONTEXT, text.expose()).map(GrantId)
    }
}

/// v2 clients omit the URI. That is safe if the client has only one.
fn check_redirect(client: &Client, code: &CodeRecord, sent: Option<&str>) -> Result<()> {
    let fits = match sent {
        Some(sent) => sent == code.redirect_uri,
        None => client.legacy && client.redirect_uris.len() == 1,
    };
    if fits {
        Ok(())
    } else {
        Err(Error::oauth(OAuthErrorCode::InvalidGrant, "redirect_uri is not the one that the code went to"))
    }
}

fn refused() -> Error {
    Error::oauth(OAuthErrorCode::InvalidGrant, "Code not valid: log in again")
}

fn code_key(id: GrantId) -> Result<Key> {
    Ok(Key::new(&id.tag()?, "code")?)
}
