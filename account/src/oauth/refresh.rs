//! Refresh tokens: each is valid once, and is replaced by the next one.
//!
//! A token is 32 bytes: the id of its grant, a sequence number, and an HMAC over both. So tokens need not be stored,
//! and every token ever issued is recognized. If a used token comes back, somebody copied it, and the grant is revoked.
//! Within seconds it is only a client's retry, which gets the same next token.

use std::time::Duration;

use api::rest::account::{TokenRequest, TokenResponse};
use serde::{Deserialize, Serialize};
use store::{Key, Tag};
use types::{ClientId, Scope, Secret, Timestamp, UserId};

use super::{client::Client, error_code::OAuthErrorCode, parse_scope, response};
use crate::{
    Account, Error, Result,
    documents::{Document, retried},
    metrics,
    user::{UserRecord, consent::ConsentVersion},
};

/// Lifetime of a grant after its last use.
pub(super) const LIFETIME: Duration = Duration::from_secs(90 * 24 * 3600);
/// Time that a used token is accepted as a client's retry.
const RETRY: Duration = Duration::from_secs(10);
const CONTEXT: &str = "refresh token";

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Grant {
    user_id: UserId,
    pub(super) client: ClientId,
    scope: Vec<Scope>,
    #[serde(default, skip_serializing_if = "RequestedScope::is_scope")]
    asked: RequestedScope,
    /// The grant is valid only while this is the user's current consent version.
    #[serde(default, rename = "anchor")]
    consent_version: ConsentVersion,
    /// The sequence number of the valid token.
    number: u32,
    /// Time when the previous token was used.
    rotated: Timestamp,
}

/// Scopes that a client asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum RequestedScope {
    /// Scopes, or what stands for them.
    #[default]
    Scope,
    /// Nothing, with a password: then its tokens name all entities of the user.
    Everything,
}

#[derive(Clone, Copy)]
pub(super) struct GrantId(pub(super) [u8; 12]);

#[derive(Clone, Copy)]
struct RefreshToken {
    grant: GrantId,
    number: u32,
}

impl RequestedScope {
    fn is_scope(&self) -> bool {
        *self == Self::Scope
    }
}

impl Grant {
    pub(super) fn new(
        user: &UserRecord,
        client: &ClientId,
        (scope, asked): (&[Scope], RequestedScope),
        now: Timestamp,
    ) -> Self {
        let (user_id, scope, consent_version) = (user.id.clone(), scope.to_vec(), user.consent_version(client));
        Self { user_id, client: client.clone(), scope, asked, consent_version, number: 0, rotated: now }
    }
}

impl GrantId {
    pub(super) fn tag(self) -> Result<Tag> {
        Ok(Tag::named("t", &hex::encode(self.0))?)
    }

    pub(super) fn key(self) -> Result<Key> {
        Ok(Key::new(&self.tag()?, "grant")?)
    }
}

impl Account {
    /// Stores a new grant and returns its first refresh token.
    pub(super) async fn begin_grant(
        &self,
        user: &UserRecord,
        client: &ClientId,
        scope: (&[Scope], RequestedScope),
    ) -> Result<Secret> {
        let (id, now) = (GrantId(self.random.array()), self.clock.now());
        self.documents.create_until(&id.key()?, &Grant::new(user, client, scope, now), now.plus(LIFETIME)).await?;
        Ok(self.first_refresh_token(id))
    }

    /// An access token of a grant with these scopes.
    pub(super) async fn token_of_grant(
        &self,
        user: &UserRecord,
        client: &ClientId,
        (scope, asked): (&[Scope], RequestedScope),
    ) -> Result<Secret> {
        match asked {
            RequestedScope::Scope => self.user_token(user, client, scope).await,
            RequestedScope::Everything => self.user_token(user, client, &self.with_entities(user, scope).await?).await,
        }
    }

    pub(super) fn first_refresh_token(&self, grant: GrantId) -> Secret {
        self.write_token(RefreshToken { grant, number: 0 })
    }

    /// Exchanges a refresh token for an access token and the next refresh token.
    pub(super) async fn refresh_grant(&self, client: &Client, request: TokenRequest) -> Result<TokenResponse> {
        let missing = || Error::oauth(OAuthErrorCode::InvalidRequest, "refresh_token is missing");
        let sent = self.read_token(&request.refresh_token.ok_or_else(missing)?).ok_or_else(refused)?;
        let attempt = || async {
            let mut grant = self.grant_of(client, sent).await?;
            // Signed first: a request that fails must not use up the token.
            let access_token = self.sign_for(client, &grant.value, request.scope.as_deref()).await?;
            let now = self.clock.now();
            if sent.number == grant.value.number {
                grant.value.number = sent.number.checked_add(1).ok_or_else(refused)?;
                grant.value.rotated = now;
                if !self.documents.replace_until(&grant, now.plus(LIFETIME)).await? {
                    return Ok(None);
                }
            }
            Ok(Some(response(access_token, self.write_token(RefreshToken { number: grant.value.number, ..sent }))))
        };
        let response = retried("refresh token", attempt).await?;
        metrics::issued("refresh_token");
        Ok(response)
    }

