//! `airlock history …`: the stored messages of an application.

pub(crate) mod args;
pub(crate) mod decode;
mod directory;
mod export;
mod replay;
pub(crate) mod totals;
mod work;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    time::Duration,
};

use anyhow::ensure;
use api::{
    history::{Correction, Record as StoredRecord},
    rest::handler::RefusedMessages,
};
use client::HexBytes;
use serde_json::{Value, json};
use types::{AppId, Timestamp};

use self::{
    args::{Filter, Format, History},
    directory::Directory,
};
use crate::{
    command_context::CommandContext,
    exit::CommandError,
    output::{Cell, Record, Table},
    terminal::{sanitize, say, warn},
};

/// If a record was recorded so long before or after its time, people see both.
const APART_MIN: Duration = Duration::from_secs(1);
/// Maximum number of records of a page.
const PAGE: usize = 1000;

pub(crate) async fn run(command: History, app_id: Option<AppId>, context: &CommandContext) -> anyhow::Result<()> {
    match command {
        History::List { filter, limit, dir: Some(dir) } => {
            let directory = Directory::open(&dir, app_id)?;
            let (records, unread) = directory.records(filter, limit, context).await?;
            show_list(context, &directory.app_id, records)?;
            check_all_read(unread)
        }
        History::Info { id, dir: Some(dir) } => show_record(context, Directory::open(&dir, app_id)?.record(&id).await?),
        History::Export { file, format, filter, dir: Some(dir) } => {
            let (file, format) = export_to(file.as_deref(), format);
            Directory::open(&dir, app_id)?.export(filter, (file, format), context).await
        }
        command => of_handler(command, context.application(app_id)?, context).await,
    }
}

/// The commands that ask the handler.
async fn of_handler(command: History, app_id: AppId, context: &CommandContext) -> anyhow::Result<()> {
    match command {
        History::List { filter, limit, .. } => list(context, &app_id, filter, limit).await,
        History::Info { id, .. } => info(context, &app_id, &id).await,
        History::Decode(decode) => decode::run(context, &app_id, decode).await,
        History::Replay(replay) => replay::run(context, &app_id, replay).await,
        History::Verify { selection, sample } => decode::verify(context, &app_id, selection, sample).await,
        History::Export { file, format, filter, .. } => {
            let (file, format) = export_to(file.as_deref(), format);
            export::run(context, &app_id, filter, file, format).await
        }
    }
}

/// The file of an export, unless it is standard output, and its format.
fn export_to(file: Option<&Path>, format: Option<Format>) -> (Option<&Path>, Format) {
    let file = file.filter(|file| *file != Path::new("-"));
    (file, format.unwrap_or_else(|| Format::of(file)))
}

async fn list(context: &CommandContext, app_id: &AppId, filter: Filter, limit: usize) -> anyhow::Result<()> {
    let mut pages = Pages::new(context, app_id, filter).await?;
    let mut records = Vec::new();
    while records.len() < limit
        && let Some(page) = pages.next(limit - records.len()).await?
    {
        records.extend(page);
    }
    show_list(context, app_id, records)?;
    check_all_read(pages.unreadable.len())
}

fn show_list(context: &CommandContext, app_id: &AppId, records: Vec<StoredRecord>) -> anyhow::Result<()> {
    let columns = [
        ("id", "ID"),
        ("time", "Time"),
        ("dev_id", "DevID"),
        ("kind", "Kind"),
        ("port", "Port"),
        ("payload", "Payload"),
        ("result", "Result"),
        ("outcome", ""),
        ("revision", ""),
        ("corrects", ""),
        ("microseconds", ""),
        ("recorded", ""),
    ];
    let table = Table::new(columns, records.into_iter().map(row));
    context.output.table(table, format_args!("Application {app_id} has no such records"))
}

/// Returns the columns that fit on a line; `info` and `export` have the rest.
fn row(record: StoredRecord) -> [Cell; 12] {
    let (time, recorded) = (time(&record), recorded(&record));
    let result = match record.outcome.as_str() {
        "failed" => record.failure,
        "invalid" => format!("invalid: {}", record.fields),
        _ => record.fields,
    };
    let result = sanitize(&result);
    let shown = match record.revision {
        0 => result.clone(),
        revision => format!("correction {revision}: {result}"),
    };
    [
        record.id.into(),
        time,
        record.dev_id.into(),
        record.kind.into(),
        record.port.into(),
        HexBytes(record.payload).to_string().into(),
        Cell::new(shown, result),
        record.outcome.into(),
        record.revision.into(),
        record.corrects.into(),
        microseconds(record.microseconds),
        recorded.into(),
    ]
}

/// The time of a record, for people with the one by which it is sorted, if that is another: of a correction, or if a
/// network was late or has another clock.
fn time(record: &StoredRecord) -> Cell {
    let time = Timestamp::from_nanos(record.time);
    let cell = Cell::from(time);
    match recorded(record).filter(|recorded| recorded.apart(time) >= APART_MIN) {
        Some(recorded) => {
            Cell::new(format!("{}, recorded {}", cell.text(), Cell::from(recorded).text()), time.to_rfc3339())
        }
        None => cell,
    }
}

/// When it was recorded; none if the handler is of an earlier version, which does not say.
fn recorded(record: &StoredRecord) -> Option<Timestamp> {
    Some(record.recorded).filter(|nanos| *nanos > 0).map(Timestamp::from_nanos)
}

async fn info(context: &CommandContext, app_id: &AppId, id: &str) -> anyhow::Result<()> {
    let record = context.handler_for(app_id).await?.get_record(app_id, id).await?;
    warn_unreadable(&record.unreadable_files)?;
    show_record(context, record)
}

