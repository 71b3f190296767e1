//! Changes a webhook, unless somebody else has changed it since the form was opened.

use askama::Template;
use axum::{
    http::StatusCode,
    response::{IntoResponse, Redirect, Response},
};
use types::{Kind, Kinded};

use super::{
    client,
    webhook::{hiding, id},
};
use crate::{
    Error, Result,
    form::{
        device::Difference,
        webhook::{Base, WebhookEntry},
    },
    site::{
        device::fields::becomes_draft,
        failure::{Failure, Problem},
        page::{Frame, Page},
        viewer::{InApplication, Sent},
    },
};

/// The fields that a problem can be about: their names, for people, and in errors.
const FIELDS: [(&str, &str, &str); 4] = [
    ("url", "Address", "URL"),
    ("events", "Events", "Events"),
    ("headers", "Headers to set", "Headers"),
    ("secret", "Key that signs requests", "Secret"),
];

#[derive(Template)]
#[template(path = "webhook_change.html")]
pub(in crate::site) struct Change {
    frame: Frame,
    app_id: String,
    tab: &'static str,
    id: String,
    form: ChangeForm,
}

/// The form, with what was typed. Values of headers and the key are not in it.
#[derive(Clone, Debug, Default)]
struct ChangeForm {
    base: Base,
    url: String,
    events: String,
    headers: Vec<Header>,
    removes_secret: bool,
    problem: Option<Problem>,
    /// Changes by somebody else since the form was opened.
    differences: Vec<Difference>,
    /// True if it was sent when the login had expired or a service was away, and is here again.
    is_draft: bool,
}

/// A header that the webhook has.
#[derive(Clone, Debug)]
struct Header {
    name: String,
    is_removed: bool,
}

pub(in crate::site) async fn show(request: InApplication) -> Result<Page<Change>, Failure> {
    let webhook = client(&request).await?.get(&id(&request)?).await.map_err(hiding)?;
    let base = Base::of(webhook);
    page(&request, ChangeForm::new(WebhookEntry::untouched(&base), base)).map_err(Failure::from)
}

pub(in crate::site) async fn submit(request: InApplication, sent: Sent) -> Result<Response, Failure> {
    let (entry, base) = typed(&sent);
    match change(&request, &entry, &base).await {
        Ok(response) => Ok(response),
        Err(error) if becomes_draft(&error) => Err(error.into()),
        Err(error) => {
            let status = server::status::http(error.kind());
            let form = ChangeForm { problem: Some(Problem::of(&error)), ..ChangeForm::new(entry, base) };
            Ok(page(&request, form)?.with_status(status).into_response())
        }
    }
}

/// The page with a form that was sent when the login had expired, or a service was away.
pub(in crate::site) fn draft(request: &InApplication, sent: &Sent) -> Result<Response, Failure> {
    let (entry, base) = typed(sent);
    Ok(page(request, ChangeForm { is_draft: true, ..ChangeForm::new(entry, base) })?.into_response())
}

fn typed(sent: &Sent) -> (WebhookEntry, Base) {
    let removed = sent.values("remove_header").map(str::to_owned).collect();
    (WebhookEntry::sent(|name| sent.value(name), removed), Base::read(sent.value("base")))
}

/// The handler refuses a change of anything but what the form was opened with. Then the page shows what is there, unless
/// that is what was typed and no value is set that pages do not show.
async fn change(request: &InApplication, entry: &WebhookEntry, base: &Base) -> Result<Response> {
    let (client, id) = (client(request).await?, id(request)?);
    let saved = || Redirect::to(&format!("{}/webhooks/{id}?done=webhook-changed", request.path())).into_response();
    let Err(error) = client.update(&id, &entry.change(base)?).await else { return Ok(saved()) };
    match error.kind() {
        Kind::NotFound => Err(Error::NotFound("webhook")),
        // HTTP has the same status for both.
        Kind::Conflict | Kind::AlreadyExists => {
            let now = Base::of(client.get(&id).await.map_err(hiding)?);
            let (differences, merged) = (base.differences(&now, entry), entry.clone().merge(base, &now));
            if !differences.is_empty() {
                let form = ChangeForm { differences, ..ChangeForm::new(merged, now) };
                return Ok(page(request, form)?.with_status(StatusCode::CONFLICT).into_response());
            }
            if now == *base {
                return Err(error.into());
            }
            client.update(&id, &merged.change(&now)?).await?;
            Ok(saved())
        }
        _ => Err(error.into()),
    }
}

fn page(request: &InApplication, form: ChangeForm) -> Result<Page<Change>> {
    let (frame, app_id) = (request.frame.clone(), request.app_id().to_string());
    let id = id(request)?.to_string();
    Ok(Page::new(Change { frame, app_id, tab: "webhooks", id, form }))
}

impl ChangeForm {
    fn new(entry: WebhookEntry, base: Base) -> Self {
        let WebhookEntry { url, events, removed, removes_secret, .. } = entry;
        let header = |name: &String| Header { name: name.clone(), is_removed: removed.contains(name) };
        let headers = base.header_names.iter().map(header).collect();
        Self { base, url, events, headers, removes_secret, ..Self::default() }
    }

    fn text(&self, name: &str) -> &str {
        match name {
            "url" => &self.url,
            "events" => &self.events,
            _ => "",
        }
    }

    fn label(&self, name: &str) -> &'static str {
        FIELDS.into_iter().find(|(known, ..)| *known == name).map(|(_, label, _)| label).unwrap_or_default()
    }

    /// Returns true if values were typed that are lost.
    fn is_again(&self) -> bool {
        self.is_draft || self.problem.is_some() || !self.differences.is_empty()
    }

    /// The reason why this field was refused.
    fn problem_of(&self, name: &str) -> Option<&str> {
        let problem = self.problem.as_ref()?;
        let (.., what) = FIELDS.into_iter().find(|(known, ..)| *known == name)?;
        problem.text.contains(&format!("{what} not valid")).then_some(&problem.text)
    }

    /// The field that was refused; empty if it is none of them.
    fn refused_field(&self) -> &'static str {
        let mut names = FIELDS.into_iter().map(|(name, ..)| name);
        names.find(|name| self.problem_of(name).is_some()).unwrap_or_default()
    }
}
