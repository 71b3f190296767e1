//! The webhooks of an application: the health of each, and a form for a new one.

pub(super) mod change;
pub(super) mod delivered;
mod form;
mod recent;
pub(super) mod webhook;

use api::rest::handler::Webhook;
use askama::Template;
use axum::{
    extract::Query,
    response::{IntoResponse, Redirect, Response},
};
use client::{handler::Page as Part, webhooks::WebhookClient};
use futures::future::join_all;
use types::{Kind, Kinded, Timestamp, WebhookId};

use self::form::WebhookForm;
use super::{
    failure::{Failure, Problem, log},
    page::{Frame, Page, Time, short},
    viewer::{InApplication, Sent},
};
use crate::{
    Error, Result,
    form::{
        drafts::Fields,
        webhook::template::{TEMPLATES, WebhookTemplate},
    },
};

#[derive(Template)]
#[template(path = "webhooks.html")]
pub(super) struct List {
    frame: Frame,
    app_id: String,
    tab: &'static str,
    rows: Vec<Row>,
    form: WebhookForm,
    /// The template that was chosen, if any.
    template: Option<WebhookTemplate>,
    problem: Option<Problem>,
    /// True if the form is a draft that was sent when the login had expired or a service was away.
    is_draft: bool,
}

/// A webhook, with the state of its messages.
struct Row {
    webhook: Webhook,
    /// Since when nothing gets through, and the last answer.
    failing: Option<LastFailure>,
    failed: Failed,
}

/// The messages that a webhook did not take.
#[derive(Default)]
struct Failed {
    total: usize,
    has_delivered: bool,
    last: Option<LastFailure>,
    /// The reason why nothing is known about them.
    problem: Option<Problem>,
}

/// When something failed, and why.
struct LastFailure {
    time: Time,
    reason: String,
}

impl List {
    fn templates(&self) -> [WebhookTemplate; TEMPLATES.len()] {
        TEMPLATES
    }

    fn is_chosen(&self, template: &WebhookTemplate) -> bool {
        self.template.as_ref() == Some(template)
    }
}

pub(super) async fn list(request: InApplication, Query(fields): Query<Fields>) -> Result<Page<List>, Failure> {
    let template = WebhookTemplate::named(Sent(fields).value("template"));
    let mut page = page(&request, template.map(WebhookForm::from).unwrap_or_default(), None).await?;
    page.template_mut().template = template;
    Ok(page)
}

/// Creates a webhook. Whether one with this id is there already is checked just before.
pub(super) async fn create(request: InApplication, sent: Sent) -> Result<Response, Failure> {
    let form = WebhookForm::of(&sent);
    match try_create(&request, &form).await {
        Ok(id) => Ok(Redirect::to(&format!("{}/webhooks/{id}?done=created", request.path())).into_response()),
        Err(error) if matches!(error.kind(), Kind::Unauthenticated | Kind::Unavailable | Kind::Timeout) => {
            // The form is kept as a draft.
            Err(error.into())
        }
        Err(error) => {
            let status = server::status::http(error.kind());
            Ok(page(&request, form, Some(Problem::of(&error))).await?.with_status(status).into_response())
        }
    }
}

/// The page with a form that was sent when the login had expired, or a service was away.
pub(super) async fn draft(request: &InApplication, sent: &Sent) -> Result<Response, Failure> {
    let mut page = page(request, WebhookForm::of_draft(sent), None).await?;
    page.template_mut().is_draft = true;
    Ok(page.into_response())
}

async fn try_create(request: &InApplication, form: &WebhookForm) -> Result<WebhookId> {
    let (id, webhook) = form.webhook()?;
    let client = client(request).await?;
    if client.list().await?.iter().any(|other| other.id == id) {
        return Err(Error::WebhookExists(id));
    }
    client.set(&id, &webhook).await?;
    Ok(id)
}

async fn page(request: &InApplication, form: WebhookForm, problem: Option<Problem>) -> Result<Page<List>> {
    let client = client(request).await?;
    let webhooks = client.list().await?;
    let rows = join_all(webhooks.into_iter().map(async |webhook| {
        let failed = Failed::of(&client, &webhook.id).await;
        let failing = webhook.failing.as_ref().map(|failing| LastFailure::new(failing.since, &failing.reason));
        Row { webhook, failing, failed }
    }));
    let rows = rows.await;
    let (frame, app_id) = (request.frame.clone(), request.app_id().to_string());
    Ok(Page::new(List { frame, app_id, tab: "webhooks", rows, form, template: None, problem, is_draft: false }))
}

/// A client of the application's webhooks.
async fn client(request: &InApplication) -> Result<WebhookClient> {
    request.console.webhooks(&request.access).await?.ok_or(Error::NotServed)
}

impl Failed {
    /// Asks for the messages. The viewer may be allowed to set webhooks and not to read messages.
    async fn of(client: &WebhookClient, id: &WebhookId) -> Self {
        Self::find(client, id).await.unwrap_or_else(|error| {
            log(&error);
            Self { problem: Some(Problem::of(&error)), ..Self::default() }
        })
    }

    async fn find(client: &WebhookClient, id: &WebhookId) -> Result<Self> {
        let mut found = client.dead_letters(id, Part { limit: 1, offset: 0 }).await?;
        let total = found.total;
        if total > 1 {
            let last = u32::try_from(total - 1).unwrap_or(u32::MAX);
            found = client.dead_letters(id, Part { limit: 1, offset: last }).await?;
        }
        let last = found.dead_letters.first();
        let last = last.map(|letter| LastFailure::new(letter.failed_at, &letter.reason));
        Ok(Self { total, has_delivered: found.has_delivered, last, problem: None })
    }
}

impl LastFailure {
    fn new(time: Timestamp, reason: &str) -> Self {
        Self { time: Time(time.as_nanos()), reason: short(reason) }
    }
}

impl Row {
    /// Returns the webhook's health in a word, with the CSS class that marks it as good or bad.
    fn health(&self) -> (&'static str, &'static str) {
        match &self.failed {
            _ if self.webhook.stopped.is_some() => ("stopped", " bad"),
            _ if self.failing.is_some() => ("deliveries fail", " bad"),
            Failed { problem: Some(_), .. } => ("unknown", ""),
            Failed { total: 1.., .. } => ("did not take some", " bad"),
            Failed { has_delivered: true, .. } => ("delivers", " good"),
            _ if self.webhook.waiting > 0 => ("messages wait", ""),
            _ => ("nothing delivered yet", ""),
        }
    }
}
