//! Refresh tokens, valid once; each response includes the next one.
//!
//! A token is 32 bytes: the id of its grant, a sequence number, and an authentication code over both. So tokens are not
//! stored, yet every issued token is recognised. One that comes back long after its use was copied by somebody, which
//! revokes the whole grant. Within seconds, it is a client that retries, and gets the same next token again.

use std::time::Duration;

use api::rest::account::{TokenAnswer, TokenRequest};
use serde::{Deserialize, Serialize};
use store::{Key, Tag};
use types::{ClientId, Scope, Secret, Timestamp, UserId};

use super::{Client, OAuthErrorCode, answer, parse_scope};
use crate::{
    Account, Error, Result, audit,
    documents::{Stored, retried},
    metrics,
    user::{UserRecord, consent::ConsentVersion},
};

/// How long a grant lives after its last use.
pub(super) const LIFETIME: Duration = Duration::from_secs(90 * 24 * 3600);
/// How long a used token is accepted again as a client's retry.
const RETRY: Duration = Duration::from_secs(10);
/// The context of authentication codes.
const PLACE: &str = "refresh token";

/// A grant: what a user allowed a client to do.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Grant {
    user_id: UserId,
    pub(super) client: ClientId,
    scope: Vec<Scope>,
    /// The grant ends when this changes for the user.
    #[serde(default)]
    anchor: ConsentVersion,
    /// The number of the token that is good now.
    number: u32,
    /// When the previous token was used.
    rotated: Timestamp,
}

/// The id of a grant.
#[derive(Clone, Copy)]
pub(super) struct GrantId(pub(super) [u8; 12]);

/// A decoded refresh token.
#[derive(Clone, Copy)]
struct Numbered {
    grant: GrantId,
    number: u32,
}

impl Grant {
    /// A new grant.
    pub(super) fn new(user: &UserRecord, client: &ClientId, scope: &[Scope], now: Timestamp) -> Self {
        let (user_id, scope, anchor) = (user.id.clone(), scope.to_vec(), user.consent_version(client));
        Self { user_id, client: client.clone(), scope, anchor, number: 0, rotated: now }
    }
}

impl GrantId {
    /// The tag of the grant's records.
    pub(super) fn tag(self) -> Result<Tag> {
        Ok(Tag::named("t", &hex::encode(self.0))?)
    }

    /// The key of the grant.
    pub(super) fn key(self) -> Result<Key> {
        Ok(Key::new(&self.tag()?, "grant")?)
    }
}

impl Account {
    /// Creates a grant, and returns its first refresh token.
    pub(super) async fn begin_grant(&self, user: &UserRecord, client: &ClientId, scope: &[Scope]) -> Result<Secret> {
        let (id, now) = (GrantId(self.random_bytes()), self.clock.now());
        self.documents.create_until(&id.key()?, &Grant::new(user, client, scope, now), now.plus(LIFETIME)).await?;
        Ok(self.first_refresh_token(id))
    }

    /// The first refresh token of a grant.
    pub(super) fn first_refresh_token(&self, grant: GrantId) -> Secret {
        self.write_token(Numbered { grant, number: 0 })
    }

    /// Exchanges a refresh token for an access token and the next refresh token.
    pub(super) async fn refresh_grant(&self, client: &Client, request: TokenRequest) -> Result<TokenAnswer> {
        let missing = || Error::oauth(OAuthErrorCode::InvalidRequest, "refresh_token is missing");
        let sent = self.read_token(&request.refresh_token.ok_or_else(missing)?).ok_or_else(refused)?;
        let attempt = || async {
            let mut grant = self.grant_of(client, sent).await?;
            // Sign before using up the token: a rejected request must not cost the grant.
            let access_token = self.sign_for(client, &grant.value, request.scope.as_deref()).await?;
            let now = self.clock.now();
            if sent.number == grant.value.number {
                grant.value.number = sent.number.checked_add(1).ok_or_else(refused)?;
                grant.value.rotated = now;
                if !self.documents.replace_until(&grant, now.plus(LIFETIME)).await? {
                    return Ok(None);
                }
            }
            Ok(Some(answer(access_token, self.write_token(Numbered { number: grant.value.number, ..sent }))))
        };
        let answer = retried("refresh token", attempt).await?;
        metrics::issued("refresh_token");
        Ok(answer)
    }

    /// Returns the grant of a token, which must be the current one, or the previous one as a retry.
    async fn grant_of(&self, client: &Client, sent: Numbered) -> Result<Stored<Grant>> {
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

    /// Issues an access token with the grant's scopes, or fewer if requested.
    async fn sign_for(&self, client: &Client, grant: &Grant, asked: Option<&[String]>) -> Result<Secret> {
        let user = self.user(&grant.user_id).await?;
        let holds = |user: &UserRecord| user.has_consent(&client.id) && user.consent_version(&client.id) == grant.anchor;
        let user = user.filter(|user| !user.disabled && holds(user)).ok_or_else(refused)?;
        match asked {
            Some(asked) if !asked.is_empty() => self.user_token(&user, &client.id, &narrowed(grant, asked)?).await,
            _ => self.user_token(&user, &client.id, &grant.scope).await,
        }
    }

    /// Ends a grant of which somebody has a copy, and the access tokens of its client; `event` says how it showed.
    pub(super) async fn revoke_reused(&self, client: &Client, id: GrantId, event: &'static str) -> Result<()> {
        let attempt = || async {
            let grant = self.documents.read::<Grant>(&id.key()?).await?;
            // A concurrent request ended it, or there never was a grant.
            let Some(grant) = grant.filter(|grant| grant.value.client == client.id) else { return Ok(Some(None)) };
            Ok(self.revoke_grant(&grant, event).await?.then_some(Some(grant.value.user_id)))
        };
        match retried("grant", attempt).await? {
            Some(user_id) => self.revoke_access_tokens(&user_id, &client.id).await,
            None => Ok(()),
        }
    }

    /// Says `false` when somebody else changed it in between.
    async fn revoke_grant(&self, grant: &Stored<Grant>, event: &'static str) -> Result<bool> {
        let ended = self.documents.delete(grant).await?;
        if ended {
            audit::event(event, &grant.value.user_id, &grant.value.client);
        }
        Ok(ended)
    }

    /// Revokes the grant of a refresh token (RFC 7009). Tokens of other clients are ignored.
    ///
    /// Access tokens do not name their grant, so they remain valid until they expire: ending all of the client's would
    /// log the user out elsewhere.
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

    fn write_token(&self, token: Numbered) -> Secret {
        let plain = [&token.grant.0[..], &token.number.to_be_bytes()].concat();
        Secret::new(self.keys.write_coded(PLACE, &plain))
    }

    fn read_token(&self, text: &Secret) -> Option<Numbered> {
        let plain: [u8; 16] = self.keys.read_coded(PLACE, text.expose())?;
        let (grant, number) = plain.split_at(12);
        Some(Numbered { grant: GrantId(grant.try_into().ok()?), number: u32::from_be_bytes(number.try_into().ok()?) })
    }
}

/// A refresh may request fewer scopes than were granted, but not more.
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
