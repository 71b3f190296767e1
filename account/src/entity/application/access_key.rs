//! Access keys of applications: creating, finding, showing and deleting them.

use api::rest::account::{self as body, NewAccessKey};
use serde::{Deserialize, Serialize};
use types::{AccessKey, AppId, ApplicationRight};

use super::{Application, ApplicationRights};
use crate::{
    Account, Error, Result,
    entity::{
        access::{Caller, Requires},
        check_rights,
        stored_key::StoredKey,
    },
};

const ACCESS_KEYS_MAX: usize = 100;
const NAME_CHARACTERS_MAX: usize = 100;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct AccessKeyRecord {
    /// 24 hexadecimal digits.
    pub(crate) id: String,
    /// Unique in the application.
    pub(crate) name: String,
    pub(crate) rights: ApplicationRights,
    #[serde(flatten)]
    stored: StoredKey,
}

pub(crate) fn default_key() -> NewAccessKey {
    let rights = vec![ApplicationRight::MessagesUpRead, ApplicationRight::MessagesDownWrite];
    NewAccessKey { name: "default key".to_owned(), rights }
}

pub(crate) fn check_list(keys: &[NewAccessKey]) -> Result<()> {
    // Leaves room for the default key.
    if keys.len() >= ACCESS_KEYS_MAX {
        return Err(Error::Invalid { what: "access_keys", must: "must have at most 99 entries" });
    }
    keys.iter().try_for_each(check)
}

impl Account {
    /// Creates an access key and returns it.
    pub(crate) async fn create_key(
        &self,
        caller: &Caller,
        app_id: &AppId,
        new: &NewAccessKey,
    ) -> Result<body::AccessKey> {
        check(new)?;
        let create = |application: &mut Application, rights: &ApplicationRights| {
            self.add_key(application, new, rights)?;
            application.access_keys.last().cloned().ok_or(Error::Crypto("keep an access key"))
        };
        let change = self.audit.change("access key created", caller, &format_args!("{app_id}/{}", new.name))?;
        let created = self.change_as(caller, app_id, Requires::Right(ApplicationRight::Settings), create);
        let record = change.run(created).await?;
        self.show_key(app_id, &record, &record.rights)
    }

    pub(crate) async fn delete_key(&self, caller: &Caller, app_id: &AppId, name: &str) -> Result<()> {
        let delete = |application: &mut Application, _: &ApplicationRights| {
            let before = application.access_keys.len();
            application.access_keys.retain(|key| key.name != name);
            if application.access_keys.len() < before { Ok(()) } else { Err(no_key(name)) }
        };
        let change = self.audit.change("access key deleted", caller, &format_args!("{app_id}/{name}"))?;
        change.run(self.change_as(caller, app_id, Requires::Right(ApplicationRight::Settings), delete)).await
    }

    /// The access keys, as a caller with these rights may see them.
    pub(crate) fn show_keys(
        &self,
        application: &Application,
        rights: &ApplicationRights,
    ) -> Result<Vec<body::AccessKey>> {
        application.access_keys.iter().map(|key| self.show_key(&application.id, key, rights)).collect()
    }

    /// The access keys, if the caller's rights include seeing them.
    pub(crate) fn keys_for(
        &self,
        application: &Application,
        rights: &ApplicationRights,
    ) -> Result<Option<Vec<body::AccessKey>>> {
        rights.contains(&ApplicationRight::Settings).then(|| self.show_keys(application, rights)).transpose()
    }

    pub(crate) fn show_key_named(
        &self,
        application: &Application,
        rights: &ApplicationRights,
        name: &str,
    ) -> Result<body::AccessKey> {
        let found = application.access_keys.iter().find(|key| key.name == name).ok_or_else(|| no_key(name))?;
        self.show_key(&application.id, found, rights)
    }

    /// The record of a key that a client sent, if the application has it.
    pub(crate) fn find_key<'a>(&self, application: &'a Application, key: &AccessKey) -> Option<&'a AccessKeyRecord> {
        let hash = self.hash_of_key(&aad(&application.id), key);
        application.access_keys.iter().find(|record| record.stored.matches(&hash))
    }

    /// Adds a new key. Fails if the key would have rights that the caller lacks.
    pub(crate) fn add_key(
        &self,
        application: &mut Application,
        new: &NewAccessKey,
        rights: &ApplicationRights,
    ) -> Result<()> {
        if let Some(right) = new.rights.iter().find(|right| !rights.contains(right)) {
            return Err(Error::Escalation(right.as_str()));
        }
        if application.access_keys.iter().any(|key| key.name == new.name) {
            return Err(Error::Taken { what: "access key", id: new.name.clone() });
        }
        if application.access_keys.len() >= ACCESS_KEYS_MAX {
            return Err(Error::Full { what: "access key", count_max: ACCESS_KEYS_MAX });
        }
        application.access_keys.push(AccessKeyRecord {
            id: hex::encode(self.random.array::<12>()),
            name: new.name.clone(),
            rights: new.rights.iter().copied().collect(),
            stored: self.make_key(&aad(&application.id))?,
        });
        Ok(())
    }

    /// Omits the key itself if it has rights that the caller lacks.
    fn show_key(
        &self,
        app_id: &AppId,
        record: &AccessKeyRecord,
        rights: &ApplicationRights,
    ) -> Result<body::AccessKey> {
        let open = || self.open_key("an access key", &aad(app_id), &record.stored);
        let key = record.rights.is_subset(rights).then(open).transpose()?;
        let rights = record.rights.iter().copied().collect();
        Ok(body::AccessKey { name: record.name.clone(), key, id: Some(record.id.clone()), rights })
    }
}

fn check(new: &NewAccessKey) -> Result<()> {
    if !types::is_line(&new.name, 1..=NAME_CHARACTERS_MAX) {
        return Err(Error::Invalid {
            what: "key name",
            must: "must have 1 to 100 characters and no control characters",
        });
    }
    check_rights(&new.rights)
}

/// The associated data of sealed access keys, and the context of their HMACs.
fn aad(app_id: &AppId) -> String {
    format!("access key of {app_id}")
}

fn no_key(name: &str) -> Error {
    Error::NotFound { what: "access key", id: name.to_owned() }
}
