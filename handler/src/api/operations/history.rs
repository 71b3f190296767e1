//! What was kept of an application's messages.

use ::history::{Format, Page, Query, Record, RecordId};
use bytes::Bytes;
use futures::Stream;
use server::auth::{Caller, Purpose};
use types::{AppId, ApplicationRight};

use super::Operations;
use crate::Error;

impl Operations {
    /// Lists records, the newest first.
    pub(crate) async fn list_records(&self, caller: Caller, query: Query) -> Result<Page, Error> {
        let usage = caller.usage.clone();
        self.allow_history(caller, &query.app_id).await?;
        let page = self.history.query(query).await?;
        usage.add_entries(page.records.len());
        Ok(page)
    }

    /// All records that are wanted, as a file in parts.
    pub(crate) async fn export_records(
        &self,
        caller: Caller,
        query: Query,
        format: Format,
    ) -> Result<impl Stream<Item = Result<Bytes, ::history::Error>> + Send + use<>, Error> {
        self.allow_history(caller, &query.app_id).await?;
        Ok(self.history.export(query, format))
    }

    pub(crate) async fn get_record(&self, caller: Caller, app_id: &AppId, id: RecordId) -> Result<Record, Error> {
        self.allow_history(caller, app_id).await?;
        let record = self.history.get(app_id, id).await?;
        record.ok_or_else(|| Error::not_found("Record", id))
    }

    async fn allow_history(&self, caller: Caller, app_id: &AppId) -> Result<(), Error> {
        self.access.allow(caller, app_id, &[ApplicationRight::MessagesUpRead], Purpose::Read).await?;
        self.applications.check_registered(app_id).await
    }
}
