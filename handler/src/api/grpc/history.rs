//! History of messages over gRPC.

use ::history::ExportPart;
use api::history::{
    Chart, ChartQuery, DecodeAgain, DecodeReport, ExportQuery, FilePart, Query, Record, RecordIdentifier, RecordList,
    SendAgain, SendReport, history_manager_server::HistoryManager,
};
use futures::{
    Stream, StreamExt, TryStreamExt,
    future::ready,
    stream::{self, BoxStream},
};
use server::{grpc::split, ledger::Exceeded, serve::PartTurns, status::to_status};
use tonic::{Request, Response, Status};

use super::Service;
use crate::{
    Error,
    api::wire::{
        app_id,
        chart::{SentChart, chart_message},
        decode_again::{self, SentDecodeAgain},
        export::{export_query, file_messages},
        history::{SentQuery, list_message, record_id, whole_record_message},
        send_again::{self, SentSendAgain},
    },
};

/// Messages, and the error that ends them too early.
type Messages<T> = BoxStream<'static, Result<T, Status>>;

#[tonic::async_trait]
impl HistoryManager for Service {
    type ExportStream = Messages<FilePart>;
    type DecodeStream = Messages<DecodeReport>;
    type ReplayStream = Messages<SendReport>;

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

    async fn get_chart(&self, request: Request<ChartQuery>) -> Result<Response<Chart>, Status> {
        let (caller, message) = split(request)?;
        let app_id = app_id(&message.app_id)?;
        let query = SentChart::from(message).into_query(app_id, self.operations.clock.now())?;
        Ok(Response::new(chart_message(self.operations.chart(caller, query).await?)))
    }

    async fn export(&self, request: Request<ExportQuery>) -> Result<Response<Self::ExportStream>, Status> {
        let turns = PartTurns::in_extensions(request.extensions());
        let (caller, message) = split(request)?;
        let (query, format) = export_query(message)?;
        let parts = self.operations.export_records(caller, query, format).await?;
        let messages = parts
            .map_err(|error| Status::from(Error::from(error)))
            .and_then(move |part| ready(charged_messages(part, &turns).map_err(|exceeded| to_status(&exceeded))))
            .try_flatten();
        Ok(Response::new(messages.boxed()))
    }

    async fn decode(&self, request: Request<DecodeAgain>) -> Result<Response<Self::DecodeStream>, Status> {
        let turns = PartTurns::in_extensions(request.extensions());
        let (caller, message) = split(request)?;
        let sent = SentDecodeAgain::parse_message(message)?;
        let reports = self.operations.decode_again(caller, sent, turns).await?;
        Ok(Response::new(reports.map_ok(decode_again::report_message).map_err(Status::from).boxed()))
    }

    async fn replay(&self, request: Request<SendAgain>) -> Result<Response<Self::ReplayStream>, Status> {
        let (caller, message) = split(request)?;
        let sent = SentSendAgain::parse_message(message)?;
        let reports = self.operations.send_again(caller, sent).await?;
        Ok(Response::new(reports.map_ok(send_again::report_message).map_err(Status::from).boxed()))
    }
}

/// The messages of a part. Its owner pays for all of it until the last one is read: a client may read slowly, and the
/// server itself charges only for a message that it has got.
fn charged_messages(
    part: ExportPart,
    turns: &PartTurns,
) -> Result<impl Stream<Item = Result<FilePart, Status>> + Send + use<>, Exceeded> {
    let bytes = match &part {
        ExportPart::Bytes(bytes) => bytes.len(),
        ExportPart::Unreadable(_) => 0,
    };
    let rest = (file_messages(part), turns.charge_response(bytes)?);
    Ok(stream::unfold(rest, |(mut messages, charge)| {
        ready(messages.next().map(|message| (Ok(message), (messages, charge))))
    }))
}
