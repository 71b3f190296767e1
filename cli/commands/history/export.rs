//! `airlock history export`: records as JSON lines or CSV.

use std::{
    fs::File,
    io::{self, BufWriter, Write},
    path::Path,
};

use anyhow::Context;
use api::history::Record;
use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::{Value, json};
use types::{AppId, Timestamp};

use super::{
    PAGE, Pages,
    args::{Filter, Format},
};
use crate::network::Network;

/// The columns, in the order of the members of an object.
const COLUMNS: [&str; 18] = [
    "id",
    "time",
    "dev_id",
    "kind",
    "port",
    "counter",
    "payload_raw",
    "outcome",
    "payload_fields",
    "normalized_payload",
    "failure",
    "warnings",
    "logs",
    "metadata",
    "extra",
    "fuel",
    "version",
    "functions",
];

/// Writes all records that are wanted.
pub(super) async fn run(
    network: &Network,
    app_id: &AppId,
    filter: Filter,
    file: Option<&Path>,
    format: Format,
) -> anyhow::Result<()> {
    let mut pages = Pages::new(network, app_id, filter).await?;
    let out: Box<dyn Write> = match file {
        Some(path) => Box::new(File::create(path).with_context(|| format!("cannot create {}", path.display()))?),
        None => Box::new(io::stdout()),
    };
    let mut out = Writer::new(BufWriter::new(out), format)?;
    let mut count = 0;
    while let Some(records) = pages.next(PAGE).await? {
        count += records.len();
        records.iter().try_for_each(|record| out.write(record))?;
    }
    out.finish()?;
    match file {
        Some(path) => network.output.message(format_args!("Exported {count} records to {}", path.display())),
        None => Ok(()),
    }
}

enum Writer<W: Write> {
    Jsonl(W),
    Csv(Box<csv::Writer<W>>),
}

impl<W: Write> Writer<W> {
    fn new(out: W, format: Format) -> anyhow::Result<Self> {
        match format {
            Format::Jsonl => Ok(Self::Jsonl(out)),
            Format::Csv => {
                let mut csv = csv::Writer::from_writer(out);
                csv.write_record(COLUMNS).context("cannot write")?;
                Ok(Self::Csv(Box::new(csv)))
            }
        }
    }

    fn write(&mut self, record: &Record) -> anyhow::Result<()> {
        match self {
            Self::Jsonl(out) => {
                let members = COLUMNS.into_iter().zip(values(record)).filter(|(_, value)| !is_empty(value));
                let object: serde_json::Map<_, _> = members.map(|(name, value)| (name.to_owned(), value)).collect();
                writeln!(out, "{}", Value::Object(object)).context("cannot write")
            }
            Self::Csv(csv) => {
                let text = |value: Value| match value {
                    Value::String(text) => text,
                    value if is_empty(&value) => String::new(),
                    value => value.to_string(),
                };
                csv.write_record(values(record).map(text)).context("cannot write")
            }
        }
    }

    fn finish(self) -> anyhow::Result<()> {
        match self {
            Self::Jsonl(mut out) => out.flush().context("cannot write"),
            Self::Csv(mut csv) => csv.flush().context("cannot write"),
        }
    }
}

/// What the columns have for a record.
fn values(record: &Record) -> [Value; COLUMNS.len()] {
    let parsed = |text: &str| serde_json::from_str(text).unwrap_or(Value::Null);
    let logs = record.logs.iter().map(|log| json!({ "function": log.function, "fields": log.fields }));
    [
        json!(record.id),
        json!(Timestamp::from_nanos(record.time)),
        json!(record.dev_id),
        json!(record.kind),
        json!(record.port),
        json!(record.counter),
        json!(BASE64_STANDARD.encode(&record.payload)),
        json!(record.outcome),
        parsed(&record.fields),
        parsed(&record.normalized),
        json!(record.failure),
        json!(record.warnings),
        logs.collect(),
        parsed(&record.metadata),
        parsed(&record.extra),
        json!(record.fuel),
        if record.version > 0 { json!(record.version) } else { Value::Null },
        json!(record.functions),
    ]
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => false,
    }
}
