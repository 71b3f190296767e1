//! Stored messages of an application.

use api::history::{Query, Record, RecordIdentifier, RecordList, history_manager_client::HistoryManagerClient as Stub};
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
    /// Lists records, the newest first.
    pub async fn list_records(&self, query: Query) -> Result<RecordList> {
        let request = || authorized(query.clone(), &self.credential);
        let send = |channel, request| async move { stub(channel).list_records(request).await };
        self.peer.call(Call::Repeatable, request, send).await
    }

    /// Returns a record.
    pub async fn get_record(&self, app_id: &AppId, id: &str) -> Result<Record> {
        let message = || RecordIdentifier { app_id: app_id.to_string(), id: id.to_owned() };
        let request = || authorized(message(), &self.credential);
        let send = |channel, request| async move { stub(channel).get_record(request).await };
        self.peer.call(Call::Repeatable, request, send).await
    }
}

fn stub(channel: Channel) -> Stub<Channel> {
    Stub::new(channel).max_decoding_message_size(RESPONSE_BYTES_MAX)
}
