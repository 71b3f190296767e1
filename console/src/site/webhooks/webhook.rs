//! One webhook: what it took, the messages that it did not take, a test, its end.

use api::rest::handler::{DeadLetter, Webhook};
use askama::Template;
use axum::response::{IntoResponse, Redirect, Response};
use client::handler::Page as Part;
use types::{Kind, Kinded, WebhookId};

use super::{
    client,
    delivered::{self, End},
    recent::Recent,
};
use crate::{
    Error, Result,
    site::{
        failure::{Failure, Problem, partly},
        page::{Frame, Page, Time, short, shown},
        viewer::{InApplication, Sent},
    },
};

/// Maximum number of messages on the page.
const LETTERS_MAX: u32 = 20;
/// Maximum number of bytes shown of each.
const BODY_BYTES_MAX: usize = 4096;

#[derive(Template)]
#[template(path = "webhook.html")]
pub(in crate::site) struct Show {
    frame: Frame,
    app_id: String,
    tab: &'static str,
    webhook: Webhook,
    /// The reason why the receiver did not take a sample message, if it did not.
    refused: Option<String>,
    failing: Option<FailingView>,
    /// None if the reader may not see it, or the handler does not say it.
    recent: Option<Recent>,
    letters: Vec<Letter>,
    /// Number of messages that it did not take, on all pages.
    total: usize,
    has_delivered: bool,
    problem: Option<Problem>,
}

#[derive(Template)]
#[template(path = "webhook_delete.html")]
pub(in crate::site) struct Delete {
    frame: Frame,
    app_id: String,
    tab: &'static str,
    webhook: Webhook,
}

/// Attempts of which none got through.
struct FailingView {
    since: Time,
    last: Time,
    reason: String,
}

/// A message that it did not take, in a table.
struct Letter {
    id: String,
    failed_at: Time,
    /// The parameters of the link to it; empty for none.
    message: String,
    dev_id: String,
    event: String,
    attempts: u32,
    reason: String,
    /// Its beginning, if it is long.
    body: String,
    /// Number of bytes that are left out.
    left_out: usize,
}

impl Letter {
    fn new(letter: DeadLetter) -> Self {
        let DeadLetter { id, dev_id, event, time, failed_at, attempts, reason, body } = letter;
        let message = delivered::query((&dev_id, &event), time, End::GivenUp(failed_at));
        let (failed_at, reason) = (Time(failed_at.as_nanos()), short(&reason));
        let part = beginning(body.get());
        let left_out = body.get().len() - part.len();
        Self { id, failed_at, message, dev_id, event, attempts, reason, body: shown(part), left_out }
    }
}

pub(in crate::site) async fn show(request: InApplication) -> Result<Page<Show>, Failure> {
    Ok(page(&request, None).await?)
}

/// Sends a sample message. If it is not taken, the page says why.
pub(in crate::site) async fn test(request: InApplication) -> Result<Response, Failure> {
    let answer = client(&request).await?.test(&id(&request)?).await.map_err(hiding)?;
    match answer.is_taken {
        true => Ok(done(&request, "taken")),
        false => Ok(page(&request, Some(answer.reason)).await?.into_response()),
    }
}

/// Sends messages again that it did not take: the one whose id is sent, or all.
pub(in crate::site) async fn resend(request: InApplication, sent: Sent) -> Result<Response, Failure> {
    let ids = Some(sent.value("message").to_owned()).filter(|id| !id.is_empty()).into_iter().collect();
    let resent = client(&request).await?.resend(&id(&request)?, ids).await.map_err(hiding)?;
    Ok(done(&request, if resent == 0 { "none-resent" } else { "resent" }))
}

/// Deletes the messages that it did not take.
pub(in crate::site) async fn delete_dead_letters(request: InApplication) -> Result<Response, Failure> {
    client(&request).await?.delete_dead_letters(&id(&request)?).await.map_err(hiding)?;
    Ok(done(&request, "forgotten"))
}

/// Asks whether it is to be deleted.
pub(in crate::site) async fn confirm(request: InApplication) -> Result<Page<Delete>, Failure> {
    let webhook = client(&request).await?.get(&id(&request)?).await.map_err(hiding)?;
    let (frame, app_id) = (request.frame.clone(), request.app_id().to_string());
    Ok(Page::new(Delete { frame, app_id, tab: "webhooks", webhook }))
}

pub(in crate::site) async fn delete(request: InApplication) -> Result<Redirect, Failure> {
    client(&request).await?.delete(&id(&request)?).await.map_err(hiding)?;
    Ok(Redirect::to(&format!("{}/webhooks?done=deleted", request.path())))
}

async fn page(request: &InApplication, refused: Option<String>) -> Result<Page<Show>> {
    let (client, id) = (client(request).await?, id(request)?);
    let webhook = client.get(&id).await.map_err(hiding)?;
    // Who may set webhooks need not be able to read messages.
    let part = Part { limit: LETTERS_MAX, offset: 0 };
    let (found, problem) = partly(client.dead_letters(&id, part).await.map_err(Error::from))?;
    let (total, has_delivered) = found.as_ref().map(|found| (found.total, found.has_delivered)).unwrap_or_default();
    let letters = found.into_iter().flat_map(|found| found.dead_letters).map(Letter::new).collect();
    // The same right is needed.
    let recent = if problem.is_none() { optional(Recent::of(&client, &id).await)? } else { None };
    let failing = webhook.failing.as_ref().map(|failing| FailingView {
        since: Time(failing.since.as_nanos()),
        last: Time(failing.last.as_nanos()),
        reason: short(&failing.reason),
    });
    Ok(Page::new(Show {
        frame: request.frame.clone(),
        app_id: request.app_id().to_string(),
        tab: "webhooks",
        webhook,
        refused,
        failing,
        recent,
        letters,
        total,
        has_delivered,
        problem,
    }))
}

/// Lets the page go on without what a handler of another version does not know.
fn optional<T>(result: Result<T>) -> Result<Option<T>> {
    match result {
        Err(error) if error.kind() == Kind::NotFound => Ok(None),
        result => Ok(partly(result)?.0),
    }
}

/// As much of a body as is shown.
fn beginning(body: &str) -> &str {
    &body[..body.floor_char_boundary(BODY_BYTES_MAX)]
}

pub(super) fn id(request: &InApplication) -> Result<WebhookId> {
    request.parameter("webhook_id").parse().map_err(|_| Error::NotFound("webhook"))
}

pub(super) fn hiding(error: client::Error) -> Error {
    Error::hiding("webhook", error)
}

fn done(request: &InApplication, notice: &str) -> Response {
    let path = format!("{}/webhooks/{}?done={notice}", request.path(), request.parameter("webhook_id"));
    Redirect::to(&path).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_body_is_cut_between_characters() {
        assert_eq!(beginning("{}"), "{}");
        let long = format!("a{}", "é".repeat(BODY_BYTES_MAX));
        let shown = beginning(&long);
        assert!(long.starts_with(shown) && shown.len() == BODY_BYTES_MAX - 1, "{}", shown.len());
    }
}
