//! Authentication of callers, and their current rights to an application, gateway or component.
//!
//! A user's token grants access to an entity only if its scope includes the entity's id; the effective rights are those
//! that both the token names and the user still has. A key grants read access to its own entity: an access key to its
//! application, a gateway key to the gateway. So does a token that an access key was exchanged for.

use std::fmt;

use types::{AccessKey, AppId, Claims, Scope, UserId};

use super::{Entity, Rights, not_found};
use crate::{
    Account, Error, Result,
    documents::{Stored, retried},
    token::subject::Subject,
};

/// A caller.
#[derive(Debug)]
pub(crate) enum Caller {
    /// A caller with one of our tokens.
    Bearer(Box<Claims>),
    /// A caller with a key, which can only be verified against its application or gateway.
    Key(AccessKey),
}

/// Deleted entities a call is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Deleted {
    /// Those that are not deleted.
    Active,
    /// All of them.
    Any,
}

/// What a change requires of the caller.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Requires<R> {
    /// This, to an entity that is not deleted.
    Right(R),
    /// This, to an entity whether it is deleted or not.
    RightEvenIfDeleted(R),
    /// Anything at all, to an entity that is not deleted.
    Anything,
}

/// An entity, and the caller's rights to it.
#[derive(Debug)]
pub(crate) struct Access<E: Entity> {
    pub(crate) entity: Stored<E>,
    pub(crate) rights: Rights<E::Right>,
    pub(crate) id: E::Id,
}

impl Caller {
    /// Returns the calling user, if the token has this general scope.
    pub(crate) fn user_with(&self, scope: &Scope) -> Result<UserId> {
        let (user_id, claims) = self.user_and_claims()?;
        if claims.scope.contains(scope) { Ok(user_id) } else { Err(Error::MissingScope(scope.clone())) }
    }

    /// Rejects callers other than components.
    pub(crate) fn component(&self) -> Result<()> {
        match self {
            Self::Bearer(claims) if Subject::of(claims)? == Subject::Component => Ok(()),
            _ => Err(Error::NotComponent),
        }
    }

    /// Returns the calling user.
    pub(crate) fn user(&self) -> Result<UserId> {
        self.user_and_claims().map(|(user_id, _)| user_id)
    }

    /// Returns the calling user and the claims of their token.
    pub(crate) fn user_and_claims(&self) -> Result<(UserId, &Claims)> {
        match self {
            Self::Key(_) => Err(Error::NotUser("key")),
            Self::Bearer(claims) => match Subject::of(claims)? {
                Subject::User(user_id) => Ok((user_id, claims)),
                Subject::Application { .. } => Err(Error::NotUser("token of an access key")),
                Subject::Gateway => Err(Error::NotUser("gateway")),
                Subject::Component => Err(Error::NotUser("component")),
            },
        }
    }
}

impl fmt::Display for Caller {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bearer(claims) => write!(out, "{} {}", claims.kind, claims.sub),
            Self::Key(_) => out.write_str("key"),
        }
    }
}

impl<R: Copy> Requires<R> {
    /// The right, if it must be a certain one.
    pub(crate) fn right(self) -> Option<R> {
        match self {
            Self::Right(right) | Self::RightEvenIfDeleted(right) => Some(right),
            Self::Anything => None,
        }
    }

    /// The entities that it is about.
    pub(crate) fn which(self) -> Deleted {
        match self {
            Self::Right(_) | Self::Anything => Deleted::Excluded,
            Self::RightEvenIfDeleted(_) => Deleted::Included,
        }
    }
}

impl<E: Entity> Access<E> {
    /// Rejects callers without this right.
    pub(crate) fn require(&self, right: E::Right) -> Result<()> {
        if self.rights.contains(&right) {
            return Ok(());
        }
        Err(Error::MissingRight { what: E::NOUN, id: self.id.to_string(), right: right.into() })
    }
}

impl Account {
    /// What a user may do to an entity now; an unknown and a foreign one answer alike.
    pub(crate) async fn access<E: Entity>(&self, caller: &Caller, id: &E::Id, which: Deleted) -> Result<Access<E>> {
        let (user_id, claims) = caller.user_and_claims()?;
        user_access(claims, &user_id, id, self.entity_in(id, which).await?)
    }

    /// Like [`Account::access`], but also accepts a key of the entity.
    pub(crate) async fn access_with_key<E: Entity>(&self, caller: &Caller, id: &E::Id) -> Result<Access<E>> {
        let Caller::Key(key) = caller else { return self.access(caller, id, Deleted::Excluded).await };
        let entity = self.entity_in::<E>(id, Deleted::Excluded).await?.ok_or(Error::InvalidKey(E::NOUN))?;
        let rights = entity.value.rights_of_key(self, key).ok_or(Error::InvalidKey(E::NOUN))?;
        Ok(Access { entity, rights, id: id.clone() })
    }

    /// Changes an entity for a caller who can do what it needs, at the moment of the change.
    pub(crate) async fn change_as<E: Entity, T>(
        &self,
        caller: &Caller,
        id: &E::Id,
        need: Requires<E::Right>,
        change: impl Fn(&mut E, &Rights<E::Right>) -> Result<T>,
    ) -> Result<T> {
        let attempt = || async {
            let mut access = self.access::<E>(caller, id, need.which()).await?;
            if let Some(right) = need.right() {
                access.require(right)?;
            }
            let answer = change(&mut access.entity.value, &access.rights)?;
            Ok(self.documents.replace(&access.entity).await?.then_some(answer))
        };
        retried(E::NOUN, attempt).await
    }

    pub(crate) async fn entity_in<E: Entity>(&self, id: &E::Id, which: Deleted) -> Result<Option<Stored<E>>> {
        let found = self.entity::<E>(id).await?;
        Ok(found.filter(|stored| which == Deleted::Included || !stored.value.is_deleted()))
    }
}

fn user_access<E: Entity>(
    claims: &Claims,
    user_id: &UserId,
    id: &E::Id,
    found: Option<Stored<E>>,
) -> Result<Access<E>> {
    let scope = E::scope(id);
    let collaborates = found.as_ref().is_some_and(|stored| stored.value.collaborators().contains_key(user_id));
    if !claims.scope.contains(&scope) {
        // A caller who may list entities may learn which of their own exist, but no more.
        let may_know = claims.scope.contains(&scope.general()) && !collaborates;
        return Err(if may_know { not_found::<E>(id) } else { Error::MissingScope(scope) });
    }
    let entity = found.ok_or_else(|| not_found::<E>(id))?;
    let current = entity.value.collaborators().get(user_id).cloned().unwrap_or_default();
    let rights = intersection::<E>(claims, id, &current);
    if rights.is_empty() { Err(not_found::<E>(id)) } else { Ok(Access { entity, rights, id: id.clone() }) }
}

/// What both the token and the entity say.
pub(crate) fn intersection<E: Entity>(claims: &Claims, id: &E::Id, current: &Rights<E::Right>) -> Rights<E::Right> {
    let claimed = E::claimed(claims, id).filter(|_| claims.scope.contains(&E::scope(id)));
    current.iter().copied().filter(|right| claimed.is_some_and(|claimed| claimed.contains(right))).collect()
}
