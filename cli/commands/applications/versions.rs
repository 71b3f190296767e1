//! `airlock applications versions`, `diff`, `restore --version` and `label`: the versions of the payload functions of an
//! application.

use std::io::{self, IsTerminal};

use api::{
    handler::Application,
    version::{Abandonment, NewVersion, Results, Version, VersionLabel},
};
use client::handler::HandlerClient;
use serde_json::{Value, json};
use types::{AppId, Timestamp};

use super::{args::LabelOptions, percent::Percent};
use crate::{
    command_context::CommandContext,
    output::{Cell, Output, Table},
    terminal::{lines, say},
};

/// Lists the versions, the newest first.
pub(super) async fn list(context: &CommandContext, app_id: &AppId) -> anyhow::Result<()> {
    let versions = context.handler_for(app_id).await?.list_versions(app_id).await?;
    let columns = [
        ("number", "Version"),
        ("live", "Live"),
        ("time", "Time"),
        ("note", "Note"),
        ("payload_format", "Format"),
        ("changed_by", "By"),
        ("hash", "Hash"),
        ("link", "Link"),
        ("dialect", ""),
        ("limits", ""),
        ("abandoned", ""),
    ];
    let rows = versions.into_iter().map(|version| row(context, version));
    context.output.table(Table::new(columns, rows), format_args!("Application {app_id} has no versions"))
}

fn row(context: &CommandContext, version: Version) -> [Cell; 11] {
    let Version { number, hash, time, changed_by, note, link, live, restores, .. } = version;
    let Version { functions, share_percent, dialect, limits, abandoned, .. } = version;
    let unknown = || Cell::new("", Value::Null);
    let time = if time == 0 { unknown() } else { context.output.time(Timestamp::from_nanos(time)) };
    let short = hash.get(..16).unwrap_or(&hash).to_owned();
    let restored = (restores > 0).then(|| format!("restores version {restores}"));
    let ended = abandoned.as_ref().map(|abandoned| end(&context.output, abandoned));
    let in_use = match &abandoned {
        _ if share_percent > 0.0 => Cell::new(Percent(share_percent).to_string(), live),
        Some(_) if !live => Cell::new("abandoned", live),
        _ => live.into(),
    };
    [
        number.into(),
        in_use,
        time,
        with_remarks(note, restored.into_iter().chain(ended)),
        format(functions.unwrap_or_default().payload_format, &dialect),
        changed_by.into(),
        Cell::new(short, hash),
        link.into(),
        dialect.into(),
        Cell::numbers(limits),
        Cell::new("", abandoned.map_or(Value::Null, |abandoned| value(&abandoned))),
    ]
}

/// A note for people with what is to be said beside it.
fn with_remarks(note: String, remarks: impl Iterator<Item = String>) -> Cell {
    let remarks = remarks.collect::<Vec<_>>().join("; ");
    let text = match (note.is_empty(), remarks.is_empty()) {
        (_, true) => note.clone(),
        (true, false) => remarks,
        (false, false) => format!("{note} ({remarks})"),
    };
    Cell::new(text, note)
}

/// Says when and why a version was abandoned by the handler.
pub(super) fn end(output: &Output, abandoned: &Abandonment) -> String {
    let time = output.time(Timestamp::from_nanos(abandoned.time));
    format!("abandoned automatically at {}: {abandoned}", time.text())
}

/// The same for programs, as REST has it.
fn value(abandoned: &Abandonment) -> Value {
    let results = |results: Option<Results>| {
        let Results { uplinks, failed, mean_fuel } = results.unwrap_or_default();
        json!({"uplinks": uplinks, "failed": failed, "mean_fuel": mean_fuel})
    };
    json!({
        "time": Timestamp::from_nanos(abandoned.time).to_rfc3339(),
        "margin_percent": abandoned.margin_percent,
        "results": results(abandoned.results),
        "live_version": abandoned.live_version,
        "live_results": results(abandoned.live_results),
    })
}

/// A payload format for people. Any but `custom` names the dialect itself, or runs no functions.
fn format(payload_format: String, dialect: &str) -> Cell {
    match payload_format == "custom" && !dialect.is_empty() {
        true => Cell::new(format!("{payload_format} ({dialect})"), payload_format),
        false => payload_format.into(),
    }
}

/// Prints what changed between two versions.
pub(super) async fn diff(
    (context, app_id): (&CommandContext, &AppId),
    from: u32,
    to: Option<u32>,
) -> anyhow::Result<()> {
    let to = to.unwrap_or_default();
    let diff = context.handler_for(app_id).await?.compare_versions(app_id, from, to).await?;
    match context.output.is_table() {
        true if diff.is_empty() => context.output.message("The versions are equal"),
        // Another collaborator may have put terminal escapes into it.
        true if io::stdout().is_terminal() => say(lines(&diff)),
        true => say(diff.trim_end_matches('\n')),
        false => context.output.value("diff", &diff),
    }
}

/// Makes an older version live again.
pub(super) async fn restore(
    (context, app_id): (&CommandContext, &AppId),
    number: u32,
    label: LabelOptions,
) -> anyhow::Result<()> {
    let handler = context.handler_for(app_id).await?;
    let before = handler.get_version(app_id, 0).await?.number;
    let has_label = label.note.is_some() || label.link.is_some();
    let live = handler.restore_version(sent(app_id, number, label)).await?.number;
    context.output.message(match (live == before, has_label) {
        (false, _) => format!("Restored version {number} of application {app_id} as version {live}"),
        (true, true) => format!("Version {number} of application {app_id} is live already: labelled version {live}"),
        (true, false) => format!("Version {number} of application {app_id} is live already: nothing was changed"),
    })
}

/// Changes the parts of a label that are given.
pub(super) async fn label(
    (context, app_id): (&CommandContext, &AppId),
    number: u32,
    label: LabelOptions,
) -> anyhow::Result<()> {
    let handler = context.handler_for(app_id).await?;
    let Version { note, link, .. } = handler.get_version(app_id, number).await?;
    let label = LabelOptions { note: label.note.or(Some(note)), link: label.link.or(Some(link)) };
    handler.label_version(sent(app_id, number, label)).await?;
    context.output.message(format_args!("Labelled version {number} of application {app_id}"))
}

/// Sets functions with a label, and says which version they are.
pub(super) async fn create(
    context: &CommandContext,
    handler: &HandlerClient,
    functions: Application,
    label: LabelOptions,
) -> anyhow::Result<()> {
    let app_id = functions.app_id.clone();
    let (note, link) = texts(label);
    let version = handler.create_version(NewVersion { functions: Some(functions), note, link }).await?;
    context.output.message(format_args!("Updated application {app_id}: version {} is live", version.number))
}

fn sent(app_id: &AppId, number: u32, label: LabelOptions) -> VersionLabel {
    let (note, link) = texts(label);
    VersionLabel { app_id: app_id.to_string(), number, note, link }
}

/// The note and the link; empty if they are not given.
pub(super) fn texts(LabelOptions { note, link }: LabelOptions) -> (String, String) {
    (note.unwrap_or_default(), link.unwrap_or_default())
}
