//! The payload functions of an application: shown, tried on messages of the past, and saved.

mod comparison;
pub(super) mod versions;

use api::{
    handler::Application,
    history::Query as HistoryQuery,
    version::{NewVersion, Version},
};
use askama::Template;
use axum::{
    extract::Query,
    http::StatusCode,
    response::{IntoResponse, Redirect, Response},
};
use client::handler::HandlerClient;
use types::{Kind, Kinded};

use self::comparison::ComparisonView;
use super::{
    failure::{Failure, Problem},
    page::{Frame, Page, Time, short, short_hex},
    viewer::{InApplication, Sent},
};
use crate::{
    Error, Result,
    drafts::Fields,
    trial::{self, MESSAGES_MAX, Trial, Verdict},
};

/// The payload formats, with their names for people.
const FORMATS: [(&str, &str); 5] = [
    ("custom", "Functions, whose dialect is recognized"),
    ("ts013", "Functions of TS013"),
    ("v2", "Functions of The Things Network v2"),
    ("chirpstack3", "Functions of ChirpStack 3"),
    ("cayennelpp", "Cayenne LPP"),
];

#[derive(Template)]
#[template(path = "functions.html")]
pub(super) struct Show {
    frame: Frame,
    app_id: String,
    tab: &'static str,
    form: FunctionsForm,
    state: State,
}

/// The form, with what was entered.
#[derive(Clone, Debug, Default)]
struct FunctionsForm {
    /// The version that it began with.
    base: u32,
    functions: Application,
    note: String,
    /// The device on whose messages functions are tried; empty for all.
    device: String,
}

/// What came of the form.
#[derive(Default)]
struct State {
    problem: Option<Problem>,
    conflict: Option<Conflict>,
    /// Whether it was sent when the login had expired or a service was away, and is here again.
    is_draft: bool,
    /// What the functions make of messages of the past, if they were tried.
    trials: Option<Vec<TrialRow>>,
    /// What they would change, if they were compared with those that are live.
    comparison: Option<ComparisonView>,
}

/// What functions make of a message of the past, in a table.
struct TrialRow {
    id: String,
    time: Time,
    dev_id: String,
    port: u32,
    payload: String,
    before: String,
    now: String,
    verdict: Verdict,
}

/// Somebody else saved a version since the form was opened.
struct Conflict {
    number: u32,
    changed_by: String,
    time: Time,
    note: String,
    diff: String,
}

impl Show {
    fn formats(&self) -> [(&'static str, &'static str); 5] {
        FORMATS
    }

