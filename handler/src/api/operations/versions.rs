//! The versions of an application's functions. They belong to its settings.

use runtime::LimitsByName;
use server::{
    auth::{Caller, Purpose},
    usage::Usage,
};
use types::{AppId, ApplicationRight, Claims};

use super::{Operations, actor};
use crate::{
    Error,
    registry::application::{
        Application, FunctionsVersion, JoinKeyChange, ListedVersion, SentApplication, StoredVersion, VersionLabel,
        VersionOrigin,
    },
};

impl Operations {
    /// Lists the versions that are kept, the newest first.
    pub(crate) async fn list_versions(&self, caller: Caller, app_id: &AppId) -> Result<Vec<ListedVersion>, Error> {
        let usage = caller.usage.clone();
        self.access.allow(caller, app_id, &[ApplicationRight::Settings], Purpose::Read).await?;
        let versions = self.applications.versions(app_id).await?;
        usage.add_entries(versions.len());
        Ok(versions)
    }

    /// Gets a version; without a number the one that is live.
    pub(crate) async fn get_version(
        &self,
        caller: Caller,
        app_id: &AppId,
        number: Option<u32>,
    ) -> Result<StoredVersion, Error> {
        self.access.allow(caller, app_id, &[ApplicationRight::Settings], Purpose::Read).await?;
        self.applications.version(app_id, number).await
    }

    /// Compares two versions; without a number, the one that is live.
    pub(crate) async fn compare_versions(
        &self,
        caller: Caller,
        app_id: &AppId,
        (from, to): (Option<u32>, Option<u32>),
    ) -> Result<String, Error> {
        self.access.allow(caller, app_id, &[ApplicationRight::Settings], Purpose::Read).await?;
        self.applications.compare_versions(app_id, from, to).await
    }

    /// Sets the functions of an application, and returns their version. The access key for registering on join stays.
    pub(crate) async fn create_version(
        &self,
        caller: Caller,
        application: SentApplication,
        label: VersionLabel,
    ) -> Result<StoredVersion, Error> {
        let usage = caller.usage.clone();
        let app_id = application.app_id.clone();
        let claims = self.access.allow(caller, &app_id, &[ApplicationRight::Settings], Purpose::Change).await?;
        self.applications.check_registered(&app_id).await?;
        let application = application.into_application();
        needs_functions(&application)?;
        let origin = VersionOrigin { label, ..self.check_functions(&application, &usage).await? };
        self.make_live(&claims, application, origin).await
    }

    /// Makes the functions of an older version live again, as a new version. If they are live, nothing changes but a
    /// label that is given.
    pub(crate) async fn restore_version(
        &self,
        caller: Caller,
        app_id: &AppId,
        number: u32,
        label: VersionLabel,
    ) -> Result<StoredVersion, Error> {
        let usage = caller.usage.clone();
        let claims = self.access.allow(caller, app_id, &[ApplicationRight::Settings], Purpose::Change).await?;
        let StoredVersion { application, .. } = self.applications.version(app_id, Some(number)).await?;
        // Limits may have become lower since.
        let checked = self.check_functions(&application, &usage).await?;
        let origin = VersionOrigin { restores: Some(number), label, ..checked };
        self.make_live(&claims, application, origin).await
    }

    /// Replaces the note and the link of a version.
    pub(crate) async fn label_version(
        &self,
        caller: Caller,
        app_id: &AppId,
        number: u32,
        label: VersionLabel,
    ) -> Result<(), Error> {
        let claims = self.access.allow(caller, app_id, &[ApplicationRight::Settings], Purpose::Change).await?;
        let object = format!("{app_id} version {number}");
        let change = self.audit.change("version labelled", &actor(&claims), &object)?;
        change.run(self.applications.label_version(app_id, number, label)).await
    }

    async fn make_live(
        &self,
        claims: &Claims,
        application: Application,
        origin: VersionOrigin,
    ) -> Result<StoredVersion, Error> {
        let app_id = application.summary().app_id.clone();
        let set = self.set_functions(claims, application, JoinKeyChange::Keep, origin).await?;
        self.applications.version(&app_id, set.map(|version| version.number)).await
    }

    /// Checks that functions can be loaded. The version that they become has their dialect and their limits.
    pub(super) async fn check_functions(
        &self,
        application: &Application,
        usage: &Usage,
    ) -> Result<VersionOrigin, Error> {
        let dialect = self.payloads.check(application, usage).await?.map(|dialect| dialect.name().to_owned());
        let limits = match application.has_functions() {
            true => self.payloads.limits(&application.summary().app_id).by_name(),
            false => LimitsByName::new(),
        };
        Ok(VersionOrigin { dialect, limits, ..VersionOrigin::default() })
    }

    /// Sets functions that were checked, in the name of a caller that may.
    pub(super) async fn set_functions(
        &self,
        claims: &Claims,
        application: Application,
        join_key: JoinKeyChange,
        origin: VersionOrigin,
    ) -> Result<Option<FunctionsVersion>, Error> {
        let (app_id, hash) = (&application.summary().app_id, application.summary().functions_hash);
        let (event, object) = match origin.restores {
            Some(number) => ("functions restored", format!("{app_id} {hash:?}, version {number}")),
            None => ("functions set", format!("{app_id} {hash:?}")),
        };
        let change = self.audit.change(event, &actor(claims), &object)?;
        let origin = VersionOrigin { time: Some(self.clock.now()), changed_by: Some(author(claims)), ..origin };
        change.run(self.applications.set(application, join_key, origin)).await
    }
}

/// Refuses a version that would clear everything.
pub(super) fn needs_functions(application: &Application) -> Result<(), Error> {
    match application.summary().is_set_up() {
        true => Ok(()),
        false => Err(Error::invalid("Version", "it needs a function or a payload format")),
    }
}

/// Returns the author of a version, by name if the token has it.
pub(super) fn author(claims: &Claims) -> String {
    claims.username.as_ref().map_or_else(|| actor(claims), |username| format!("user {username}"))
}
