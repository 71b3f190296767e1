//! `airlock applications versions`, `diff`, `restore --version` and `label`: the versions of the payload functions of an
//! application.

use std::io::{self, IsTerminal};

use api::{
    handler::Application,
    version::{NewVersion, Version, VersionLabel},
};
use client::handler::HandlerClient;
use serde_json::Value;
use types::{AppId, Timestamp};

use super::{args::LabelOptions, percent::Percent};
use crate::{
    network::Network,
    output::{Cell, Table},
    terminal::{lines, say},
};

/// Lists the versions, the newest first.
pub(super) async fn list(network: &Network, app_id: &AppId) -> anyhow::Result<()> {
    let versions = network.handler_for(app_id).await?.list_versions(app_id).await?;
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
    ];
    let rows = versions.into_iter().map(|version| row(network, version));
    network.output.table(Table::new(columns, rows), format_args!("Application {app_id} has no versions"))
}

fn row(network: &Network, version: Version) -> [Cell; 10] {
    let Version { number, hash, time, changed_by, note, link, live, restores, .. } = version;
    let Version { functions, share_percent, dialect, limits, .. } = version;
    let unknown = || Cell::new("", Value::Null);
    let time = if time == 0 { unknown() } else { network.output.time(Timestamp::from_nanos(time)) };
    let short = hash.get(..16).unwrap_or(&hash).to_owned();
    let note = match restores {
        0 => note.into(),
        restored if note.is_empty() => Cell::new(format!("restores version {restored}"), ""),
        restored => Cell::new(format!("{note} (restores version {restored})"), note),
    };
    [
        number.into(),
        if share_percent > 0.0 { Cell::new(Percent(share_percent).to_string(), live) } else { live.into() },
        time,
        note,
        format(functions.unwrap_or_default().payload_format, &dialect),
        changed_by.into(),
        Cell::new(short, hash),
        link.into(),
        dialect.into(),
        Cell::numbers(limits),
    ]
}

/// A payload format for people. Any but `custom` names the dialect itself, or runs no functions.
fn format(payload_format: String, dialect: &str) -> Cell {
    match payload_format == "custom" && !dialect.is_empty() {
        true => Cell::new(format!("{payload_format} ({dialect})"), payload_format),
        false => payload_format.into(),
    }
}

/// Prints what changed between two versions.
pub(super) async fn diff((network, app_id): (&Network, &AppId), from: u32, to: Option<u32>) -> anyhow::Result<()> {
    let to = to.unwrap_or_default();
    let diff = network.handler_for(app_id).await?.compare_versions(app_id, from, to).await?;
    match network.output.is_table() {
        true if diff.is_empty() => network.output.message("The versions are equal"),
        // Another collaborator may have put terminal escapes into it.
        true if io::stdout().is_terminal() => say(lines(&diff)),
        true => say(diff.trim_end_matches('\n')),
        false => network.output.value("diff", &diff),
    }
}

/// Makes an older version live again.
pub(super) async fn restore(
    (network, app_id): (&Network, &AppId),
    number: u32,
    label: LabelOptions,
) -> anyhow::Result<()> {
    let handler = network.handler_for(app_id).await?;
    let before = handler.get_version(app_id, 0).await?.number;
    let has_label = label.note.is_some() || label.link.is_some();
    let live = handler.restore_version(sent(app_id, number, label)).await?.number;
    network.output.message(match (live == before, has_label) {
        (false, _) => format!("Restored version {number} of application {app_id} as version {live}"),
        (true, true) => format!("Version {number} of application {app_id} is live already: labelled version {live}"),
        (true, false) => format!("Version {number} of application {app_id} is live already: nothing was changed"),
    })
}

/// Changes the parts of a label that are given.
pub(super) async fn label(
    (network, app_id): (&Network, &AppId),
    number: u32,
    label: LabelOptions,
) -> anyhow::Result<()> {
    let handler = network.handler_for(app_id).await?;
    let Version { note, link, .. } = handler.get_version(app_id, number).await?;
    let label = LabelOptions { note: label.note.or(Some(note)), link: label.link.or(Some(link)) };
    handler.label_version(sent(app_id, number, label)).await?;
    network.output.message(format_args!("Labelled version {number} of application {app_id}"))
}

/// Sets functions with a label, and says which version they are.
pub(super) async fn create(
    network: &Network,
    handler: &HandlerClient,
    functions: Application,
    label: LabelOptions,
) -> anyhow::Result<()> {
    let app_id = functions.app_id.clone();
    let (note, link) = texts(label);
    let version = handler.create_version(NewVersion { functions: Some(functions), note, link }).await?;
    network.output.message(format_args!("Updated application {app_id}: version {} is live", version.number))
}

fn sent(app_id: &AppId, number: u32, label: LabelOptions) -> VersionLabel {
    let (note, link) = texts(label);
    VersionLabel { app_id: app_id.to_string(), number, note, link }
}

/// The note and the link; empty if they are not given.
pub(super) fn texts(LabelOptions { note, link }: LabelOptions) -> (String, String) {
    (note.unwrap_or_default(), link.unwrap_or_default())
}