    fn sources(&self) -> [(&'static str, &'static str, &str, &'static str); 4] {
        let Application { decoder, converter, validator, encoder, .. } = &self.form.functions;
        [
            ("decoder", "Decoder", decoder, "Turns the bytes of an uplink into fields."),
            ("converter", "Converter", converter, "Changes the fields afterwards."),
            ("validator", "Validator", validator, "Decides whether the message is published."),
            ("encoder", "Encoder", encoder, "Turns the fields of a downlink into bytes."),
        ]
    }
}

impl TrialRow {
    fn new(trial: Trial) -> Self {
        let Trial { record, now, verdict } = trial;
        let before = if record.failure.is_empty() { &record.fields } else { &record.failure };
        Self {
            before: short(before),
            time: Time(record.time),
            payload: short_hex(&record.payload),
            id: record.id,
            dev_id: record.dev_id,
            port: record.port,
            now: short(&now),
            verdict,
        }
    }
}

impl FunctionsForm {
    fn of(request: &InApplication, sent: &Sent) -> Self {
        // Browsers send each line end with two characters.
        let text = |name: &str| sent.value(name).replace("\r\n", "\n");
        let functions = Application {
            app_id: request.app_id().to_string(),
            payload_format: sent.value("payload_format").to_owned(),
            decoder: text("decoder"),
            converter: text("converter"),
            validator: text("validator"),
            encoder: text("encoder"),
            register_on_join_access_key: String::new(),
        };
        let base = sent.value("base").parse().unwrap_or_default();
        let (note, device) = (sent.value("note").trim().to_owned(), sent.value("device").trim().to_owned());
        Self { base, functions, note, device }
    }
}

pub(super) async fn show(request: InApplication, Query(fields): Query<Fields>) -> Result<Page<Show>, Failure> {
    let live = live(&request, &request.handler().await?).await?;
    let device = Sent(fields).value("device").to_owned();
    let functions = live.functions.unwrap_or_default();
    let form = FunctionsForm { base: live.number, functions, note: String::new(), device };
    Ok(page(&request, form, State::default()))
}

/// Tries the functions, or saves them.
pub(super) async fn submit(request: InApplication, sent: Sent) -> Result<Response, Failure> {
    let form = FunctionsForm::of(&request, &sent);
    let done = match sent.value("do") {
        "save" => save(&request, &form).await,
        "compare" => compare(&request, &form).await,
        _ => try_out(&request, &form).await,
    };
    match done {
        Ok(response) => Ok(response),
        Err(Error::LoggedOut) => Err(Error::LoggedOut.into()),
        // Whatever it is, nothing that was typed is lost.
        Err(error) => {
            let status = server::status::http(error.kind());
            let state = State { problem: Some(Problem::of(&error)), ..State::default() };
            Ok(page(&request, form, state).with_status(status).into_response())
        }
    }
}

/// The page with a form that was sent when the login had expired, or a service was away.
pub(super) async fn draft(request: &InApplication, sent: &Sent) -> Result<Response, Failure> {
    let state = State { is_draft: true, ..State::default() };
    Ok(page(request, FunctionsForm::of(request, sent), state).into_response())
}

async fn save(request: &InApplication, form: &FunctionsForm) -> Result<Response> {
    let handler = request.handler().await?;
    let live = live(request, &handler).await?;
    if live.number != form.base {
        return conflict(request, &handler, form, live).await;
    }
    let highest = handler.list_versions(request.app_id()).await?.into_iter().map(|version| version.number).max();
    let highest = highest.unwrap_or_default();
    let version = NewVersion { functions: Some(form.functions.clone()), note: form.note.clone(), link: String::new() };
    let saved = handler.create_version(version).await?;
    // A version that only a share of the devices had may be newer than the live one.
    let done = match saved.number.saturating_sub(highest) {
        0 => "unchanged",
        1 => "saved",
        _ => "overtaken",
    };
    Ok(Redirect::to(&format!("{}/functions?done={done}", request.path())).into_response())
}

/// Shows what somebody else changed, and what was typed. Saving again replaces it.
async fn conflict(
    request: &InApplication,
    handler: &HandlerClient,
    form: &FunctionsForm,
    live: Version,
) -> Result<Response> {
    let diff = handler.compare_versions(request.app_id(), form.base, live.number).await;
    let conflict = Conflict {
        number: live.number,
        changed_by: request.name(&live.changed_by),
        time: Time(live.time),
        note: live.note,
        // The version that the form began with may have been dropped.
        diff: diff.unwrap_or_default(),
    };
    let form = FunctionsForm { base: live.number, ..form.clone() };
    let state = State { conflict: Some(conflict), ..State::default() };
    Ok(page(request, form, state).with_status(StatusCode::CONFLICT).into_response())
}

/// Shows what would change about the last uplinks of each device.
async fn compare(request: &InApplication, form: &FunctionsForm) -> Result<Response> {
    let comparison = request.console.compare(&request.access, &form.device, form.functions.clone()).await?;
    let state = State { comparison: Some(ComparisonView::new(comparison)), ..State::default() };
    Ok(page(request, form.clone(), state).into_response())
}

async fn try_out(request: &InApplication, form: &FunctionsForm) -> Result<Response> {
    let handler = request.handler().await?;
    let query = HistoryQuery {
        app_id: request.app_id().to_string(),
        dev_id: form.device.clone(),
        kind: "up".to_owned(),
        // Corrections are beside their originals.
        limit: MESSAGES_MAX * 4,
        ..HistoryQuery::default()
    };
    let list = handler.list_records(query).await?;
    let originals = list.records.into_iter().filter(|record| record.corrects.is_empty());
    let originals = originals.take(MESSAGES_MAX as usize).collect();
    let trials = trial::run(&handler, &form.functions, originals).await?;
    let state = State { trials: Some(trials.into_iter().map(TrialRow::new).collect()), ..State::default() };
    Ok(page(request, form.clone(), state).into_response())
}

/// The version that is live. Before the first one was saved, its number is zero.
async fn live(request: &InApplication, handler: &HandlerClient) -> Result<Version> {
    match handler.get_version(request.app_id(), 0).await {
        Err(error) if error.kind() == Kind::NotFound => {
            let functions = handler.get_application(request.app_id()).await?;
            Ok(Version { functions: Some(functions), ..Version::default() })
        }
        found => found.map_err(Error::from),
    }
}

fn page(request: &InApplication, form: FunctionsForm, state: State) -> Page<Show> {
    let (frame, app_id) = (request.frame.clone(), request.app_id().to_string());
    Page::new(Show { frame, app_id, tab: "functions", form, state })
}
