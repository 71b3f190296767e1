//! Stored messages of an application.

use api::history::{Query, Record, RecordIdentifier, RecordList, history_manager_client::HistoryManagerClient as Stub};
use types::AppId;

use super::HandlerClient;
use crate::{Result, transport::retry::Call};

impl HandlerClient {
    /// Lists records, the newest first.
    pub async fn list_records(&self, query: Query) -> Result<RecordList> {
        let send = |channel, request| async move { Stub::new(channel).list_records(request).await };
        self.call(Call::Repeatable, query, send).await
    }

    /// Returns a record.
    pub async fn get_record(&self, app_id: &AppId, id: &str) -> Result<Record> {
        let message = RecordIdentifier { app_id: app_id.to_string(), id: id.to_owned() };
        let send = |channel, request| async move { Stub::new(channel).get_record(request).await };
        self.call(Call::Repeatable, message, send).await
    }
}
