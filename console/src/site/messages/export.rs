//! The messages that a filter leaves, as a file that is passed on while the handler writes it.

use axum::{
    BoxError,
    body::{Body, Bytes},
    extract::Query,
    response::Response,
};
use client::history::Export;
use futures::{TryStreamExt, stream};
use server::ledger::Charge;
use tokio_util::sync::CancellationToken;

use crate::{
    form::drafts::Fields,
    messages::history::Filter,
    site::{failure::Failure, page::csv_file, viewer::InApplication},
};

/// A file that has begun, with its place among those that are downloaded.
struct Download {
    export: Export,
    stop: CancellationToken,
    _place: Charge,
}

/// All messages that match, on this page of the list or not.
pub(in crate::site) async fn csv(request: InApplication, Query(fields): Query<Fields>) -> Result<Response, Failure> {
    let console = &request.console;
    let query = Filter::new(fields).query(request.app_id(), console.clock.now())?;
    let place = request.download()?;
    let export = console.export(&request.access, &query).await?;
    let download = Download { export, stop: console.stop.clone(), _place: place };
    let parts = stream::try_unfold(download, next).inspect_err(|error| {
        tracing::warn!(error = %error, "a download of messages was cut off");
    });
    Ok(csv_file(&format!("{}-messages.csv", request.app_id()), Body::from_stream(parts)))
}

/// The next part, and the rest of the file. A file that lacks messages ends with an error, which browsers show: it has
/// no place to say so itself.
async fn next(mut download: Download) -> Result<Option<(Bytes, Download)>, BoxError> {
    let stop = download.stop.clone();
    let part = stop.run_until_cancelled(download.export.next()).await;
    match part.ok_or("the console stops")?? {
        Some(part) => Ok(Some((part, download))),
        None => match download.export.unreadable_files() {
            None => Ok(None),
            Some(files) => Err(format!("the handler cannot read {files}").into()),
        },
    }
}
