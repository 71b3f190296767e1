//! Who calls, and what they may do to an application at this moment.
//!
//! A user's token opens an application only with its id in the scope, and with the rights that both the token names
//! and the application still gives. An access key, or a token made from one, opens its own application for reading.

use std::fmt;

use types::{AccessKey, AppId, ApplicationRight, Claims, Scope, UserId};

use crate::{
    Account, Error, Result,
    application::{Application, Rights},
    document::Stored,
    token::{self, Holder},
};

/// Who calls.
#[derive(Debug)]
pub(crate) enum Caller {
    /// Somebody with a token of ours.
    Bearer(Box<Claims>),
    /// Somebody with an access key, which can be checked only against its application.
    Key(AccessKey),
}

/// Which applications a call is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Those that are not deleted.
    Active,
    /// All of them.
    Any,
}

/// What the caller must be able to do for a change.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Need {
    /// This, to an application that is not deleted.
    Right(ApplicationRight),
    /// Delete the application, whether it is deleted or not.
    Restore,
}

/// An application, and what the caller may do to it.
#[derive(Debug)]
pub(crate) struct Access {
    pub(crate) application: Stored<Application>,
    pub(crate) rights: Rights,
}

impl Caller {
    /// The user who calls and who may do general things of this sort.
    pub(crate) fn user_with(&self, scope: &Scope) -> Result<UserId> {
        let user_id = self.user()?;
        match self {
            Self::Bearer(claims) if claims.scope.contains(scope) => Ok(user_id),
            _ => Err(Error::MissingScope(scope.clone())),
        }
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
        match self {
            Self::Key(_) => Err(Error::NotUser("access key")),
            Self::Bearer(claims) => match token::holder(claims)? {
                Holder::User(user_id) => Ok(user_id),
                Holder::Application { .. } => Err(Error::NotUser("token of an access key")),
                Holder::Component => Err(Error::NotUser("component")),
            },
        }
    }
}

impl fmt::Display for Caller {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bearer(claims) => write!(out, "{} {}", claims.kind, claims.sub),
            Self::Key(_) => out.write_str("access key"),
        }
    }
}

impl Need {
    /// The right.
    pub(crate) fn right(self) -> ApplicationRight {
        match self {
            Self::Right(right) => right,
            Self::Restore => ApplicationRight::Delete,
        }
    }

    /// The applications that it is about.
    pub(crate) fn state(self) -> State {
        match self {
            Self::Right(_) => State::Active,
            Self::Restore => State::Any,
        }
    }
}

impl Access {
    /// Refuses a caller without this right.
    pub(crate) fn require(&self, right: ApplicationRight) -> Result<()> {
        if self.rights.contains(&right) {
            Ok(())
        } else {
            Err(Error::MissingRight { app_id: self.application.value.id.clone(), right })
        }
    }
}

impl Account {
    /// What a user may do to an application now; an unknown and a foreign one answer alike.
    pub(crate) async fn access(&self, caller: &Caller, app_id: &AppId, state: State) -> Result<Access> {
        caller.user()?;
        self.access_to_read(caller, app_id, state).await
    }

    /// The same for calls that access keys may make too.
    pub(crate) async fn access_to_read(&self, caller: &Caller, app_id: &AppId, state: State) -> Result<Access> {
        let found = self.application(app_id).await?;
        let found = found.filter(|stored| state == State::Any || stored.value.deleted.is_none());
        match caller {
            Caller::Key(key) => {
                let application = found.ok_or(Error::Key)?;
                let rights = self.find_key(&application.value, key).ok_or(Error::Key)?.rights.clone();
                Ok(Access { application, rights })
            }
            Caller::Bearer(claims) => match token::holder(claims)? {
                Holder::User(user_id) => user_access(claims, &user_id, app_id, found),
                Holder::Application { app_id: own, key_id } => {
                    let application = found.filter(|_| own == *app_id).ok_or(Error::Key)?;
                    let mut keys = application.value.access_keys.iter();
                    let current = keys.find(|key| key.id == key_id).ok_or(Error::Key)?.rights.clone();
                    let rights = intersection(claims, app_id, &current);
                    Ok(Access { application, rights })
                }
                Holder::Component => Err(Error::NotUser("component")),
            },
        }
    }
}

fn user_access(
    claims: &Claims,
    user_id: &UserId,
    app_id: &AppId,
    found: Option<Stored<Application>>,
) -> Result<Access> {
    let collaborates = found.as_ref().is_some_and(|stored| stored.value.collaborators.contains_key(user_id));
    if !claims.reaches(app_id) {
        // Who may list their applications may know which exist for them, and no more than that.
        let may_know = claims.scope.contains(&Scope::Apps) && !collaborates;
        let missing = Error::MissingScope(Scope::App(app_id.clone()));
        return Err(if may_know { Error::no_application(app_id) } else { missing });
    }
    let application = found.ok_or_else(|| Error::no_application(app_id))?;
    let current = application.value.collaborators.get(user_id).cloned().unwrap_or_default();
    let rights = intersection(claims, app_id, &current);
    if rights.is_empty() { Err(Error::no_application(app_id)) } else { Ok(Access { application, rights }) }
}

/// What both the token and the application say.
fn intersection(claims: &Claims, app_id: &AppId, current: &Rights) -> Rights {
    current.iter().copied().filter(|right| claims.allows(app_id, *right)).collect()
}
