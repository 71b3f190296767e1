//! The collaborators of an entity, and their rights.

use api::rest::account::Collaborator;
use types::Username;

use super::{
    Entity, Rights,
    access::{Caller, Requires},
    check_rights,
    owner::pass_on,
};
use crate::{Account, Error, Result, user::UserRecord};

const COLLABORATORS_MAX: usize = 100;

impl Account {
    /// The collaborators of an entity, in order of their usernames.
    pub(crate) async fn collaborators<E: Entity>(&self, entity: &E) -> Result<Vec<Collaborator<E::Right>>> {
        let users = self.users(entity.collaborators().keys()).await?;
        let mut all: Vec<_> = users.into_iter().filter_map(|user| collaborator(entity, user)).collect();
        all.sort_by(|one, other| one.username.cmp(&other.username));
        Ok(all)
    }

    /// The collaborators, if the caller's rights include seeing them.
    pub(crate) async fn collaborators_for<E: Entity>(
        &self,
        entity: &E,
        rights: &Rights<E::Right>,
    ) -> Result<Option<Vec<Collaborator<E::Right>>>> {
        match rights.contains(&E::COLLABORATORS) {
            true => self.collaborators(entity).await.map(Some),
            false => Ok(None),
        }
    }

    pub(crate) async fn collaborator<E: Entity>(
        &self,
        entity: &E,
        username: &Username,
    ) -> Result<Collaborator<E::Right>> {
        let user = self.find_user(username).await?;
        user.and_then(|user| collaborator(entity, user)).ok_or_else(|| no_collaborator(username))
    }

    /// Sets a user's rights to an entity.
    ///
    /// Callers cannot grant rights that they lack, but the user may keep rights that they already have.
    pub(crate) async fn set_collaborator<E: Entity>(
        &self,
        caller: &Caller,
        id: &E::Id,
        username: &Username,
        rights: &[E::Right],
    ) -> Result<()> {
        check_rights(rights)?;
        // Checked first, so that only callers who may add collaborators learn which users exist.
        self.access_with::<E>(caller, id, E::COLLABORATORS).await?;
        let user_id = self.require_user(username).await?.id;
        let now = self.clock.now();
        let wanted: Rights<E::Right> = rights.iter().copied().collect();
        let set = |entity: &mut E, held: &Rights<E::Right>| {
            let before = entity.collaborators_mut().insert(user_id.clone(), wanted.clone()).unwrap_or_default();
            if let Some(right) = wanted.iter().find(|right| !held.contains(right) && !before.contains(right)) {
                return Err(Error::Escalation((*right).into()));
            }
            entity.note_rights_taken(&before.difference(&wanted).copied().collect(), now);
            check_whole(entity)
        };
        let done = async {
            self.change_as(caller, id, Requires::Right(E::COLLABORATORS), set).await?;
            self.repair_index::<E>(&user_id, id).await
        };
        let object = format!("{} {id}/{username}", E::NOUN);
        let change = self.audit.change("collaborator set", caller, &object)?;
        change.run(done).await
    }

    /// Removes a collaborator. Everybody can leave; removing others requires the right. If the owner goes, somebody else
    /// becomes the owner, unless the owner of such an entity has to stay.
    pub(crate) async fn remove_collaborator<E: Entity>(
        &self,
        caller: &Caller,
        id: &E::Id,
        username: &Username,
    ) -> Result<()> {
        let user_id = self.find_user(username).await?.map(|user| user.id);
        // Read first: if the user is added again in between, the new entry has another version and stays.
        let entries = match &user_id {
            Some(user_id) => self.listed::<E>(user_id, id).await?,
            None => Vec::new(),
        };
        let leaves = user_id.as_ref() == Some(&caller.user()?);
        let requires = if leaves { Requires::AnyRight } else { Requires::Right(E::COLLABORATORS) };
        let now = self.clock.now();
        let remove = |entity: &mut E, _: &Rights<E::Right>| {
            let removed = user_id.as_ref().and_then(|user_id| entity.collaborators_mut().remove(user_id));
            entity.note_rights_taken(&removed.ok_or_else(|| no_collaborator(username))?, now);
            let heir = pass_on(entity, id)?;
            check_whole(entity)?;
            Ok(heir)
        };
        let removed = async {
            if let Some(heir) = self.change_as(caller, id, requires, remove).await? {
                self.audit.note("ownership passed on", caller, &format_args!("{} {id} to {heir}", E::NOUN));
            }
            for entry in entries {
                self.documents.delete(&entry).await?;
            }
            Ok(())
        };
        let object = format!("{} {id}/{username}", E::NOUN);
        let change = self.audit.change("collaborator removed", caller, &object)?;
        change.run(removed).await
    }
}

fn collaborator<E: Entity>(entity: &E, user: UserRecord) -> Option<Collaborator<E::Right>> {
    let rights = entity.collaborators().get(&user.id)?.iter().copied().collect();
    Some(Collaborator { username: user.username, email: user.email.to_string(), rights })
}

/// Refuses too many collaborators, and an entity without anybody who can add one.
pub(crate) fn check_whole<E: Entity>(entity: &E) -> Result<()> {
    if entity.collaborators().len() > COLLABORATORS_MAX {
        return Err(Error::Full { what: "collaborator", count_max: COLLABORATORS_MAX });
    }
    let mut all = entity.collaborators().values();
    match all.any(|rights| rights.contains(&E::COLLABORATORS)) {
        true => Ok(()),
        false => Err(Error::LastCollaborator(E::COLLABORATORS.into())),
    }
}

fn no_collaborator(username: &Username) -> Error {
    Error::NotFound { what: "collaborator", id: username.to_string() }
}
