//! Applications: the stored document, and creating, renaming, deleting and restoring it.

pub(crate) mod access_key;
pub(crate) mod eui;
mod eui_claim;
mod ownership;

use std::collections::BTreeMap;

use api::rest::account::NewApplication;
use serde::{Deserialize, Serialize};
use store::{Key, Tag};
use types::{AccessKey, AppEui, AppId, ApplicationRight, Claims, Scope, Timestamp, UserId};

use self::access_key::AccessKeyRecord;
pub use self::eui::{EuiBlock, EuiBlockError};
use crate::{
    Account, Error, Result,
    entity::subject::Subject,
    entity::{
        self, Collaborators, Entity,
        access::{Access, Caller, Deleted, Requires, intersection},
        all_rights, not_found,
    },
};

const NAME_CHARACTERS_MAX: usize = 200;
/// Ids that would clash with paths of the API.
const RESERVED: [&str; 1] = ["token"];

pub(crate) type ApplicationRights = entity::Rights<ApplicationRight>;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Application {
    pub(crate) id: AppId,
    pub(crate) name: String,
    pub(crate) created: Timestamp,
    pub(crate) deleted: Option<Timestamp>,
    /// None in documents of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) owner: Option<UserId>,
    /// In insertion order.
    pub(crate) euis: Vec<AppEui>,
    /// EUIs that are being claimed but are not in `euis` yet.
    pub(crate) claiming: Vec<AppEui>,
    pub(crate) collaborators: Collaborators<ApplicationRight>,
    /// In insertion order.
    pub(crate) access_keys: Vec<AccessKeyRecord>,
}

impl Entity for Application {
    type Id = AppId;
    type Right = ApplicationRight;

    const NOUN: &'static str = "application";
    const RIGHTS: &'static [ApplicationRight] = ApplicationRight::ALL;
    const COLLABORATORS: ApplicationRight = ApplicationRight::Collaborators;
    const RESTORE: Option<ApplicationRight> = Some(ApplicationRight::Delete);
    const OWNER_STAYS: bool = false;

    /// The handler stores its part of an application under the same tag.
    fn key(id: &str) -> Result<Key> {
        Ok(Key::new(&Tag::application(id)?, "account")?)
    }

    fn scope(id: &AppId) -> Scope {
        Scope::App(id.clone())
    }

    fn claimed<'a>(claims: &'a Claims, id: &AppId) -> Option<&'a Vec<ApplicationRight>> {
        claims.apps.get(id)
    }

    fn is(&self, id: &AppId) -> bool {
        self.id == *id
    }

    fn is_deleted(&self) -> bool {
        self.deleted.is_some()
    }

    fn collaborators(&self) -> &Collaborators<ApplicationRight> {
        &self.collaborators
    }

    fn owner(&self) -> Option<&UserId> {
        self.owner.as_ref()
    }

    fn set_owner(&mut self, owner: UserId) {
        self.owner = Some(owner);
    }

    fn collaborators_mut(&mut self) -> &mut Collaborators<ApplicationRight> {
        &mut self.collaborators
    }

    fn rights_of_key(&self, account: &Account, key: &AccessKey) -> Option<ApplicationRights> {
        account.find_key(self, key).map(|record| record.rights.clone())
    }
}

impl Account {
    /// Like [`Account::access_with_key`], but also accepts tokens that were exchanged for an access key.
    pub(crate) async fn access_to_read(&self, caller: &Caller, app_id: &AppId) -> Result<Access<Application>> {
        if let Caller::Bearer(claims) = caller
            && let Subject::Application { app_id: key_app_id, key_id } = Subject::of(claims)?
        {
            let found = self.find_entity::<Application>(app_id, Deleted::Excluded).await?;
            let entity = found.filter(|_| key_app_id == *app_id).ok_or(Error::InvalidKey(Application::NOUN))?;
            let mut keys = entity.value.access_keys.iter();
            let current = keys.find(|key| key.id == key_id).ok_or(Error::InvalidKey(Application::NOUN))?.rights.clone();
            let rights = intersection::<Application>(claims, app_id, &current);
            return Ok(Access { entity, rights, id: app_id.clone() });
        }
        self.access_with_key(caller, app_id).await
    }

    /// Creates an application with an EUI and a `default key`. Its creator becomes the owner and has all rights.
    pub(crate) async fn create_application(&self, creator: &UserId, new: NewApplication) -> Result<Application> {
        check_new(&new)?;
        self.check_room::<Application>(creator).await?;
        let change = self.audit.change("application created", creator, &new.id)?;
        change.run(self.add_application(creator, &new)).await?;
        let stored = self.entity(&new.id).await?;
        stored.map(|stored| stored.value).ok_or_else(|| not_found::<Application>(&new.id))
    }

