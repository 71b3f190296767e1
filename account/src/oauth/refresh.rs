//! Refresh tokens: each is good for one use, and the next one comes with the answer.
//!
//! A token is 32 bytes: the id of its grant, which number it is, and an authentication code over both. So none is
//! kept, every token that was ever given out is recognised, and one that comes back long after its use gives away
//! that somebody copied it: then the whole grant ends. Within seconds it is only a client that sends twice, and gets
//! the same next token again.

use std::time::Duration;

use api::rest::account::{TokenAnswer, TokenRequest};
use serde::{Deserialize, Serialize};
use store::{Key, Tag};
use types::{ClientId, Scope, Secret, Timestamp, UserId};

use super::{Client, Refusal, answer, consent::Anchor, parse_scope};
use crate::{
    Account, Error, Result, audit,
    documents::{Stored, retried},
    metrics,
    user::UserRecord,
};

/// How long a grant lives after its last use.
pub(super) const LIFETIME: Duration = Duration::from_secs(90 * 24 * 3600);
/// How long a used token may come again as a client's retry.
const RETRY: Duration = Duration::from_secs(10);
/// What the codes belong to.
const PLACE: &str = "refresh token";

/// What a user let a client do.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Grant {
    user_id: UserId,
    pub(super) client: ClientId,
    scope: Vec<Scope>,
    /// The grant is over when this changes for the user.
    #[serde(default)]
    anchor: Anchor,
    /// The number of the token that is good now.
    number: u32,
    /// When the token before it was used.
    rotated: Timestamp,
}

/// The id of a grant.
#[derive(Clone, Copy)]
pub(super) struct GrantId(pub(super) [u8; 12]);

/// A refresh token, taken apart.
#[derive(Clone, Copy)]
struct Numbered {
    grant: GrantId,
    number: u32,
}

impl Grant {
    /// What a user lets a client do from `now` on.
    pub(super) fn new(user: &UserRecord, client: &ClientId, scope: &[Scope], now: Timestamp) -> Self {
        let (user_id, scope, anchor) = (user.id.clone(), scope.to_vec(), user.anchor(client));
        Self { user_id, client: client.clone(), scope, anchor, number: 0, rotated: now }
    }
}

impl GrantId {
    /// Where everything of the grant lies.
    pub(super) fn tag(self) -> Result<Tag> {
        Ok(Tag::named("t", &hex::encode(self.0))?)
    }

    /// Where the grant lies.
    pub(super) fn key(self) -> Result<Key> {
        Ok(Key::new(&self.tag()?, "grant")?)
    }
}

impl Account {
    /// Remembers what a user lets a client do, and gives the first refresh token for it.
    pub(super) async fn begin_grant(&self, user: &UserRecord, client: &ClientId, scope: &[Scope]) -> Result<Secret> {
        let (id, now) = (GrantId(self.random_bytes()), self.clock.now());
        self.documents.create_until(&id.key()?, &Grant::new(user, client, scope, now), now.plus(LIFETIME)).await?;
        Ok(self.first_refresh_token(id))
    }

    /// The first refresh token of a new grant.
    pub(super) fn first_refresh_token(&self, grant: GrantId) -> Secret {
        self.write_token(Numbered { grant, number: 0 })
    }

    /// Exchanges a refresh token for an access token and the next refresh token.
    pub(super) async fn refresh_grant(&self, client: &Client, request: TokenRequest) -> Result<TokenAnswer> {
        let missing = || Error::oauth(Refusal::Request, "refresh_token is missing");
        let sent = self.read_token(&request.refresh_token.ok_or_else(missing)?).ok_or_else(refused)?;
        let attempt = || async {
            let mut grant = self.grant_of(client, sent).await?;
            // Signed before the token is used up: what is refused must not cost the grant.
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

    /// The grant that a token is of; the token is the one that is good now, or the one before it as a retry.
    async fn grant_of(&self, client: &Client, sent: Numbered) -> Result<Stored<Grant>> {
        let found = self.documents.read::<Grant>(&sent.grant.key()?).await?;
        let grant = found.filter(|grant| grant.value.client == client.id).ok_or_else(refused)?;
        let Grant { number, rotated, .. } = grant.value;
        let retry = sent.number.checked_add(1) == Some(number) && self.clock.now().since(rotated) <= RETRY;
        if sent.number == number || retry {
            return Ok(grant);
        }
        metrics::refused("refresh_token");
        self.end_stolen(client, sent.grant, "grant revoked: a used refresh token came back").await?;
        Err(refused())
    }

    /// An access token with what a grant allows, or less if less is asked for.
    async fn sign_for(&self, client: &Client, grant: &Grant, asked: Option<&[String]>) -> Result<Secret> {
        let user = self.user(&grant.user_id).await?;
        let holds = |user: &UserRecord| user.lets_act(&client.id) && user.anchor(&client.id) == grant.anchor;
        let user = user.filter(|user| !user.disabled && holds(user)).ok_or_else(refused)?;
        match asked {
            Some(asked) if !asked.is_empty() => self.user_token(&user, &client.id, &narrowed(grant, asked)?).await,
            _ => self.user_token(&user, &client.id, &grant.scope).await,
        }
    }

    /// Ends a grant of which somebody has a copy, and the access tokens of its client; `event` says how it showed.
    pub(super) async fn end_stolen(&self, client: &Client, id: GrantId, event: &'static str) -> Result<()> {
        let attempt = || async {
            let grant = self.documents.read::<Grant>(&id.key()?).await?;
            // Somebody else was faster, or it never came to a grant.
            let Some(grant) = grant.filter(|grant| grant.value.client == client.id) else { return Ok(Some(None)) };
            Ok(self.end_grant(&grant, event).await?.then_some(Some(grant.value.user_id)))
        };
        match retried("grant", attempt).await? {
            Some(user_id) => self.end_tokens(&user_id, &client.id).await,
            None => Ok(()),
        }
    }

    /// Says `false` when somebody else changed it in between.
    async fn end_grant(&self, grant: &Stored<Grant>, event: &'static str) -> Result<bool> {
        let ended = self.documents.delete(grant).await?;
        if ended {
            audit::event(event, &grant.value.user_id, &grant.value.client);
        }
        Ok(ended)
    }

    /// Ends the grant of a refresh token (RFC 7009); what is no token of this client is none of its business.
    ///
    /// Access tokens do not say which grant they came of, so those of this one live on to their end: ending all of the
    /// client would cut off whoever logged in elsewhere.
    pub(super) async fn revoke_token(&self, client: &Client, token: &Secret) -> Result<()> {
        let Some(sent) = self.read_token(token) else { return Ok(()) };
        let key = sent.grant.key()?;
        let attempt = || async {
            let grant = self.documents.read::<Grant>(&key).await?.filter(|grant| grant.value.client == client.id);
            let Some(grant) = grant else { return Ok(Some(())) };
            Ok(self.end_grant(&grant, "grant revoked by its client").await?.then_some(()))
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

/// A refresh may ask for less than was granted, never for more.
fn narrowed(grant: &Grant, asked: &[String]) -> Result<Vec<Scope>> {
    let asked = parse_scope(asked)?;
    match asked.iter().find(|scope| !grant.scope.contains(scope) && !grant.scope.contains(&scope.general())) {
        Some(scope) => Err(Error::oauth(Refusal::Scope, format!("the scope `{scope}` was not granted"))),
        None => Ok(asked),
    }
}

fn refused() -> Error {
    Error::oauth(Refusal::Grant, "Refresh token not valid: log in again")
}