    /// The grant of a token, which must be the valid token or a retry with the previous one.
    async fn grant_of(&self, client: &Client, sent: RefreshToken) -> Result<Document<Grant>> {
        let found = self.documents.read::<Grant>(&sent.grant.key()?).await?;
        let grant = found.filter(|grant| grant.value.client == client.id).ok_or_else(refused)?;
        let Grant { number, rotated, .. } = grant.value;
        let retry = sent.number.checked_add(1) == Some(number) && self.clock.now().since(rotated) <= RETRY;
        if sent.number == number || retry {
            return Ok(grant);
        }
        metrics::refused("refresh_token");
        self.revoke_reused(client, sent.grant, "grant revoked: a used refresh token came back").await?;
        Err(refused())
    }

    /// Issues an access token with the scopes of a grant, or fewer if requested.
    async fn sign_for(&self, client: &Client, grant: &Grant, asked: Option<&[String]>) -> Result<Secret> {
        let user = self.user(&grant.user_id).await?;
        let holds = |user: &UserRecord| {
            user.consent_to(client.revision()).is_some() && user.consent_version(&client.id) == grant.consent_version
        };
        let user = user.filter(|user| !user.disabled && holds(user)).ok_or_else(refused)?;
        match asked {
            Some(asked) if !asked.is_empty() => self.user_token(&user, &client.id, &narrowed(grant, asked)?).await,
            _ => self.token_of_grant(&user, &client.id, (&grant.scope, grant.asked)).await,
        }
    }

    /// Revokes a grant whose code or token was reused, and the client's access tokens. `event` is for the audit log.
    pub(super) async fn revoke_reused(&self, client: &Client, id: GrantId, event: &'static str) -> Result<()> {
        let attempt = || async {
            let grant = self.documents.read::<Grant>(&id.key()?).await?;
            // Another request was faster, or the code was never exchanged.
            let Some(grant) = grant.filter(|grant| grant.value.client == client.id) else { return Ok(Some(None)) };
            Ok(self.revoke_grant(&grant, event).await?.then_some(Some(grant.value.user_id)))
        };
        match retried("grant", attempt).await? {
            Some(user_id) => self.revoke_access_tokens(&user_id, &client.id).await,
            None => Ok(()),
        }
    }

    /// Returns `false` if the grant changed in between.
    async fn revoke_grant(&self, grant: &Document<Grant>, event: &'static str) -> Result<bool> {
        let ended = self.documents.delete(grant).await?;
        if ended {
            // Not refused without the audit file: it only takes something away from somebody who may have stolen it.
            self.audit.note(event, &grant.value.user_id, &grant.value.client);
        }
        Ok(ended)
    }

    /// Revokes the grant of a refresh token (RFC 7009). Ignores other clients' tokens.
    ///
    /// Access tokens do not name their grant, so those of this grant stay valid until they expire: revoking all of the
    /// client's tokens would log the user out elsewhere, too.
    pub(super) async fn revoke_token(&self, client: &Client, token: &Secret) -> Result<()> {
        let Some(sent) = self.read_token(token) else { return Ok(()) };
        let key = sent.grant.key()?;
        let attempt = || async {
            let grant = self.documents.read::<Grant>(&key).await?.filter(|grant| grant.value.client == client.id);
            let Some(grant) = grant else { return Ok(Some(())) };
            Ok(self.revoke_grant(&grant, "grant revoked by its client").await?.then_some(()))
        };
        retried("grant", attempt).await
    }

    fn write_token(&self, token: RefreshToken) -> Secret {
        let plain = [&token.grant.0[..], &token.number.to_be_bytes()].concat();
        Secret::new(self.keys.sign_text(CONTEXT, &plain))
    }

    fn read_token(&self, text: &Secret) -> Option<RefreshToken> {
        let plain: [u8; 16] = self.keys.verify_text(CONTEXT, text.expose())?;
        let (grant, number) = plain.split_at(12);
        Some(RefreshToken {
            grant: GrantId(grant.try_into().ok()?),
            number: u32::from_be_bytes(number.try_into().ok()?),
        })
    }
}

/// A refresh request may ask for fewer scopes than granted, but not for more.
fn narrowed(grant: &Grant, asked: &[String]) -> Result<Vec<Scope>> {
    let asked = parse_scope(asked)?;
    match asked.iter().find(|scope| !grant.scope.contains(scope) && !grant.scope.contains(&scope.general())) {
        Some(scope) => Err(Error::oauth(OAuthErrorCode::InvalidScope, format!("the scope `{scope}` was not granted"))),
        None => Ok(asked),
    }
}

fn refused() -> Error {
    Error::oauth(OAuthErrorCode::InvalidGrant, "Refresh token not valid: log in again")
}
