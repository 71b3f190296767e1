//! Forms that were sent when the login had expired, or a service was away: kept until the user is back.

use std::sync::Arc;

use axum::{
    body::{Body, to_bytes},
    extract::{FromRequest, FromRequestParts, Path, Request, State},
    http::Uri,
    middleware::Next,
    response::{IntoResponse, Redirect, Response},
};

use types::{Kind, Kinded};

use super::{InApplication, MaybeViewer, Operator, Sent, Viewer, login};
use crate::{
    Console, Error, Result,
    session::Session,
    site::{
        FORM_BYTES_MAX, bridges,
        device::{change, downlinks, uplinks},
        devices::{import, many, new},
        failure::Failure,
        functions, silence, webhooks,
    },
};

/// Fields of webhooks, devices and networks that are not kept: they are secret.
const SECRET: [&str; 8] = ["headers", "secret", "app_key", "nwk_s_key", "app_s_key", "devices", "api_key", "password"];
/// The path of the form of a network, which is for operators.
const NETWORK: &str = "/console/bridges/new";

/// The id of the draft that a form became which a service that is away could not take.
#[derive(Clone)]
pub(in crate::site) struct DraftId(pub(in crate::site) String);

/// Keeps a form of which nothing came: that of a user whose session has expired, who is sent to the login, and that which
/// a service that is away did not take, for the page that says so.
pub(in crate::site) async fn keep_drafts(
    State(console): State<Console>,
    request: Request,
    next: Next,
) -> Result<Response, Failure> {
    let is_network = request.uri().path() == NETWORK;
    if request.method().is_safe() || (!is_network && parts(request.uri().path()).is_none()) {
        return Ok(next.run(request).await);
    }
    let (mut head, body) = request.into_parts();
    let Ok(viewer) = MaybeViewer::from_request_parts(&mut head, &console).await;
    let body = to_bytes(body, FORM_BYTES_MAX).await.map_err(|error| Error::Form(error.to_string()))?;
    let form = Request::from_parts(head.clone(), Body::from(body.clone()));
    if let Some(session) = viewer.expired().filter(|session| !is_network || console.has_operator(&session.user_id)) {
        let id = keep(&console, session, form).await?;
        return Ok(Redirect::to(&login::path(&path(&id))).into_response());
    }
    let mut response = next.run(Request::from_parts(head, Body::from(body))).await;
    if let (true, Some(session)) = (is_away(&response), viewer.current())
        && let Ok(id) = keep(&console, session, form).await
    {
        response.extensions_mut().insert(DraftId(id));
    }
    Ok(response)
}

async fn keep(console: &Console, session: &Session, form: Request) -> Result<String, Failure> {
    let sent = form.uri().path().to_owned();
    let Sent(mut fields) = Sent::from_request(form, console).await?;
    fields.retain(|field| !is_secret(&sent, field));
    Ok(console.drafts.keep(&session.user_id, (sent, fields), console.clock.now(), console.random.as_ref()))
}

fn is_secret(path: &str, (name, value): &(String, String)) -> bool {
    // A URL that is refused for its password has it nevertheless.
    let has_password = path == NETWORK && name.ends_with("_url") && value.contains('@');
    // Where nothing was typed, the form need not ask for it again.
    has_password || (SECRET.contains(&name.as_str()) && !value.is_empty())
}

fn is_away(response: &Response) -> bool {
    let error = response.extensions().get::<Arc<Error>>();
    error.is_some_and(|error| matches!(error.kind(), Kind::Unavailable | Kind::Timeout))
}

/// The path at which a draft is shown.
pub(in crate::site) fn path(id: &str) -> String {
    format!("/console/drafts/{id}")
}

/// Shows the form again, as it was sent.
pub(in crate::site) async fn show(
    State(console): State<Console>,
    viewer: Viewer,
    Path(id): Path<String>,
) -> Result<Response, Failure> {
    let found = console.drafts.find(&id, &viewer.session.user_id, console.clock.now());
    let (path, fields) = found.ok_or(Error::NotFound("draft"))?;
    if path == NETWORK {
        let operator = Operator::of(&console, viewer).await?;
        return Ok(bridges::new::draft(operator, &Sent(fields)).await.into_response());
    }
    let (app_id, rest) = parts(&path).ok_or(Error::NotFound("draft"))?;
    let access = console.access(&viewer.session, app_id.parse()?).await?;
    let request = InApplication::of_draft(console.clone(), (viewer, access), rest);
    match rest {
        "webhooks" => webhooks::draft(&request, &Sent(fields)).await,
        "silence" => Ok(silence::draft(&request, &Sent(fields))),
        "functions" => functions::draft(&request, &Sent(fields)).await,
        "functions/candidate" => functions::candidate::draft(&request, &Sent(fields)).await,
        "functions/correction" => Ok(functions::correction::draft(&request, &Sent(fields))),
        "import-devices" => import::draft(&request, &Sent(fields)).await,
        "change-devices" => many::draft(&request, &Sent(fields)),
        "delete-devices" => many::delete::draft(&request, &Sent(fields)),
        "move-devices" => many::moves::draft(&request, &Sent(fields)).await,
        "new-device" => Ok(new::draft(&request, &Sent(fields))),
        rest if rest.starts_with("devices/") && rest.ends_with("/change") => change::draft(&request, &Sent(fields)),
        rest if rest.starts_with("webhooks/") && rest.ends_with("/change") => {
            webhooks::change::draft(&request, &Sent(fields))
        }
        rest if rest.ends_with("/downlinks") => downlinks::draft(&request, &Sent(fields)).await,
        rest if rest.ends_with("/uplinks") => uplinks::draft(&request, &Sent(fields)).await,
        // Other forms have nothing that was typed.
        _ => Ok(Redirect::to(&request.path()).into_response()),
    }
}

/// The application and the rest of a path below it.
fn parts(path: &str) -> Option<(&str, &str)> {
    let path: &str = path.split('?').next()?;
    path.parse::<Uri>().ok()?;
    path.strip_prefix("/console/applications/")?.split_once('/')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_not_kept_also_in_a_url() {
        let is_secret = |name: &str, value: &str| is_secret(NETWORK, &(name.to_owned(), value.to_owned()));
        assert!(is_secret("api_key", "key") && is_secret("mqtt_url", "mqtt://me:word@host"));
        assert!(!is_secret("api_key", ""), "nobody has typed it");
        assert!(!is_secret("mqtt_url", "mqtt://host") && !is_secret("application", "app1@tenant1"));
    }
}