fn show_record(context: &CommandContext, record: StoredRecord) -> anyhow::Result<()> {
    let recorded = recorded(&record).map(|time| context.output.exact_time(time));
    let logs: Vec<_> = record.logs.iter().map(|log| format!("{}: {}", log.function, log.fields.join(" "))).collect();
    context.output.record(Record::new([
        (("id", "ID"), record.id.into()),
        (("time", "Time"), context.output.exact_time(Timestamp::from_nanos(record.time))),
        (("recorded", "Recorded"), recorded.into()),
        (("dev_id", "DevID"), record.dev_id.into()),
        (("kind", "Kind"), record.kind.into()),
        (("port", "Port"), record.port.into()),
        (("counter", "Counter"), record.counter.into()),
        (("payload", "Payload"), HexBytes(record.payload).to_string().into()),
        (("outcome", "Outcome"), record.outcome.into()),
        (("fields", "Fields"), json(&record.fields)),
        (("normalized", "Normalized"), json(&record.normalized)),
        (("failure", "Failure"), record.failure.into()),
        (("warnings", "Warnings"), Cell::list(&record.warnings, "; ")),
        (("logs", "Logs"), Cell::list(&logs, "; ")),
        (("metadata", "Metadata"), json(&record.metadata)),
        (("extra", "Extra"), json(&record.extra)),
        (("fuel", "Fuel"), Cell::new(record.fuel.to_string(), record.fuel)),
        (("microseconds", "Ran for"), microseconds(record.microseconds)),
        (("version", "Version"), Some(record.version).filter(|version| *version > 0).into()),
        (("functions", "Functions"), record.functions.into()),
        (("limits", "Limits"), Cell::numbers(record.limits)),
        (("revision", "Revision"), Some(record.revision).filter(|revision| *revision > 0).into()),
        (("corrects", "Corrects"), record.corrects.into()),
        (("corrections", "Corrected by"), corrections(&record.corrections)),
    ]))
}

/// The corrections of a record; nothing if there are none.
fn corrections(corrections: &[Correction]) -> Cell {
    if corrections.is_empty() {
        return Cell::new("", Value::Null);
    }
    let text = corrections.iter().map(|Correction { id, revision, version, .. }| match *version {
        0 => format!("{id} (revision {revision})"),
        _ => format!("{id} (revision {revision}, version {version})"),
    });
    let value = corrections.iter().map(|Correction { id, revision, version, recorded }| {
        let (version, recorded) = (Some(version).filter(|version| **version > 0), Timestamp::from_nanos(*recorded));
        json!({"id": id, "revision": revision, "version": version, "recorded": recorded.to_rfc3339()})
    });
    Cell::new(text.collect::<Vec<_>>().join(", "), value.collect::<Vec<_>>())
}

/// Names files of history whose records are missing.
fn warn_unreadable<'a>(files: impl IntoIterator<Item = &'a String>) -> anyhow::Result<()> {
    files
        .into_iter()
        .try_for_each(|file| warn(format_args!("the handler cannot read {}: its records are missing", sanitize(file))))
}

/// Says how many files of history were left out; none if all were read.
fn left_out(files: usize) -> Option<String> {
    match files {
        0 => None,
        1 => Some("1 file of history cannot be read: its records are missing".to_owned()),
        _ => Some(format!("{files} files of history cannot be read: their records are missing")),
    }
}

/// An error if so many files of history were left out.
fn check_all_read(files: usize) -> anyhow::Result<()> {
    left_out(files).map_or(Ok(()), |text| Err(CommandError::unavailable(text).into()))
}

/// Names who did not take messages.
fn say_refused(receivers: &BTreeMap<String, RefusedMessages>) -> anyhow::Result<()> {
    receivers.iter().try_for_each(|(receiver, RefusedMessages { count, reason, id })| {
        let (receiver, reason) = (sanitize(receiver), sanitize(reason));
        say(format_args!("{receiver} did not take {count}: {reason}\n  such as {id}"))
    })
}

/// An error if somebody did not take so many messages.
fn check_taken(refused: u64) -> anyhow::Result<()> {
    let text = if refused == 1 { "message was" } else { "messages were" };
    ensure!(refused == 0, "{refused} {text} not taken by all who want them");
    Ok(())
}

/// The time that functions ran; nothing if that is not known.
fn microseconds(microseconds: u64) -> Cell {
    let known = Some(microseconds).filter(|microseconds| *microseconds > 0);
    known.map(|microseconds| Cell::new(format!("{microseconds} µs"), microseconds)).into()
}

/// JSON as text for people, and as a value for programs.
fn json(text: &str) -> Cell {
    Cell::new(text, serde_json::from_str(text).unwrap_or(Value::Null))
}

/// The pages of records that are wanted.
struct Pages {
    handler: client::handler::HandlerClient,
    query: api::history::Query,
    is_last: bool,
    /// Files that the handler could not read, each named once.
    unreadable: BTreeSet<String>,
}

impl Pages {
    async fn new(context: &CommandContext, app_id: &AppId, filter: Filter) -> anyhow::Result<Self> {
        let query = filter.query(app_id, context.clock.now());
        Ok(Self { handler: context.handler_for(app_id).await?, query, is_last: false, unreadable: BTreeSet::new() })
    }

    /// The next page, of at most `limit` records; none after the last one.
    async fn next(&mut self, limit: usize) -> anyhow::Result<Option<Vec<StoredRecord>>> {
        if self.is_last {
            return Ok(None);
        }
        self.query.limit = limit.min(PAGE) as u32;
        let page = self.handler.list_records(self.query.clone()).await?;
        let new: Vec<_> = page.unreadable.into_iter().filter(|name| self.unreadable.insert(name.clone())).collect();
        warn_unreadable(&new)?;
        self.is_last = page.next.is_empty();
        self.query.before = page.next;
        Ok(Some(page.records))
    }
}
