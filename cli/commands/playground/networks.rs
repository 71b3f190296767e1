//! Judges a codec for networks, and ports it: the one part of the page that runs here, because the parser of scripts is
//! not compiled for browsers.

mod error;
mod submitted;

use std::{convert::Infallible, slice, sync::Arc, time::Duration};

use axum::{
    Json, Router,
    extract::{DefaultBodyLimit, Request, State},
    http::{HeaderName, header},
    middleware::{Next, from_fn},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use runtime::{Engine, Settings};
use serde::{Deserialize, Serialize};
use serde_json::json;
use server::site::{Origin, origin};
use similar::TextDiff;
use tokio::{
    sync::{OnceCell, Semaphore},
    task::spawn_blocking,
};
use workbench::{Codec, Finding, Ported, Target, Verdict};

use self::{error::Error, submitted::Submitted};

/// Maximum length of a request, in bytes: a source of the largest size, each of whose characters JSON may escape.
const BODY_BYTES_MAX: usize = 2 << 20;
/// Maximum number of codecs that are judged at a time. A message ends by the limits of the sandbox.
const RUNNING_MAX: usize = 2;
/// After this time, the rest of a difference is shown as replaced.
const DIFF_TIME_MAX: Duration = Duration::from_millis(200);
/// Maximum size of a difference, in bytes.
const DIFF_BYTES_MAX: usize = 256 << 10;
/// In place of a longer one, which one line of a minified source can make. It begins with the names of both texts, too.
const DIFF_TOO_LONG: &str = "--- as typed\n+++ ported\n\\ The difference is too long to be shown\n";

/// The headers of answers, which are about what somebody types.
const HEADERS: [(HeaderName, &str); 2] =
    [(header::CACHE_CONTROL, "no-store"), (header::X_CONTENT_TYPE_OPTIONS, "nosniff")];

/// The networks, and what is asked about them.
pub(super) fn router(settings: &Settings) -> Router {
    Router::new()
        .route("/networks.json", get(networks))
        .route("/lint", post(lint))
        .route("/port", post(port))
        .route_layer(from_fn(refuse_other_sites))
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
        .with_state(Arc::new(Judge::new(settings)))
}

/// Keeps pages of other sites from using this machine.
async fn refuse_other_sites(request: Request, next: Next) -> Result<Response, Error> {
    let host = request.headers().get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let own = format!("http://{host}");
    match request.method().is_safe() || origin(request.headers(), &own) == Origin::SameSite {
        true => Ok(next.run(request).await),
        false => Err(Error::OtherSite),
    }
}

async fn networks() -> impl IntoResponse {
    let named = |target: Target| json!({"name": target.name(), "title": target.title()});
    (HEADERS, Json(Target::ALL.map(named)))
}

async fn lint(State(judge): State<Arc<Judge>>, Json(submitted): Json<Submitted>) -> Result<impl IntoResponse, Error> {
    let codec = submitted.codec()?;
    let verdicts = judge.run(move |engine| verdicts(engine, &codec)).await?;
    Ok((HEADERS, Json(json!({"verdicts": verdicts}))))
}

fn verdicts(engine: &Arc<Engine>, codec: &Codec) -> Vec<Verdict> {
    let mut verdicts = Vec::new();
    let Ok(()) = workbench::lint(engine, slice::from_ref(codec), &Target::ALL, 1, |report| {
        verdicts.clone_from(&report.verdicts);
        Ok::<(), Infallible>(())
    });
    verdicts
}

/// A codec, and the name of the network that it is for.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PortRequest {
    codec: Submitted,
    target: String,
}

/// A codec as the network takes it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct PortReply {
    /// Empty if there is none.
    text: String,
    /// The changes to the text, as a unified diff.
    diff: String,
    is_sound: bool,
    changes: Vec<String>,
    obstacles: Vec<Finding>,
    differences: Vec<Finding>,
    examples: usize,
    compared: usize,
    agreed: usize,
}

async fn port(State(judge): State<Arc<Judge>>, Json(request): Json<PortRequest>) -> Result<impl IntoResponse, Error> {
    let PortRequest { codec, target: name } = request;
    let target = Target::from_name(&name).ok_or(Error::Target(name))?;
    let codec = codec.codec()?;
    let reply = judge
        .run(move |engine| PortReply::new(&codec.script, workbench::port(engine, slice::from_ref(&codec), target)));
    Ok((HEADERS, Json(reply.await?)))
}

impl PortReply {
    fn new(before: &str, ported: Ported) -> Self {
        let is_sound = ported.is_sound();
        let diff = if ported.text.is_empty() { String::new() } else { difference(before, &ported.text) };
        let Ported { text, changes, obstacles, examples, compared, agreed, differences } = ported;
        Self { text, diff, is_sound, changes, obstacles, differences, examples, compared, agreed }
    }
}

fn difference(before: &str, after: &str) -> String {
    let compared = TextDiff::configure().timeout(DIFF_TIME_MAX).diff_lines(before, after);
    let diff = compared.unified_diff().header("as typed", "ported").to_string();
    match diff.len() > DIFF_BYTES_MAX {
        true => DIFF_TOO_LONG.to_owned(),
        false => diff,
    }
}

/// Runs what is asked, little at a time.
struct Judge {
    settings: Settings,
    /// Starts with the first request: who asks for nothing does not wait for it.
    engine: OnceCell<Arc<Engine>>,
    places: Arc<Semaphore>,
}

impl Judge {
    fn new(settings: &Settings) -> Self {
        // What is typed is kept nowhere.
        let settings = Settings { cache_bytes_max: 0, ..settings.clone() };
        Self { settings, engine: OnceCell::new(), places: Arc::new(Semaphore::new(RUNNING_MAX)) }
    }

    async fn run<T: Send + 'static>(&self, work: impl FnOnce(&Arc<Engine>) -> T + Send + 'static) -> Result<T, Error> {
        let place = Arc::clone(&self.places).try_acquire_owned().map_err(|_| Error::Busy)?;
        let engine = Arc::clone(self.engine.get_or_try_init(|| self.start()).await?);
        let working = spawn_blocking(move || {
            let result = work(&engine);
            // Not before: a client that has left does not end the work.
            drop(place);
            result
        });
        working.await.map_err(Error::Ended)
    }

    async fn start(&self) -> Result<Arc<Engine>, Error> {
        let settings = self.settings.clone();
        let engine = spawn_blocking(move || Engine::new(&settings)).await.map_err(Error::Ended)?;
        engine.map(Arc::new).map_err(Error::Sandbox)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_of_any_length_begins_with_the_names_of_both_texts() {
        let minified = "x".repeat(DIFF_BYTES_MAX);
        for (before, shown) in [("a\n", "-a\n+b\n"), (minified.as_str(), "too long")] {
            let diff = difference(before, "b\n");
            let lines = diff.strip_prefix("--- as typed\n+++ ported\n");
            assert!(lines.is_some_and(|lines| lines.contains(shown)), "{shown}");
        }
    }

    #[tokio::test]
    async fn what_is_asked_while_others_are_judged_is_refused() {
        let judge = Judge::new(&Settings::default());
        let places: Vec<_> = (0..RUNNING_MAX).map(|_| Arc::clone(&judge.places).try_acquire_owned().unwrap()).collect();
        assert!(matches!(judge.run(|_| ()).await, Err(Error::Busy)));
        drop(places);
        judge.run(|_| ()).await.unwrap();
        assert_eq!(judge.places.available_permits(), RUNNING_MAX);
    }
}
