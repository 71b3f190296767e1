//! Applications: the document that says everything about one, and creating, changing and listing them.

use std::collections::{BTreeMap, BTreeSet};

use api::rest::account::NewApplication;
use serde::{Deserialize, Serialize};
use store::{Key, Tag};
use types::{AppEui, AppId, ApplicationRight, Timestamp, UserId};

use crate::{
    Account, Error, Result,
    access::{Caller, Need},
    access_key::{self, AccessKeyRecord},
    audit,
    document::Stored,
    eui,
    user::user_tag,
};

/// The most characters of a name.
const NAME_CHARACTERS_MAX: usize = 200;
/// The most applications that one user collaborates on.
const APPLICATIONS_MAX: usize = 1000;
/// How often a change is tried again when others change the same application.
const TRIES_MAX: usize = 200;
/// Ids that are paths of the API.
const RESERVED: [&str; 1] = ["token"];

/// What somebody may do to an application.
pub(crate) type Rights = BTreeSet<ApplicationRight>;

/// An application with everything that belongs to it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Application {
    pub(crate) id: AppId,
    pub(crate) name: String,
    pub(crate) created: Timestamp,
    pub(crate) deleted: Option<Timestamp>,
    /// In the order in which they were added.
    pub(crate) euis: Vec<AppEui>,
    /// EUIs that are on their way into `euis`.
    pub(crate) claiming: Vec<AppEui>,
    pub(crate) collaborators: BTreeMap<UserId, Rights>,
    /// In the order in which they were added.
    pub(crate) access_keys: Vec<AccessKeyRecord>,
}

impl Account {
    /// Creates an application. Its creator may do everything, and it has an EUI and a `default key` at once.
    pub(crate) async fn create_application(&self, creator: &UserId, new: NewApplication) -> Result<Application> {
        check_new(&new)?;
        self.check_room(creator).await?;
        let application = self.first_version(creator, &new).await?;
        let key = application_key(&new.id)?;
        if !self.documents.create(&key, &application).await? {
            return self.already_there(creator, &new.id).await;
        }
        if let Err(error) = self.first_euis(&application, new.euis.is_empty()).await {
            self.take_back(&key).await?;
            return Err(error);
        }
        self.add_to_index(creator, &new.id).await?;
        audit::event("application created", creator, &new.id);
        let stored = self.application(&new.id).await?;
        stored.map(|stored| stored.value).ok_or_else(|| Error::no_application(&new.id))
    }

    /// The application with this id, deleted or not.
    pub(crate) async fn application(&self, app_id: &AppId) -> Result<Option<Stored<Application>>> {
        self.documents.read(&application_key(app_id)?).await
    }

    /// The applications of a user in the order of their ids, deleted ones included.
    pub(crate) async fn applications_of(&self, user_id: &UserId) -> Result<Vec<Application>> {
        let entries = self.documents.keys(&index_prefix(user_id)?, APPLICATIONS_MAX).await?;
        let ids = entries.iter().filter_map(|key| key.path().rsplit('/').next()?.parse().ok());
        let keys = ids.map(|app_id: AppId| application_key(&app_id)).collect::<Result<Vec<_>>>()?;
        let found: Vec<Option<Stored<Application>>> = self.documents.read_all(&keys).await?;
        // The index only says where to look; the application says who collaborates on it.
        let own = found.into_iter().flatten().filter(|stored| stored.value.collaborators.contains_key(user_id));
        Ok(own.map(|stored| stored.value).collect())
    }

    /// Changes an application for a caller who can do what it needs, at the moment of the change.
    pub(crate) async fn change_as<T>(
        &self,
        caller: &Caller,
        app_id: &AppId,
        need: Need,
        change: impl Fn(&mut Application, &Rights) -> Result<T>,
    ) -> Result<T> {
        for _ in 0..TRIES_MAX {
            let mut access = self.access(caller, app_id, need.state()).await?;
            access.require(need.right())?;
            let answer = change(&mut access.application.value, &access.rights)?;
            if self.documents.replace(&access.application).await? {
                return Ok(answer);
            }
        }
        Err(Error::Contended { what: "application" })
    }

    /// Changes an application on behalf of nobody in particular: to finish what was begun.
    pub(crate) async fn change<T>(&self, app_id: &AppId, change: impl Fn(&mut Application) -> Result<T>) -> Result<T> {
        for _ in 0..TRIES_MAX {
            let found = self.application(app_id).await?;
            let mut stored = found.ok_or_else(|| Error::no_application(app_id))?;
            let answer = change(&mut stored.value)?;
            if self.documents.replace(&stored).await? {
                return Ok(answer);
            }
        }
        Err(Error::Contended { what: "application" })
    }

