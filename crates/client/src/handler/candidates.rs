//! Functions that a share of an application's devices tries.

use api::{
    handler::ApplicationIdentifier,
    version::{Candidate, NewCandidate, Trial, Version},
};
use types::AppId;

use super::{HandlerClient, versions::stub};
use crate::{
    Result,
    transport::{grpc::authorized, retry::Call},
};

impl HandlerClient {
    /// Gives a share of the devices other functions, as a new version.
    pub async fn create_candidate(&self, candidate: NewCandidate) -> Result<Candidate> {
        let request = || authorized(candidate.clone(), &self.credential);
        let send = |channel, request| async move { stub(channel).create_candidate(request).await };
        self.peer.call(Call::Once, request, send).await
    }

    /// Returns the version that a share of the devices has, and the results of uplinks since.
    pub async fn get_candidate(&self, app_id: &AppId) -> Result<Candidate> {
        let request = || authorized(ApplicationIdentifier { app_id: app_id.to_string() }, &self.credential);
        let send = |channel, request| async move { stub(channel).get_candidate(request).await };
        self.peer.call(Call::Repeatable, request, send).await
    }

    /// Changes its share, and when it is abandoned.
    pub async fn set_candidate(&self, trial: Trial) -> Result<Candidate> {
        let request = || authorized(trial.clone(), &self.credential);
        let send = |channel, request| async move { stub(channel).set_candidate(request).await };
        self.peer.call(Call::Repeatable, request, send).await
    }

    /// Makes it live for all devices.
    pub async fn promote_candidate(&self, app_id: &AppId) -> Result<Version> {
        let request = || authorized(ApplicationIdentifier { app_id: app_id.to_string() }, &self.credential);
        let send = |channel, request| async move { stub(channel).promote_candidate(request).await };
        self.peer.call(Call::Once, request, send).await
    }

    /// Ends it: all devices have the live version again.
    pub async fn abandon_candidate(&self, app_id: &AppId) -> Result<()> {
        let request = || authorized(ApplicationIdentifier { app_id: app_id.to_string() }, &self.credential);
        let send = |channel, request| async move { stub(channel).abandon_candidate(request).await };
        self.peer.call(Call::Once, request, send).await
    }
}