    async fn add_application(&self, creator: &UserId, new: &NewApplication) -> Result<()> {
        let application = self.first_version(creator, new).await?;
        let key = Application::key(new.id.as_str())?;
        if !self.documents.add(&key, &application).await? {
            return Err(self.taken::<Application>(creator, &new.id).await?);
        }
        if let Err(error) = self.first_euis(&application, new.euis.is_empty()).await {
            // No other request can have used it yet.
            self.documents.remove(&key).await?;
            return Err(error);
        }
        self.list_made::<Application>(creator, &new.id).await
    }

    pub(crate) async fn rename_application(&self, caller: &Caller, app_id: &AppId, name: &str) -> Result<()> {
        check_name(name)?;
        let rename = |application: &mut Application, _: &ApplicationRights| {
            name.clone_into(&mut application.name);
            Ok(())
        };
        self.change_as(caller, app_id, Requires::Right(ApplicationRight::Settings), rename).await
    }

    /// Deletes an application. Its id stays taken, and it can be restored.
    pub(crate) async fn delete_application(&self, caller: &Caller, app_id: &AppId) -> Result<()> {
        let now = self.clock.now();
        let delete = |application: &mut Application, _: &ApplicationRights| {
            application.deleted = Some(now);
            Ok(())
        };
        let change = self.audit.change("application deleted", caller, app_id)?;
        change.run(self.change_as(caller, app_id, Requires::Right(ApplicationRight::Delete), delete)).await
    }

    /// Restores a deleted application, which then counts against the caller's limit.
    pub(crate) async fn restore_application(&self, caller: &Caller, app_id: &AppId) -> Result<()> {
        let user_id = caller.user()?;
        self.check_room::<Application>(&user_id).await?;
        let restore = |application: &mut Application, _: &ApplicationRights| {
            application.deleted = None;
            Ok(())
        };
        let restored = async {
            let requires = Requires::RightEvenIfDeleted(ApplicationRight::Delete);
            self.change_as(caller, app_id, requires, restore).await?;
            self.list_made::<Application>(&user_id, app_id).await
        };
        let change = self.audit.change("application restored", caller, app_id)?;
        change.run(restored).await
    }

    /// The new application with its EUIs still in `claiming`.
    async fn first_version(&self, creator: &UserId, new: &NewApplication) -> Result<Application> {
        let all = all_rights::<Application>();
        let mut application = Application {
            id: new.id.clone(),
            name: new.name.clone(),
            created: self.clock.now(),
            deleted: None,
            owner: Some(creator.clone()),
            euis: Vec::new(),
            claiming: new.euis.clone(),
            collaborators: BTreeMap::from([(creator.clone(), all.clone())]),
            access_keys: Vec::new(),
        };
        for eui in &new.euis {
            self.check_free(*eui, &new.id).await?;
        }
        if new.euis.is_empty() {
            application.claiming.push(self.free_eui().await?);
        }
        for key in &new.access_keys {
            self.add_key(&mut application, key, &all)?;
        }
        let default = access_key::default_key();
        if new.access_keys.iter().all(|key| key.name != default.name) {
            self.add_key(&mut application, &default, &all)?;
        }
        Ok(application)
    }

    /// Completes the claims of the first EUIs. A drawn EUI that is lost to another application is replaced.
    async fn first_euis(&self, application: &Application, drawn: bool) -> Result<()> {
        for eui in &application.claiming {
            match self.finish_claim(&application.id, *eui).await {
                Err(Error::EuiTaken(_)) if drawn => self.draw_eui(&application.id).await.map(drop)?,
                other => other?,
            }
        }
        Ok(())
    }
}

fn check_new(new: &NewApplication) -> Result<()> {
    if RESERVED.contains(&new.id.as_str()) {
        return Err(Error::Invalid { what: "AppID", must: "must not be `token`, which is a path of the API" });
    }
    check_name(&new.name)?;
    eui::check_list(&new.euis)?;
    access_key::check_list(&new.access_keys)
}

pub(crate) fn check_name(name: &str) -> Result<()> {
    if types::is_line(name, 0..=NAME_CHARACTERS_MAX) {
        Ok(())
    } else {
        Err(Error::Invalid { what: "name", must: "must have at most 200 characters and no control characters" })
    }
}
