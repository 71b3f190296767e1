//! History of messages over gRPC.

use api::history::{Query, Record, RecordIdentifier, RecordList, history_manager_server::HistoryManager};
use server::grpc::split;
use tonic::{Request, Response, Status};

use super::Service;
use crate::api::wire::{
    app_id,
    history::{SentQuery, list_message, record_id, whole_record_message},
};

#[tonic::async_trait]
impl HistoryManager for Service {
    async fn list_records(&self, request: Request<Query>) -> Result<Response<RecordList>, Status> {
        let (caller, message) = split(request)?;
        let app_id = app_id(&message.app_id)?;
        let page = self.operations.list_records(caller, SentQuery::from(message).into_query(app_id)?).await?;
        Ok(Response::new(list_message(page)))
    }

    async fn get_record(&self, request: Request<RecordIdentifier>) -> Result<Response<Record>, Status> {
        let (caller, RecordIdentifier { app_id: application, id }) = split(request)?;
        let record = self.operations.get_record(caller, &app_id(&application)?, record_id(&id)?).await?;
        Ok(Response::new(whole_record_message(record)))
    }
}
