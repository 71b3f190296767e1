//! The devices of an application as the file that `airlock devices export` writes, without keys, a page at a time.

use std::future::ready;

use api::{handler, rest::handler::Device};
use axum::{body::Body, response::Response};
use client::handler::{HandlerClient, Page};
use device_file::{remove_empty_keys, remove_keys, write_csv};
use futures::{StreamExt, TryStreamExt, stream};
use server::ledger::Charge;
use types::AppId;

use super::find::ASKED;
use crate::{
    Result,
    site::{
        failure::{Failure, log},
        page::csv_file,
        viewer::InApplication,
    },
};

/// The rest of a file, with its place among those that are downloaded.
struct ExportRest {
    handler: HandlerClient,
    app_id: AppId,
    offset: u32,
    _place: Charge,
}

pub(in crate::site) async fn csv(request: InApplication) -> Result<Response, Failure> {
    let (place, handler, app_id) = (request.download()?, request.handler().await?, request.app_id().clone());
    let name = format!("{app_id}-devices.csv");
    // If this fails, there is a page that says so.
    let (first, rest) = next(ExportRest { handler, app_id, offset: 0, _place: place }).await?;
    let others = stream::try_unfold(rest, |rest| async move {
        match rest {
            Some(rest) => next(rest).await.map(Some),
            None => Ok(None),
        }
    });
    let parts = stream::once(ready(Ok(first))).chain(others).inspect_err(log);
    Ok(csv_file(&name, Body::from_stream(parts)))
}

/// The lines of the next devices, and the rest of the file if there may be more.
async fn next(rest: ExportRest) -> Result<(Vec<u8>, Option<ExportRest>)> {
    let page = Page { limit: ASKED, offset: rest.offset };
    let devices = rest.handler.list_devices(&rest.app_id, page).await?;
    let is_last = devices.len() < ASKED as usize;
    let devices = devices.into_iter().map(without_keys).collect::<Result<Vec<_>>>()?;
    let mut lines = Vec::new();
    write_csv(&mut lines, devices.iter(), false)?;
    if rest.offset > 0 {
        // The names of the columns are there already.
        let names = lines.iter().position(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        lines.drain(..names);
    }
    let offset = rest.offset.saturating_add(ASKED);
    Ok((lines, (!is_last).then_some(ExportRest { offset, ..rest })))
}

fn without_keys(device: handler::Device) -> Result<Device> {
    let mut device = Device::try_from(device)?;
    if let Some(lorawan) = &mut device.lorawan_device {
        remove_keys(lorawan);
        remove_empty_keys(lorawan);
    }
    Ok(device)
}
