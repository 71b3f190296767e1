//! The versions of payload functions over gRPC.

use api::{
    handler::ApplicationIdentifier,
    version::{
        Candidate, NewCandidate, NewVersion, Trial, Version, VersionComparison, VersionIdentifier, VersionLabel,
        VersionList, VersionPair, version_manager_server::VersionManager,
    },
};
use server::grpc::split;
use tonic::{Request, Response, Status};

use super::Service;
use crate::{
    api::wire::{app_id, candidate, version},
    registry::application,
};

#[tonic::async_trait]
impl VersionManager for Service {
    async fn get_versions(&self, request: Request<ApplicationIdentifier>) -> Result<Response<VersionList>, Status> {
        let (caller, message) = split(request)?;
        let versions = self.operations.list_versions(caller, &app_id(&message.app_id)?).await?;
        Ok(Response::new(version::list_message(versions)))
    }

    async fn get_version(&self, request: Request<VersionIdentifier>) -> Result<Response<Version>, Status> {
        let (caller, VersionIdentifier { app_id: id, number }) = split(request)?;
        let stored = self.operations.get_version(caller, &app_id(&id)?, version::number(number)).await?;
        Ok(Response::new(version::stored_message(stored)))
    }

    async fn compare_versions(&self, request: Request<VersionPair>) -> Result<Response<VersionComparison>, Status> {
        let (caller, VersionPair { app_id: id, from, to }) = split(request)?;
        let pair = (version::number(from), version::number(to));
        let diff = self.operations.compare_versions(caller, &app_id(&id)?, pair).await?;
        Ok(Response::new(VersionComparison { diff }))
    }

    async fn create_version(&self, request: Request<NewVersion>) -> Result<Response<Version>, Status> {
        let (caller, message) = split(request)?;
        let (application, label) = version::new_version_of(message)?;
        let created = self.operations.create_version(caller, application, label).await?;
        Ok(Response::new(version::stored_message(created)))
    }

    async fn restore_version(&self, request: Request<VersionLabel>) -> Result<Response<Version>, Status> {
        let (caller, VersionLabel { app_id: id, number, note, link }) = split(request)?;
        let label = application::VersionLabel::new(note, link)?;
        let restored = self.operations.restore_version(caller, &app_id(&id)?, number, label).await?;
        Ok(Response::new(version::stored_message(restored)))
    }

    async fn label_version(&self, request: Request<VersionLabel>) -> Result<Response<()>, Status> {
        let (caller, VersionLabel { app_id: id, number, note, link }) = split(request)?;
        let label = application::VersionLabel::new(note, link)?;
        self.operations.label_version(caller, &app_id(&id)?, number, label).await?;
        Ok(Response::new(()))
    }

    async fn create_candidate(&self, request: Request<NewCandidate>) -> Result<Response<Candidate>, Status> {
        let (caller, message) = split(request)?;
        let new = candidate::new_candidate_of(message)?;
        let app_id = new.0.app_id.to_string();
        let state = self.operations.start_candidate(caller, new).await?;
        Ok(Response::new(candidate::state_message(app_id, &state)))
    }

    async fn get_candidate(&self, request: Request<ApplicationIdentifier>) -> Result<Response<Candidate>, Status> {
        let (caller, ApplicationIdentifier { app_id: id }) = split(request)?;
        let state = self.operations.get_candidate(caller, &app_id(&id)?).await?;
        Ok(Response::new(candidate::state_message(id, &state)))
    }

    async fn set_candidate(&self, request: Request<Trial>) -> Result<Response<Candidate>, Status> {
        let (caller, message) = split(request)?;
        let trial = candidate::trial_of(&message)?;
        let state = self.operations.set_trial(caller, &app_id(&message.app_id)?, trial).await?;
        Ok(Response::new(candidate::state_message(message.app_id, &state)))
    }

    async fn promote_candidate(&self, request: Request<ApplicationIdentifier>) -> Result<Response<Version>, Status> {
        let (caller, message) = split(request)?;
        let promoted = self.operations.promote_candidate(caller, &app_id(&message.app_id)?).await?;
        Ok(Response::new(version::stored_message(promoted)))
    }

    async fn abandon_candidate(&self, request: Request<ApplicationIdentifier>) -> Result<Response<()>, Status> {
        let (caller, message) = split(request)?;
        self.operations.abandon_candidate(caller, &app_id(&message.app_id)?).await?;
        Ok(Response::new(()))
    }
}
