//! Collaborators: who may do what to an application, and who may change that.

use api::rest::account::Collaborator;
use types::{AppId, ApplicationRight, Username};

use crate::{
    Account, Error, Result,
    access::{Caller, Need, State},
    access_key::check_rights,
    application::{Application, Rights},
    audit,
    user::UserRecord,
};

/// The most collaborators of one application.
const COLLABORATORS_MAX: usize = 100;

impl Account {
    /// The collaborators of an application in the order of their names.
    pub(crate) async fn collaborators(&self, application: &Application) -> Result<Vec<Collaborator>> {
        let users = self.users(application.collaborators.keys()).await?;
        let mut all: Vec<_> = users.into_iter().filter_map(|user| collaborator(application, user)).collect();
        all.sort_by(|one, other| one.username.cmp(&other.username));
        Ok(all)
    }

    /// One collaborator of an application.
    pub(crate) async fn collaborator(&self, application: &Application, username: &Username) -> Result<Collaborator> {
        let user = self.user_named(username).await?;
        user.and_then(|user| collaborator(application, user)).ok_or_else(|| no_collaborator(username))
    }

    /// Gives a user exactly these rights to an application.
    ///
    /// Nobody can give what they do not have themselves; rights that the user already has may stay.
    pub(crate) async fn set_collaborator(
        &self,
        caller: &Caller,
        app_id: &AppId,
        username: &Username,
        rights: &[ApplicationRight],
    ) -> Result<()> {
        check_rights(rights)?;
        // Asked first, so that only those who may add collaborators learn which users exist.
        self.access(caller, app_id, State::Active).await?.require(ApplicationRight::Collaborators)?;
        let user = self.user_named(username).await?;
        let user_id = user.ok_or_else(|| Error::NotFound { what: "user", id: username.to_string() })?.id;
        let wanted: Rights = rights.iter().copied().collect();
        let set = |application: &mut Application, own: &Rights| {
            let before = application.collaborators.insert(user_id.clone(), wanted.clone()).unwrap_or_default();
            if let Some(right) = wanted.iter().find(|right| !own.contains(right) && !before.contains(right)) {
                return Err(Error::Escalation(*right));
            }
            check_whole(application)
        };
        self.change_as(caller, app_id, Need::Right(ApplicationRight::Collaborators), set).await?;
        self.add_to_index(&user_id, app_id).await?;
        audit::event("collaborator set", caller, &format_args!("{app_id}/{username}"));
        Ok(())
    }

    /// Takes all rights to an application from a user.
    pub(crate) async fn remove_collaborator(&self, caller: &Caller, app_id: &AppId, username: &Username) -> Result<()> {
        let user_id = self.user_named(username).await?.map(|user| user.id);
        // Read before: if the user is added again in between, the entry that lists it for them is another one.
        let entry = match &user_id {
            Some(user_id) => self.index_entry(user_id, app_id).await?,
            None => None,
        };
        let remove = |application: &mut Application, _: &Rights| {
            let removed = user_id.as_ref().and_then(|user_id| application.collaborators.remove(user_id));
            removed.ok_or_else(|| no_collaborator(username))?;
            check_whole(application)
        };
        self.change_as(caller, app_id, Need::Right(ApplicationRight::Collaborators), remove).await?;
        if let Some(entry) = entry {
            self.documents.delete(&entry).await?;
        }
        audit::event("collaborator removed", caller, &format_args!("{app_id}/{username}"));
        Ok(())
    }
}

fn collaborator(application: &Application, user: UserRecord) -> Option<Collaborator> {
    let rights = application.collaborators.get(&user.id)?.iter().copied().collect();
    Some(Collaborator { username: user.username, email: user.email.into(), rights })
}

/// Refuses to leave an application to people who cannot add anybody.
fn check_whole(application: &Application) -> Result<()> {
    if application.collaborators.len() > COLLABORATORS_MAX {
        return Err(Error::Full { what: "collaborator", count_max: COLLABORATORS_MAX });
    }
    let mut all = application.collaborators.values();
    match all.any(|rights| rights.contains(&ApplicationRight::Collaborators)) {
        true => Ok(()),
        false => Err(Error::LastCollaborator),
    }
}

fn no_collaborator(username: &Username) -> Error {
    Error::NotFound { what: "collaborator", id: username.to_string() }
}
