//! Deletes many devices, after somebody has typed how many.

use api::rest::handler::Device;
use askama::Template;
use axum::response::{IntoResponse, Response};
use client::handler::HandlerClient;
use futures::{StreamExt, stream};
use types::{DevId, Kind, Kinded};

use super::{Many, deleted, not_done};
use crate::{
    Error, Result,
    form::device::read,
    site::{
        device::fields::becomes_draft,
        devices::steps::{End, Outcome, PARALLEL, may_be_done},
        failure::{Failure, Problem},
        page::{Frame, Page},
        viewer::{InApplication, Sent},
    },
};

#[derive(Template)]
#[template(path = "devices_delete.html")]
struct Delete {
    frame: Frame,
    app_id: String,
    tab: &'static str,
    chosen: Many,
    problem: Option<Problem>,
    /// True if it was sent when the login had expired or a service was away.
    is_draft: bool,
}

/// Asks, and deletes once the number of devices is typed.
pub(in crate::site) async fn submit(request: InApplication, sent: Sent) -> Result<Response, Failure> {
    let chosen = Many::named(&sent)?;
    if sent.value("step") != "delete" {
        return Ok(page(&request, chosen, None).into_response());
    }
    match delete_typed(&request, &chosen, sent.value("count").trim()).await {
        Ok(response) => Ok(response),
        Err(error) if becomes_draft(&error) || error.kind() == Kind::NotFound => Err(error.into()),
        Err(error) => {
            let status = server::status::http(error.kind());
            Ok(page(&request, chosen, Some(Problem::of(&error))).with_status(status).into_response())
        }
    }
}

/// The page with a form that was sent when the login had expired, or a service was away.
pub(in crate::site) fn draft(request: &InApplication, sent: &Sent) -> Result<Response, Failure> {
    let mut page = page(request, Many::named(sent)?, None);
    page.template_mut().is_draft = true;
    Ok(page.into_response())
}

async fn delete_typed(request: &InApplication, chosen: &Many, typed: &str) -> Result<Response> {
    if typed.parse::<usize>().ok() != Some(chosen.count()) {
        return Err(Error::Invalid { what: "Number of devices", must: format!("must be {}", chosen.count()) });
    }
    delete(request, &request.handler().await?, chosen.ids.clone()).await
}

/// Deletes devices, some at the same time.
pub(in crate::site) async fn delete(
    request: &InApplication,
    handler: &HandlerClient,
    ids: Vec<DevId>,
) -> Result<Response> {
    let end = End::soon();
    let steps = stream::iter(ids).map(|dev_id| {
        let end = &end;
        async move {
            let mut gone = None;
            let outcome = end.before(delete_one(request, handler, &dev_id, &mut gone)).await;
            ((dev_id, outcome), gone)
        }
    });
    let (outcomes, gone): (Vec<_>, Vec<_>) = steps.buffered(PARALLEL).collect::<Vec<_>>().await.into_iter().unzip();
    let count = outcomes.iter().filter(|(_, outcome)| matches!(outcome, Outcome::Done(()))).count();
    let gone: Vec<Device> = gone.into_iter().flatten().collect();
    deleted::answer(request, (count, &gone), not_done(outcomes))
}

/// Deletes a device. If it may be gone now, `gone` is what it was just before.
async fn delete_one(
    request: &InApplication,
    handler: &HandlerClient,
    dev_id: &DevId,
    gone: &mut Option<Device>,
) -> Result<()> {
    let device = read(handler, request.app_id(), dev_id).await?;
    let deleted = handler.delete_device(request.app_id(), dev_id).await;
    *gone = Some(device).filter(|_| is_gone(&deleted));
    deleted.map_err(|error| Error::hiding("device", error))
}

/// Returns true also if nobody knows, because the answer was lost or the store of the handler failed, and if a form that
/// was sent twice has deleted the device in between.
fn is_gone(deleted: &client::Result<()>) -> bool {
    match deleted {
        Ok(()) => true,
        Err(error) => error.kind() == Kind::NotFound || may_be_done(error),
    }
}

fn page(request: &InApplication, chosen: Many, problem: Option<Problem>) -> Page<Delete> {
    let (frame, app_id) = (request.frame.clone(), request.app_id().to_string());
    Page::new(Delete { frame, app_id, tab: "devices", chosen, problem, is_draft: false })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_may_be_gone_although_nobody_says_so() {
        let refused = |kind| client::Error::Refused { kind, message: String::new(), retry_after: None };
        let lost = client::Error::Timeout { service: "handler", address: String::new() };
        let all = [Ok(()), Err(lost), Err(refused(Kind::Unavailable)), Err(refused(Kind::NotFound))];
        assert_eq!(all.map(|deleted| is_gone(&deleted)), [true; 4]);
        assert_eq!([Kind::Denied, Kind::Exhausted].map(|kind| is_gone(&Err(refused(kind)))), [false; 2]);
        let (service, address, source) = ("handler", String::new(), "refused".into());
        assert!(!is_gone(&Err(client::Error::Unreachable { service, address, source })), "nothing was reached");
    }
}