    /// Gives an application another name.
    pub(crate) async fn rename_application(&self, caller: &Caller, app_id: &AppId, name: &str) -> Result<()> {
        check_name(name)?;
        let rename = |application: &mut Application, _: &Rights| {
            name.clone_into(&mut application.name);
            Ok(())
        };
        self.change_as(caller, app_id, Need::Right(ApplicationRight::Settings), rename).await
    }

    /// Deletes an application; its id stays taken, and it can be restored.
    pub(crate) async fn delete_application(&self, caller: &Caller, app_id: &AppId) -> Result<()> {
        let now = self.clock.now();
        let delete = |application: &mut Application, _: &Rights| {
            application.deleted = Some(now);
            Ok(())
        };
        self.change_as(caller, app_id, Need::Right(ApplicationRight::Delete), delete).await?;
        audit::event("application deleted", caller, app_id);
        Ok(())
    }

    /// Takes the deletion back.
    pub(crate) async fn restore_application(&self, caller: &Caller, app_id: &AppId) -> Result<()> {
        let restore = |application: &mut Application, _: &Rights| {
            application.deleted = None;
            Ok(())
        };
        self.change_as(caller, app_id, Need::Restore, restore).await?;
        audit::event("application restored", caller, app_id);
        Ok(())
    }

    /// Lists an application among those of a user.
    pub(crate) async fn add_to_index(&self, user_id: &UserId, app_id: &AppId) -> Result<()> {
        self.documents.put(&index_key(user_id, app_id)?, &()).await
    }

    /// Lists it there if it is missing: whoever wrote the application may have been stopped before the index.
    pub(crate) async fn repair_index(&self, user_id: &UserId, app_id: &AppId) -> Result<()> {
        self.documents.create(&index_key(user_id, app_id)?, &()).await.map(drop)
    }

    /// What lists an application among those of a user, if anything does.
    pub(crate) async fn index_entry(&self, user_id: &UserId, app_id: &AppId) -> Result<Option<Stored<()>>> {
        self.documents.read(&index_key(user_id, app_id)?).await
    }

    async fn check_room(&self, user_id: &UserId) -> Result<()> {
        let count = self.documents.keys(&index_prefix(user_id)?, APPLICATIONS_MAX).await?.len();
        if count < APPLICATIONS_MAX {
            Ok(())
        } else {
            Err(Error::Full { what: "application", count_max: APPLICATIONS_MAX })
        }
    }

    /// The application as it is first written: complete but for its EUIs, which it is claiming.
    async fn first_version(&self, creator: &UserId, new: &NewApplication) -> Result<Application> {
        let all: Rights = ApplicationRight::ALL.iter().copied().collect();
        let mut application = Application {
            id: new.id.clone(),
            name: new.name.clone(),
            created: self.clock.now(),
            deleted: None,
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

    /// Claims the first EUIs. One that was only drawn may be replaced by another.
    async fn first_euis(&self, application: &Application, drawn: bool) -> Result<()> {
        for eui in &application.claiming {
            match self.finish_claim(&application.id, *eui).await {
                Err(Error::EuiTaken(_)) if drawn => self.draw_eui(&application.id).await.map(drop)?,
                other => other?,
            }
        }
        Ok(())
    }

    /// Removes an application that could not be completed and that nobody has seen.
    async fn take_back(&self, key: &Key) -> Result<()> {
        match self.documents.read::<Application>(key).await? {
            Some(stored) => self.documents.delete(&stored).await.map(drop),
            None => Ok(()),
        }
    }

    /// The answer for an id that is taken. It may be the creator's own second try after a crash.
    async fn already_there(&self, creator: &UserId, app_id: &AppId) -> Result<Application> {
        let found = self.application(app_id).await?;
        if found.is_some_and(|stored| stored.value.collaborators.contains_key(creator)) {
            self.repair_index(creator, app_id).await?;
        }
        Err(Error::Taken { what: "application", id: app_id.to_string() })
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

fn check_name(name: &str) -> Result<()> {
    let short = name.chars().count() <= NAME_CHARACTERS_MAX;
    if short && !name.chars().any(char::is_control) {
        Ok(())
    } else {
        Err(Error::Invalid { what: "name", must: "must have at most 200 characters and no control characters" })
    }
}

/// Where an application is.
pub(crate) fn application_key(app_id: &AppId) -> Result<Key> {
    // The handler keeps its own part of an application under the same tag.
    Ok(Key::new(&Tag::application(app_id.as_str())?, "account")?)
}

fn index_prefix(user_id: &UserId) -> Result<Key> {
    Ok(Key::new(&user_tag(user_id)?, "application/")?)
}

fn index_key(user_id: &UserId, app_id: &AppId) -> Result<Key> {
    Ok(Key::new(&user_tag(user_id)?, &format!("application/{app_id}"))?)
}
