//! The versions of an application's payload functions.

use api::{
    handler::ApplicationIdentifier,
    version::{
        NewVersion, Version, VersionIdentifier, VersionLabel, VersionPair,
        version_manager_client::VersionManagerClient as Stub,
    },
};
use types::AppId;

use super::HandlerClient;
use crate::{Result, transport::retry::Call};

impl HandlerClient {
    /// Lists the versions that are kept, the newest first, without their functions.
    pub async fn list_versions(&self, app_id: &AppId) -> Result<Vec<Version>> {
        let send = |channel, request| async move { Stub::new(channel).get_versions(request).await };
        Ok(self.call(Call::Repeatable, ApplicationIdentifier { app_id: app_id.to_string() }, send).await?.versions)
    }

    /// Returns a version with its functions; zero stands for the one that is live.
    pub async fn get_version(&self, app_id: &AppId, number: u32) -> Result<Version> {
        let send = |channel, request| async move { Stub::new(channel).get_version(request).await };
        self.call(Call::Repeatable, VersionIdentifier { app_id: app_id.to_string(), number }, send).await
    }

    /// Returns the changes between two versions, as a unified diff; zero stands for the live one.
    pub async fn compare_versions(&self, app_id: &AppId, from: u32, to: u32) -> Result<String> {
        let send = |channel, request| async move { Stub::new(channel).compare_versions(request).await };
        Ok(self.call(Call::Repeatable, VersionPair { app_id: app_id.to_string(), from, to }, send).await?.diff)
    }

    /// Sets the functions of an application, and returns their version.
    pub async fn create_version(&self, version: NewVersion) -> Result<Version> {
        let send = |channel, request| async move { Stub::new(channel).create_version(request).await };
        self.call(Call::Once, version, send).await
    }

    /// Makes the functions of an older version live again, as a new version with this note and link.
    pub async fn restore_version(&self, version: VersionLabel) -> Result<Version> {
        let send = |channel, request| async move { Stub::new(channel).restore_version(request).await };
        self.call(Call::Once, version, send).await
    }

    /// Replaces the note and the link of a version.
    pub async fn label_version(&self, label: VersionLabel) -> Result<()> {
        let send = |channel, request| async move { Stub::new(channel).label_version(request).await };
        self.call(Call::Once, label, send).await
    }
}
