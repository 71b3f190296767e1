//! What `--from` stands for.

use std::{
    fs::File,
    io::{self, BufRead, BufReader, Read},
    path::Path,
};

use anyhow::Context;
use replay::{CsvFile, JsonLines, Source};
use types::Timestamp;
use workbench::BadInput;

use super::args::{Format, ReplayCommand};

/// Opens a source; times are relative to `now`.
pub(super) async fn open(command: &ReplayCommand, _now: Timestamp) -> anyhow::Result<Box<dyn Source>> {
    if command.from == "-" {
        return of_file(command, "standard input", io::stdin());
    }
    let path = Path::new(&command.from);
    let file = File::open(path).map_err(|source| BadInput::File { file: command.from.clone(), source })?;
    of_file(command, &command.from, file)
}

/// A file or a pipe, in the format that its name or its first character says.
fn of_file(command: &ReplayCommand, name: &str, input: impl Read + Send + 'static) -> anyhow::Result<Box<dyn Source>> {
    let mut input = BufReader::new(input);
    let by_name = || match Path::new(name).extension()?.to_str()? {
        "csv" | "tsv" => Some(Format::Csv),
        "json" | "jsonl" | "ndjson" => Some(Format::Jsonl),
        _ => None,
    };
    let format = match command.format.or_else(by_name) {
        Some(format) => format,
        None => by_start(input.fill_buf().with_context(|| format!("cannot read {name}"))?),
    };
    Ok(match format {
        Format::Jsonl => Box::new(JsonLines::new(name, input)),
        Format::Csv => Box::new(CsvFile::open(name, input, &command.column, command.encoding.map(Into::into))?),
    })
}

/// Lines of JSON begin with a brace, a bracket or a topic; the names of columns have none of these.
fn by_start(start: &[u8]) -> Format {
    let line = start.split(|byte| *byte == b'\n').find(|line| !line.trim_ascii().is_empty()).unwrap_or_default();
    if line.contains(&b'{') || line.contains(&b'[') || line.is_empty() { Format::Jsonl } else { Format::Csv }
}
