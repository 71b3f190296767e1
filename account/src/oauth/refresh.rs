//! Refresh tokens: each is good for one use, and the next one comes with the answer.
//!
//! A token is 32 bytes: the id of its grant, which number it is, and an authentication code over both. So none is
//! kept, every token that was ever given out is recognised, and one that comes back long after its use gives away
//! that somebody copied it: then the whole grant ends. Within seconds it is only a client that sends twice, and gets
//! the same next token again.

use std::time::Duration;

use api::rest::account::{TokenAnswer, TokenRequest};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use serde::{Deserialize, Serialize};
use store::{Key, Tag};
use types::{ClientId, Scope, Secret, Timestamp, UserId};

use super::{Client, Refusal, answer, parse_scope};
use crate::{Account, Error, Result, audit, document::Stored, metrics};

/// How long a grant lives after its last use.
const LIFETIME: Duration = Duration::from_secs(90 * 24 * 3600);
/// How long a used token may come again as a client's retry.
const RETRY: Duration = Duration::from_secs(10);
/// How often a use is tried again when others use the same grant.
const TRIES_MAX: usize = 20;
/// How many bytes of the code go into a token.
const CODE_BYTES: usize = 16;
/// What the codes belong to.
const PLACE: &str = "refresh token";

/// What a user let a client do.
#[derive(Debug, Serialize, Deserialize)]
struct Grant {
    user_id: UserId,
    client: ClientId,
    scope: Vec<Scope>,
    /// The number of the token that is good now.
    number: u32,
    /// When the token before it was used.
    rotated: Timestamp,
}

/// A refresh token, taken apart.
#[derive(Clone, Copy)]
struct Numbered {
    grant: [u8; 12],
    number: u32,
}

impl Account {
    /// Remembers what a user lets a client do, and gives the first refresh token for it.
    pub(super) async fn begin_grant(&self, user_id: &UserId, client: &ClientId, scope: &[Scope]) -> Result<Secret> {
        let now = self.clock.now();
        let grant =
            Grant { user_id: user_id.clone(), client: client.clone(), scope: scope.to_vec(), number: 0, rotated: now };
        let first = Numbered { grant: self.random_bytes(), number: 0 };
        self.documents.create_until(&grant_key(first)?, &grant, now.plus(LIFETIME)).await?;
        Ok(self.write_token(first))
    }

    /// Exchanges a refresh token for an access token and the next refresh token.
    pub(super) async fn refresh_grant(&self, client: &Client, request: TokenRequest) -> Result<TokenAnswer> {
        let missing = || Error::oauth(Refusal::Request, "refresh_token is missing");
        let sent = self.read_token(&request.refresh_token.ok_or_else(missing)?).ok_or_else(refused)?;
        let (grant, next) = self.rotate(client, sent).await?;
        let scope = match request.scope.as_deref() {
            Some(asked) if !asked.is_empty() => narrowed(&grant, asked)?,
            _ => grant.scope,
        };
        let user = self.user(&grant.user_id).await?.ok_or_else(refused)?;
        let access_token = self.user_token(&user, &client.id, &scope).await?;
        metrics::issued("refresh_token");
        Ok(answer(access_token, self.write_token(next)))
    }

    /// Takes the token's one use; gives the next token.
    async fn rotate(&self, client: &Client, sent: Numbered) -> Result<(Grant, Numbered)> {
        for _ in 0..TRIES_MAX {
            let found = self.documents.read::<Grant>(&grant_key(sent)?).await?;
            let mut grant = found.filter(|grant| grant.value.client == client.id).ok_or_else(refused)?;
            let now = self.clock.now();
            let current = Numbered { number: grant.value.number, ..sent };
            if sent.number == current.number {
                grant.value.number = current.number.checked_add(1).ok_or_else(refused)?;
                grant.value.rotated = now;
                if self.documents.replace_until(&grant, now.plus(LIFETIME)).await? {
                    let next = Numbered { number: grant.value.number, ..sent };
                    return Ok((grant.value, next));
                }
            } else if sent.number.checked_add(1) == Some(current.number) && now.since(grant.value.rotated) <= RETRY {
                return Ok((grant.value, current));
            } else {
                return self.revoke(&grant).await;
            }
        }
        Err(Error::Contended { what: "refresh token" })
    }

    /// Ends a grant whose used token came back.
    async fn revoke<T>(&self, grant: &Stored<Grant>) -> Result<T> {
        // When somebody else changed it in between, they saw a reuse too, or the next one will.
        self.documents.delete(grant).await?;
        metrics::refused("refresh_token");
        audit::event("grant revoked: a used refresh token came back", &grant.value.user_id, &grant.value.client);
        Err(refused())
    }

    fn write_token(&self, token: Numbered) -> Secret {
        let plain = [&token.grant[..], &token.number.to_be_bytes()].concat();
        let code = self.keys.sign(PLACE, &plain);
        Secret::new(URL_SAFE_NO_PAD.encode([&plain, &code.as_ref()[..CODE_BYTES]].concat()))
    }

    fn read_token(&self, text: &Secret) -> Option<Numbered> {
        let bytes = URL_SAFE_NO_PAD.decode(text.expose()).ok()?;
        let (plain, code) = bytes.split_at_checked(16)?;
        let expected = self.keys.sign(PLACE, plain);
        aws_lc_rs::constant_time::verify_slices_are_equal(&expected.as_ref()[..CODE_BYTES], code).ok()?;
        let (grant, number) = plain.split_at(12);
        Some(Numbered { grant: grant.try_into().ok()?, number: u32::from_be_bytes(number.try_into().ok()?) })
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

fn grant_key(token: Numbered) -> Result<Key> {
    Ok(Key::new(&Tag::named("t", &hex::encode(token.grant))?, "grant")?)
}
