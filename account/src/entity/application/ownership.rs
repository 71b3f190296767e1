//! Ownership of an application, its transfer, and the rights that grants still give.

use types::{AppId, ApplicationRight, Grant, UserId, Username};

use super::{Application, ApplicationRights};
use crate::{
    Account, Error, Result,
    entity::{
        Entity,
        access::{Caller, Deleted, Requires},
        all_rights,
        component::Component,
        not_found,
    },
    user::UserRecord,
};

impl Account {
    /// The owner of an application. The operator's components, which charge owners for what they use, may ask about
    /// every application, even a deleted one; all others need a right to it.
    pub(crate) async fn application_owner(&self, caller: &Caller, app_id: &AppId) -> Result<UserRecord> {
        let application = match caller.component() {
            Ok(()) => {
                self.check_own_component(caller).await?;
                self.find_entity::<Application>(app_id, Deleted::Included).await?
            }
            Err(_) => Some(self.access_to_read(caller, app_id).await?.entity),
        };
        let unknown = || not_found::<Application>(app_id);
        let application = application.ok_or_else(unknown)?.value;
        let owner = self.owner_of(&application, app_id).await?.ok_or_else(unknown)?;
        self.user(&owner).await?.ok_or_else(unknown)
    }

    /// The rights that a grant still gives to an application, for the operator's components.
    pub(crate) async fn granted_rights(
        &self,
        caller: &Caller,
        app_id: &AppId,
        grant: &Grant,
    ) -> Result<ApplicationRights> {
        caller.component()?;
        self.check_own_component(caller).await?;
        let found = self.find_entity::<Application>(app_id, Deleted::Excluded).await?;
        let application = found.ok_or_else(|| not_found::<Application>(app_id))?.value;
        let (user_id, client) = match grant {
            Grant::Key { id } => {
                let mut keys = application.access_keys.iter();
                return Ok(keys.find(|key| key.id == *id).map(|key| key.rights.clone()).unwrap_or_default());
            }
            Grant::User { id, client } => (Some(id.clone()), client.as_ref()),
            Grant::Owner => (self.owner_of(&application, app_id).await?, None),
        };
        let user = match &user_id {
            Some(user_id) => self.user(user_id).await?,
            None => None,
        };
        let user = user.filter(|user| !user.disabled && client.is_none_or(|client| user.authorized(client)));
        Ok(user.map(|user| application.rights_of(&user.id)).unwrap_or_default())
    }

    /// Hands an application over to a collaborator with all rights. Only its owner can, but anybody with the right
    /// `settings` may name the owner that it has.
    pub(crate) async fn transfer_application(&self, caller: &Caller, app_id: &AppId, heir: &Username) -> Result<()> {
        let actor = caller.user()?;
        // Checked first, so that only callers who may change the application learn which users exist.
        let access = self.access_with::<Application>(caller, app_id, ApplicationRight::Settings).await?;
        let owner = self.owner_of(&access.entity.value, app_id).await?;
        let to = self.require_user(heir).await?.id;
        if owner.as_ref() == Some(&to) {
            return Ok(());
        }
        let give = |application: &mut Application, _: &_| {
            let owner = application.owner.as_ref().or(owner.as_ref());
            check_transfer(application, (owner, &actor), (&to, heir))?;
            application.owner = Some(to.clone());
            Ok(())
        };
        let change = self.audit.change("application transferred", caller, &format_args!("{app_id} to {to}"))?;
        change.run(self.change_as(caller, app_id, Requires::Right(ApplicationRight::Settings), give)).await
    }

    /// Refuses components that users have registered: they would learn which applications others have.
    pub(crate) async fn check_own_component(&self, caller: &Caller) -> Result<()> {
        let Caller::Bearer(claims) = caller else { return Err(Error::NotComponent) };
        let found = self.documents.read::<Component>(&Component::key(&claims.sub)?).await?;
        match found.is_some_and(|stored| stored.value.collaborators.is_empty()) {
            true => Ok(()),
            false => Err(Error::NotOperatorComponent),
        }
    }
}

fn check_transfer(
    application: &Application,
    (owner, actor): (Option<&UserId>, &UserId),
    (to, heir): (&UserId, &Username),
) -> Result<()> {
    if owner != Some(actor) {
        return Err(Error::NotOwner { what: Application::NOUN, id: application.id.to_string() });
    }
    match application.collaborators.get(to) == Some(&all_rights::<Application>()) {
        true => Ok(()),
        false => Err(Error::NotHeir(heir.clone())),
    }
}
