//! The caller of a request, and their current rights to an entity.
//!
//! A user's token must name the entity in its scope; the rights are those that both the token and the entity list. A
//! key gives read access to its own entity: an access key to its application, a gateway key to its gateway. A token
//! that was exchanged for an access key gives the same as the key.

use std::fmt;

use types::{AccessKey, Claims, ComponentId, Scope, ServiceName, UserId};

use super::{Entity, Rights, not_found};
use crate::{
    Account, Error, Result,
    documents::{Document, retried},
    entity::subject::Subject,
};

/// The caller, by credential.
#[derive(Debug)]
pub(crate) enum Caller {
    /// A verified token.
    Bearer(Box<Claims>),
    /// A key, which can be checked only against its application or gateway.
    Key(AccessKey),
}

/// Selects if deleted entities are found, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Deleted {
    Excluded,
    Included,
}

/// Requirements of a change on its caller.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Requires<R> {
    /// This right, to an entity that is not deleted.
    Right(R),
    /// This right, even if the entity is deleted.
    RightEvenIfDeleted(R),
    /// Any right, to an entity that is not deleted.
    AnyRight,
}

/// An entity with the caller's rights to it.
#[derive(Debug)]
pub(crate) struct Access<E: Entity> {
    pub(crate) entity: Document<E>,
    pub(crate) rights: Rights<E::Right>,
    pub(crate) id: E::Id,
}

impl Caller {
    /// The calling user, if their token has this general scope.
    pub(crate) fn user_with(&self, scope: &Scope) -> Result<UserId> {
        let (user_id, claims) = self.user_and_claims()?;
        if claims.scope.contains(scope) { Ok(user_id) } else { Err(Error::MissingScope(scope.clone())) }
    }

    /// Refuses callers that are not components.
    pub(crate) fn component(&self) -> Result<()> {
        match self {
            Self::Bearer(claims) if Subject::of(claims)? == Subject::Component => Ok(()),
            _ => Err(Error::NotComponent),
        }
    }

    /// Returns true if the caller is this component.
    pub(crate) fn is_component(&self, service: ServiceName, id: &ComponentId) -> bool {
        matches!(self, Self::Bearer(claims) if claims.is_component(service, id))
    }

    pub(crate) fn user(&self) -> Result<UserId> {
        self.user_and_claims().map(|(user_id, _)| user_id)
    }

    /// The calling user and the claims of their token.
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
    pub(crate) fn right(self) -> Option<R> {
        match self {
            Self::Right(right) | Self::RightEvenIfDeleted(right) => Some(right),
            Self::AnyRight => None,
        }
    }

    pub(crate) fn deleted(self) -> Deleted {
        match self {
            Self::Right(_) | Self::AnyRight => Deleted::Excluded,
            Self::RightEvenIfDeleted(_) => Deleted::Included,
        }
    }
}

impl<E: Entity> Access<E> {
    pub(crate) fn require(&self, right: E::Right) -> Result<()> {
        if self.rights.contains(&right) {
            return Ok(());
        }
        Err(Error::MissingRight { what: E::NOUN, id: self.id.to_string(), right: right.into() })
    }
}

impl Account {
    /// The caller's current rights to an entity. The response does not tell whether an entity is unknown or
    /// inaccessible.
    pub(crate) async fn access<E: Entity>(&self, caller: &Caller, id: &E::Id, deleted: Deleted) -> Result<Access<E>> {
        let (user_id, claims) = caller.user_and_claims()?;
        user_access(claims, &user_id, id, self.find_entity(id, deleted).await?)
    }

    /// The caller's current rights to an entity that is not deleted, which must include `right`.
    pub(crate) async fn access_with<E: Entity>(
        &self,
        caller: &Caller,
        id: &E::Id,
        right: E::Right,
    ) -> Result<Access<E>> {
        let access = self.access(caller, id, Deleted::Excluded).await?;
        access.require(right)?;
        Ok(access)
    }

    /// Like [`Account::access`], but also accepts a key of the entity.
    pub(crate) async fn access_with_key<E: Entity>(&self, caller: &Caller, id: &E::Id) -> Result<Access<E>> {
        let Caller::Key(key) = caller else { return self.access(caller, id, Deleted::Excluded).await };
        let entity = self.find_entity::<E>(id, Deleted::Excluded).await?.ok_or(Error::InvalidKey(E::NOUN))?;
        let rights = entity.value.rights_of_key(self, key).ok_or(Error::InvalidKey(E::NOUN))?;
        Ok(Access { entity, rights, id: id.clone() })
    }

    /// Changes an entity if the caller has the required right at the moment of the change.
    pub(crate) async fn change_as<E: Entity, T>(
        &self,
        caller: &Caller,
        id: &E::Id,
        requires: Requires<E::Right>,
        change: impl Fn(&mut E, &Rights<E::Right>) -> Result<T>,
    ) -> Result<T> {
        let attempt = || async {
            let mut access = self.access::<E>(caller, id, requires.deleted()).await?;
            if let Some(right) = requires.right() {
                access.require(right)?;
            }
            let response = change(&mut access.entity.value, &access.rights)?;
            Ok(self.documents.update(&access.entity).await?.then_some(response))
        };
        retried(E::NOUN, attempt).await
    }

    pub(crate) async fn find_entity<E: Entity>(&self, id: &E::Id, deleted: Deleted) -> Result<Option<Document<E>>> {
        let found = self.entity::<E>(id).await?;
        Ok(found.filter(|stored| deleted == Deleted::Included || !stored.value.is_deleted()))
    }
}

fn user_access<E: Entity>(
    claims: &Claims,
    user_id: &UserId,
    id: &E::Id,
    found: Option<Document<E>>,
) -> Result<Access<E>> {
    let scope = E::scope(id);
    let collaborates = found.as_ref().is_some_and(|stored| stored.value.collaborators().contains_key(user_id));
    if !claims.scope.contains(&scope) {
        // Callers who may list their entities may learn that an id is not among them, but nothing more.
        let is_hidden = found.is_none() || !E::IS_PUBLIC;
        let may_know = claims.scope.contains(&scope.general()) && !collaborates && is_hidden;
        return Err(if may_know { not_found::<E>(id) } else { Error::MissingScope(scope) });
    }
    let entity = found.ok_or_else(|| not_found::<E>(id))?;
    let current = entity.value.collaborators().get(user_id).cloned().unwrap_or_default();
    let rights = intersection::<E>(claims, id, &current);
    if rights.is_empty() { Err(no_rights::<E>(id)) } else { Ok(Access { entity, rights, id: id.clone() }) }
}

/// The response to a caller without any right to an entity that exists.
fn no_rights<E: Entity>(id: &E::Id) -> Error {
    if E::IS_PUBLIC { Error::NoRights(E::scope(id)) } else { not_found::<E>(id) }
}

/// The rights that both the token and the entity list.
pub(crate) fn intersection<E: Entity>(claims: &Claims, id: &E::Id, current: &Rights<E::Right>) -> Rights<E::Right> {
    let claimed = E::claimed(claims, id).filter(|_| claims.scope.contains(&E::scope(id)));
    current.iter().copied().filter(|right| claimed.is_some_and(|claimed| claimed.contains(right))).collect()
}
