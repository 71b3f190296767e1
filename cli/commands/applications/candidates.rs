//! `airlock applications pf set --share`, `share`, `promote` and `abandon`: functions that a share of the devices tries.

use api::{
    handler::Application,
    version::{Candidate, NewCandidate, Results, Trial},
};
use client::handler::HandlerClient;
use types::{AppId, Kind, Kinded};

use super::{
    args::{LabelOptions, NewShare, ShareChange},
    percent::Percent,
    versions::{end, texts},
};
use crate::{
    command_context::CommandContext,
    exit::CommandError,
    output::{Cell, Record, Table},
};

/// Gives a share of the devices these functions.
pub(super) async fn start(
    (context, handler): (&CommandContext, &HandlerClient),
    functions: Application,
    label: LabelOptions,
    NewShare { share, margin, uplinks_min }: NewShare,
) -> anyhow::Result<()> {
    let (app_id, share) = (functions.app_id.clone(), share.unwrap_or(Percent(0.0)));
    let (note, link) = texts(label);
    let trial = trial(&app_id, share, margin, uplinks_min);
    let new = NewCandidate { functions: Some(functions), note, link, trial: Some(trial) };
    let version = handler.create_candidate(new).await?.version;
    context.output.message(format_args!(
        "Version {version} has a share of {share} of the devices of application {app_id}: compare it with `airlock \
         applications pf share`"
    ))
}

/// Prints the results of both versions, after a change if there is one.
pub(super) async fn share((context, app_id): (&CommandContext, &AppId), change: ShareChange) -> anyhow::Result<()> {
    let handler = context.handler_for(app_id).await?;
    let mut candidate = match handler.get_candidate(app_id).await {
        Err(error) if error.kind() == Kind::NotFound => return Err(missing(context, &handler, app_id, error).await),
        found => found?,
    };
    let ShareChange { share, margin, uplinks_min } = change;
    if share.is_some() || margin.is_some() || uplinks_min.is_some() {
        let Trial { share_percent, margin_percent, uplinks_min: uplinks, .. } = candidate.trial.unwrap_or_default();
        let share = share.unwrap_or(Percent(share_percent));
        let margin = margin.or(margin_percent.map(Percent));
        let trial = trial(app_id.as_str(), share, margin, uplinks_min.or(uplinks));
        candidate = handler.set_candidate(trial).await?;
    }
    context.output.record(record(&candidate))
}

/// The error that there is no such version; it says why the last one has ended, if the handler abandoned it.
async fn missing(
    context: &CommandContext,
    handler: &HandlerClient,
    app_id: &AppId,
    error: client::Error,
) -> anyhow::Error {
    let versions = handler.list_versions(app_id).await.unwrap_or_default();
    let newest = versions.into_iter().max_by_key(|version| version.number);
    let Some((number, abandoned)) = newest.and_then(|newest| Some((newest.number, newest.abandoned?))) else {
        return error.into();
    };
    CommandError::not_found(format!(
        "application {app_id} has no version for a share of its devices: version {number} was {}; try another one with \
         `airlock applications pf set decoder decoder.js --share 5%`",
        end(&context.output, &abandoned)
    ))
    .into()
}

/// Makes the version live for all devices.
pub(super) async fn promote(context: &CommandContext, app_id: &AppId) -> anyhow::Result<()> {
    let version = context.handler_for(app_id).await?.promote_candidate(app_id).await?.number;
    context.output.message(format_args!("Version {version} is live for all devices of application {app_id}"))
}

/// Ends it.
pub(super) async fn abandon(context: &CommandContext, app_id: &AppId) -> anyhow::Result<()> {
    let handler = context.handler_for(app_id).await?;
    let Candidate { version, live_version, .. } = handler.get_candidate(app_id).await?;
    handler.abandon_candidate(app_id).await?;
    context.output.message(format_args!(
        "Abandoned version {version}: all devices of application {app_id} have version {live_version} again"
    ))
}

fn trial(app_id: &str, Percent(share): Percent, margin: Option<Percent>, uplinks_min: Option<u32>) -> Trial {
    let margin_percent = margin.map(|Percent(margin)| margin);
    Trial { app_id: app_id.to_owned(), share_percent: share, margin_percent, uplinks_min }
}

fn record(candidate: &Candidate) -> Record {
    let Trial { share_percent, margin_percent, uplinks_min, .. } = candidate.trial.clone().unwrap_or_default();
    let results = |results: &Option<Results>| results.unwrap_or_default();
    let rows = [
        row(candidate.version, share_percent, results(&candidate.results)),
        row(candidate.live_version, 100.0 - share_percent, results(&candidate.live_results)),
    ];
    let columns = [
        ("version", "Version"),
        ("share_percent", "Devices"),
        ("uplinks", "Uplinks"),
        ("failed", "Failed"),
        ("mean_fuel", "Mean fuel"),
    ];
    let record = Record::new([
        (("margin_percent", "Abandoned beyond"), margin_percent.map(percent).into()),
        (("uplinks_min", "Least uplinks"), uplinks_min.into()),
    ]);
    record.with("versions", Table::new(columns, rows))
}

fn row(version: u32, share: f64, Results { uplinks, failed, mean_fuel }: Results) -> [Cell; 5] {
    let part = Percent(100.0 * failed as f64 / uplinks.max(1) as f64);
    [
        version.into(),
        percent(share),
        Cell::new(uplinks.to_string(), uplinks),
        Cell::new(if failed == 0 { "0".to_owned() } else { format!("{failed} ({part})") }, failed),
        Cell::new(mean_fuel.to_string(), mean_fuel),
    ]
}

fn percent(percent: f64) -> Cell {
    let exact = (percent * 100.0).round() / 100.0;
    Cell::new(Percent(exact).to_string(), exact)
}
