//! Access keys: created, looked up by HMAC, and shown only to users with all of the key's rights.

use api::rest::account::{self as body, NewAccessKey};
use serde::{Deserialize, Serialize};
use types::{AccessKey, AppId, ApplicationRight};

use super::{Application, Rights};
use crate::{
    Account, Error, Result, audit,
    entity::{
        self, Right,
        access::{Caller, Requires},
        stored_key::StoredKey,
    },
};

/// Maximum number of access keys per application.
const ACCESS_KEYS_MAX: usize = 100;
/// Maximum length of a key's name, in characters.
const NAME_CHARACTERS_MAX: usize = 100;

/// An access key, as stored in its application.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct AccessKeyRecord {
    /// 24 hexadecimal digits.
    pub(crate) id: String,
    /// Unique in the application.
    pub(crate) name: String,
    pub(crate) rights: Rights,
    #[serde(flatten)]
    kept: StoredKey,
}

/// The access key that every new application has.
pub(crate) fn default_key() -> NewAccessKey {
    let rights = vec![ApplicationRight::MessagesUpRead, ApplicationRight::MessagesDownWrite];
    NewAccessKey { name: "default key".to_owned(), rights }
}

/// Validates the initial access keys of an application.
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
        let create = |application: &mut Application, rights: &Rights| {
            self.add_key(application, new, rights)?;
            application.access_keys.last().cloned().ok_or(Error::Crypto("keep an access key"))
        };
        let record = self.change_as(caller, app_id, Requires::Right(ApplicationRight::Settings), create).await?;
        audit::event("access key created", caller, &format_args!("{app_id}/{}", record.name));
        self.show_key(app_id, &record, &record.rights)
    }

    /// Deletes an access key by name.
    pub(crate) async fn delete_key(&self, caller: &Caller, app_id: &AppId, name: &str) -> Result<()> {
        let delete = |application: &mut Application, _: &Rights| {
            let before = application.access_keys.len();
            application.access_keys.retain(|key| key.name != name);
            if application.access_keys.len() < before { Ok(()) } else { Err(no_key(name)) }
        };
        self.change_as(caller, app_id, Requires::Right(ApplicationRight::Settings), delete).await?;
        audit::event("access key deleted", caller, &format_args!("{app_id}/{name}"));
        Ok(())
    }

    /// Lists an application's access keys, as far as these rights allow.
    pub(crate) fn show_keys(&self, application: &Application, rights: &Rights) -> Result<Vec<body::AccessKey>> {
        application.access_keys.iter().map(|key| self.show_key(&application.id, key, rights)).collect()
    }

    /// Lists an application's access keys as part of its description; `None` if these rights do not allow it.
    pub(crate) fn keys_for(&self, application: &Application, rights: &Rights) -> Result<Option<Vec<body::AccessKey>>> {
        rights.contains(&ApplicationRight::Settings).then(|| self.show_keys(application, rights)).transpose()
    }

    /// Returns an access key by name, as far as these rights allow.
    pub(crate) fn show_key_named(
        &self,
        application: &Application,
        rights: &Rights,
        name: &str,
    ) -> Result<body::AccessKey> {
        let found = application.access_keys.iter().find(|key| key.name == name).ok_or_else(|| no_key(name))?;
        self.show_key(&application.id, found, rights)
    }

    /// Looks up the record of a key in its application.
    pub(crate) fn find_key<'a>(&self, application: &'a Application, key: &AccessKey) -> Option<&'a AccessKeyRecord> {
        let mark = self.mark_of_key(&place(&application.id), key);
        application.access_keys.iter().find(|record| record.kept.has(&mark))
    }

    /// Adds a new key to an application, limited to these rights.
    pub(crate) fn add_key(&self, application: &mut Application, new: &NewAccessKey, rights: &Rights) -> Result<()> {
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
            id: hex::encode(self.random_bytes::<12>()),
            name: new.name.clone(),
            rights: new.rights.iter().copied().collect(),
            kept: self.make_key(&place(&application.id))?,
        });
        Ok(())
    }

    /// Omits the secret unless the caller has all of the key's rights.
    fn show_key(&self, app_id: &AppId, record: &AccessKeyRecord, rights: &Rights) -> Result<body::AccessKey> {
        let open = || self.open_key("an access key", &place(app_id), &record.kept);
        let key = record.rights.is_subset(rights).then(open).transpose()?;
        let rights = record.rights.iter().copied().collect();
        Ok(body::AccessKey { name: record.name.clone(), key, id: Some(record.id.clone()), rights })
    }
}

fn check(new: &NewAccessKey) -> Result<()> {
    let characters = new.name.chars().count();
    if !(1..=NAME_CHARACTERS_MAX).contains(&characters) || new.name.chars().any(char::is_control) {
        return Err(Error::Invalid { what: "key name", must: "must have 1 to 100 characters, none of them control" });
    }
    check_rights(&new.rights)
}

/// What marks and seals of an application's keys belong to.
fn place(app_id: &AppId) -> String {
    format!("access key of {app_id}")
}

fn no_key(name: &str) -> Error {
    Error::NotFound { what: "access key", id: name.to_owned() }
}
