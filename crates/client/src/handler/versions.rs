//! The versions of an application's payload functions.

use api::{
    handler::ApplicationIdentifier,
    version::{
        NewVersion, Version, VersionIdentifier, VersionLabel, VersionPair,
        version_manager_client::VersionManagerClient as Stub,
    },
};
use tonic::transport::Channel;
use types::AppId;

use super::HandlerClient;
use crate::{
    Result,
    transport::{
        grpc::{RESPONSE_BYTES_MAX, authorized},
        retry::Call,
    },
};

impl HandlerClient {
    /// Lists the versions that are kept, the newest first, without their functions.
    pub async fn list_versions(&self, app_id: &AppId) -> Result<Vec<Version>> {
        let request = || authorized(ApplicationIdentifier { app_id: app_id.to_string() }, &self.credential);
        let send = |channel, request| async move { stub(channel).get_versions(request).await };
        Ok(self.peer.call(Call::Repeatable, request, send).await?.versions)
    }

    /// Returns a version with its functions; zero stands for the one that is live.
    pub async fn get_version(&self, app_id: &AppId, number: u32) -> Result<Version> {
        let request = || authorized(VersionIdentifier { app_id: app_id.to_string(), number }, &self.credential);
        let send = |channel, request| async move { stub(channel).get_version(request).await };
        self.peer.call(Call::Repeatable, request, send).await
    }

    /// Returns the changes between two versions, as a unified diff; zero stands for the live one.
    pub async fn compare_versions(&self, app_id: &AppId, from: u32, to: u32) -> Result<String> {
        let request = || authorized(VersionPair { app_id: app_id.to_string(), from, to }, &self.credential);
        let send = |channel, request| async move { stub(channel).compare_versions(request).await };
        Ok(self.peer.call(Call::Repeatable, request, send).await?.diff)
    }

    /// Sets the functions of an application, and returns their version.
    pub async fn create_version(&self, version: NewVersion) -> Result<Version> {
        let request = || authorized(version.clone(), &self.credential);
        let send = |channel, request| async move { stub(channel).create_version(request).await };
        self.peer.call(Call::Once, request, send).await
    }

    /// Makes the functions of an older version live again, as a new version with this note and link.
    pub async fn restore_version(&self, version: VersionLabel) -> Result<Version> {
        let request = || authorized(version.clone(), &self.credential);
        let send = |channel, request| async move { stub(channel).restore_version(request).await };
        self.peer.call(Call::Once, request, send).await
    }

    /// Replaces the note and the link of a version.
    pub async fn label_version(&self, label: VersionLabel) -> Result<()> {
        let request = || authorized(label.clone(), &self.credential);
        let send = |channel, request| async move { stub(channel).label_version(request).await };
        self.peer.call(Call::Once, request, send).await
    }
}

pub(super) fn stub(channel: Channel) -> Stub<Channel> {
    Stub::new(channel).max_decoding_message_size(RESPONSE_BYTES_MAX)
}
