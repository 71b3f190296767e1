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
    application::Application,
    documents::Stored,
    token::{self, Holder},
};

/// A caller.
#[derive(Debug)]
pub(crate) enum Caller {
    /// A caller with one of our tokens.
    Bearer(Box<Claims>),
    /// A caller with a key, which can only be verified against its application or gateway.
    Key(AccessKey),
}

/// Which entities a request is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Which {
    /// Those that are not deleted.
    Active,
    /// All of them.
    Any,
}

/// What a change requires of the caller.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Need<R> {
    /// This right, to an entity that is not deleted.
    Right(R),
    /// This right, even if the entity is deleted.
    EvenDeleted(R),
    /// Any right, to an entity that is not deleted.
    Anything,
}

/// An entity, and the caller's rights to it.
#[derive(Debug)]
pub(crate) struct Access<E: Entity> {
    pub(crate) entity: Stored<E>,
    pub(crate) rights: Rights<E::Right>,
    /// The id in the path.
    id: E::Id,
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
            Self::Bearer(claims) if token::holder(claims)? == Holder::Component => Ok(()),
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
            Self::Bearer(claims) => match token::holder(claims)? {
                Holder::User(user_id) => Ok((user_id, claims)),
                Holder::Application { .. } => Err(Error::NotUser("token of an access key")),
                Holder::Gateway => Err(Error::NotUser("gateway")),
                Holder::Component => Err(Error::NotUser("component")),
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

impl<R: Copy> Need<R> {
    /// The required right, if it is a specific one.
    pub(crate) fn right(self) -> Option<R> {
        match self {
            Self::Right(right) | Self::EvenDeleted(right) => Some(right),
            Self::Anything => None,
        }
    }

    /// The entities that this applies to.
    pub(crate) fn which(self) -> Which {
        match self {
            Self::Right(_) | Self::Anything => Which::Active,
            Self::EvenDeleted(_) => Which::Any,
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
    /// Returns a user's current rights to an entity. An unknown entity and a foreign one give the same error.
    pub(crate) async fn access<E: Entity>(&self, caller: &Caller, id: &E::Id, which: Which) -> Result<Access<E>> {
        let (user_id, claims) = caller.user_and_claims()?;
        user_access(claims, &user_id, id, self.entity_in(id, which).await?)
    }

    /// Like [`Account::access`], but also accepts a key of the entity.
    pub(crate) async fn access_with_key<E: Entity>(&self, caller: &Caller, id: &E::Id) -> Result<Access<E>> {
        let Caller::Key(key) = caller else { return self.access(caller, id, Which::Active).await };
        let entity = self.entity_in::<E>(id, Which::Active).await?.ok_or(Error::Key(E::NOUN))?;
        let rights = entity.value.rights_of_key(self, key).ok_or(Error::Key(E::NOUN))?;
        Ok(Access { entity, rights, id: id.clone() })
    }

    /// Like [`Account::access`], but also accepts tokens of the application's access keys.
    pub(crate) async fn access_to_read(&self, caller: &Caller, app_id: &AppId) -> Result<Access<Application>> {
        if let Caller::Bearer(claims) = caller
            && let Holder::Application { app_id: own, key_id } = token::holder(claims)?
        {
            let found = self.entity_in::<Application>(app_id, Which::Active).await?;
            let entity = found.filter(|_| own == *app_id).ok_or(Error::Key(Application::NOUN))?;
            let mut keys = entity.value.access_keys.iter();
            let current = keys.find(|key| key.id == key_id).ok_or(Error::Key(Application::NOUN))?.rights.clone();
            let rights = intersection::<Application>(claims, app_id, &current);
            return Ok(Access { entity, rights, id: app_id.clone() });
        }
        self.access_with_key(caller, app_id).await
    }

    async fn entity_in<E: Entity>(&self, id: &E::Id, which: Which) -> Result<Option<Stored<E>>> {
        let found = self.entity::<E>(id).await?;
        Ok(found.filter(|stored| which == Which::Any || !stored.value.is_deleted()))
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

/// The rights that both the token and the entity grant.
fn intersection<E: Entity>(claims: &Claims, id: &E::Id, current: &Rights<E::Right>) -> Rights<E::Right> {
    let claimed = E::claimed(claims, id).filter(|_| claims.scope.contains(&E::scope(id)));
    current.iter().copied().filter(|right| claimed.is_some_and(|claimed| claimed.contains(right))).collect()
}
