//! Functions that a share of an application's devices tries.

use api::{
    handler::ApplicationIdentifier,
    version::{Candidate, NewCandidate, Trial, Version, version_manager_client::VersionManagerClient as Stub},
};
use types::AppId;

use super::HandlerClient;
use crate::{Result, transport::retry::Call};

impl HandlerClient {
    /// Gives a share of the devices other functions, as a new version.
    pub async fn create_candidate(&self, candidate: NewCandidate) -> Result<Candidate> {
        let send = |channel, request| async move { Stub::new(channel).create_candidate(request).await };
        self.call(Call::Once, candidate, send).await
    }

    /// Returns the version that a share of the devices has, and the results of uplinks since.
    pub async fn get_candidate(&self, app_id: &AppId) -> Result<Candidate> {
        let send = |channel, request| async move { Stub::new(channel).get_candidate(request).await };
        self.call(Call::Repeatable, ApplicationIdentifier { app_id: app_id.to_string() }, send).await
    }

    /// Changes its share, and when it is abandoned.
    pub async fn set_candidate(&self, trial: Trial) -> Result<Candidate> {
        let send = |channel, request| async move { Stub::new(channel).set_candidate(request).await };
        self.call(Call::Repeatable, trial, send).await
    }

    /// Makes it live for all devices.
    pub async fn promote_candidate(&self, app_id: &AppId) -> Result<Version> {
        let send = |channel, request| async move { Stub::new(channel).promote_candidate(request).await };
        self.call(Call::Once, ApplicationIdentifier { app_id: app_id.to_string() }, send).await
    }

    /// Ends it: all devices have the live version again.
    pub async fn abandon_candidate(&self, app_id: &AppId) -> Result<()> {
        let send = |channel, request| async move { Stub::new(channel).abandon_candidate(request).await };
        self.call(Call::Once, ApplicationIdentifier { app_id: app_id.to_string() }, send).await
    }
}
