//! Who calls, and what they may do to an application, gateway or component at this moment.
//!
//! A user's token opens an entity only with its id in the scope, and with the rights that both the token names and
//! the entity still gives. A key opens its own entity, for reading: an access key its application, a gateway's key
//! the gateway. So does a token that an access key was exchanged for.

use std::fmt;

use types::{AccessKey, AppId, Claims, Scope, UserId};

use super::{Entity, Rights, not_found};
use crate::{
    Account, Error, Result,
    application::Application,
    documents::Stored,
    token::{self, Holder},
};

/// Who calls.
#[derive(Debug)]
pub(crate) enum Caller {
    /// Somebody with a token of ours.
    Bearer(Box<Claims>),
    /// Somebody with a key, which can be checked only against its application or gateway.
    Key(AccessKey),
}

/// Which entities a call is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Which {
    /// Those that are not deleted.
    Active,
    /// All of them.
    Any,
}

/// What the caller must be able to do for a change.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Need<R> {
    /// This, to an entity that is not deleted.
    Right(R),
    /// This, to an entity whether it is deleted or not.
    EvenDeleted(R),
    /// Anything at all, to an entity that is not deleted.
    Anything,
}

/// An entity, and what the caller may do to it.
#[derive(Debug)]
pub(crate) struct Access<E: Entity> {
    pub(crate) entity: Stored<E>,
    pub(crate) rights: Rights<E::Right>,
    /// What the path names it by.
    id: E::Id,
}

impl Caller {
    /// The user who calls and who may do general things of this sort.
    pub(crate) fn user_with(&self, scope: &Scope) -> Result<UserId> {
        let (user_id, claims) = self.user_and_claims()?;
        if claims.scope.contains(scope) { Ok(user_id) } else { Err(Error::MissingScope(scope.clone())) }
    }

    /// Refuses whoever is not a component.
    pub(crate) fn component(&self) -> Result<()> {
        match self {
            Self::Bearer(claims) if token::holder(claims)? == Holder::Component => Ok(()),
            _ => Err(Error::NotComponent),
        }
    }

    /// The user who calls.
    pub(crate) fn user(&self) -> Result<UserId> {
        self.user_and_claims().map(|(user_id, _)| user_id)
    }

    /// The user who calls, and what their token says.
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
    /// The right, if it must be a certain one.
    pub(crate) fn right(self) -> Option<R> {
        match self {
            Self::Right(right) | Self::EvenDeleted(right) => Some(right),
            Self::Anything => None,
        }
    }

    /// The entities that it is about.
    pub(crate) fn which(self) -> Which {
        match self {
            Self::Right(_) | Self::Anything => Which::Active,
            Self::EvenDeleted(_) => Which::Any,
        }
    }
}

impl<E: Entity> Access<E> {
    /// Refuses a caller without this right.
    pub(crate) fn require(&self, right: E::Right) -> Result<()> {
        if self.rights.contains(&right) {
            return Ok(());
        }
        Err(Error::MissingRight { what: E::NOUN, id: self.id.to_string(), right: right.into() })
    }
}

impl Account {
    /// What a user may do to an entity now; an unknown and a foreign one answer alike.
    pub(crate) async fn access<E: Entity>(&self, caller: &Caller, id: &E::Id, which: Which) -> Result<Access<E>> {
        let (user_id, claims) = caller.user_and_claims()?;
        user_access(claims, &user_id, id, self.entity_in(id, which).await?)
    }

    /// The same for calls that may be made with a key of the entity, too.
    pub(crate) async fn access_with_key<E: Entity>(&self, caller: &Caller, id: &E::Id) -> Result<Access<E>> {
        let Caller::Key(key) = caller else { return self.access(caller, id, Which::Active).await };
        let entity = self.entity_in::<E>(id, Which::Active).await?.ok_or(Error::Key(E::NOUN))?;
        let rights = entity.value.rights_of_key(self, key).ok_or(Error::Key(E::NOUN))?;
        Ok(Access { entity, rights, id: id.clone() })
    }

    /// The same for an application, which tokens of its access keys open as the keys do.
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
        // Who may list their entities may know which exist for them, and no more than that.
        let may_know = claims.scope.contains(&scope.general()) && !collaborates;
        return Err(if may_know { not_found::<E>(id) } else { Error::MissingScope(scope) });
    }
    let entity = found.ok_or_else(|| not_found::<E>(id))?;
    let current = entity.value.collaborators().get(user_id).cloned().unwrap_or_default();
    let rights = intersection::<E>(claims, id, &current);
    if rights.is_empty() { Err(not_found::<E>(id)) } else { Ok(Access { entity, rights, id: id.clone() }) }
}

/// What both the token and the entity say.
fn intersection<E: Entity>(claims: &Claims, id: &E::Id, current: &Rights<E::Right>) -> Rights<E::Right> {
    let claimed = E::claimed(claims, id).filter(|_| claims.scope.contains(&E::scope(id)));
    current.iter().copied().filter(|right| claimed.is_some_and(|claimed| claimed.contains(right))).collect()
}
