//! The sources that `--from` names.

use std::{
    fs::{self, File},
    io::{self, BufRead, BufReader, Read},
    path::{Path, PathBuf},
};

use replay::{
    CsvFile, JsonLines, ParquetFile, PostgresSettings, RedisSettings, Rows, StoredUplinks, StreamEvents, UplinkSource,
    is_postgres, is_redis, is_things_stack,
};
use types::{Secret, Timestamp};
use url::Url;
use workbench::BadInput;

use super::{
    args::{Format, ReplayCommand},
    has_parquet_name,
};

/// Opens a source; times are relative to `now`.
pub(super) async fn open(command: &ReplayCommand, now: Timestamp) -> anyhow::Result<Box<dyn UplinkSource>> {
    if command.from == "-" {
        return of_file(command, "standard input", io::stdin());
    }
    if is_postgres(&command.from) {
        return Ok(Box::new(Rows::open(&postgres(command)?, &command.table, &command.filter(now)).await?));
    }
    if is_things_stack(&command.from) {
        return things_stack(command, now);
    }
    if is_redis(&command.from) {
        return Ok(Box::new(StreamEvents::open(redis(command)).await?));
    }
    if let Some((scheme, _)) = command.from.split_once("://") {
        let reason = format!("there are no sources with `{scheme}://`: use postgres://, redis://, https:// or a file");
        return Err(BadInput::Request(reason).into());
    }
    let path = Path::new(&command.from);
    let file = File::open(path).map_err(|source| unread(&command.from, source))?;
    if is_parquet(command, path) {
        return Ok(Box::new(ParquetFile::open(
            &command.from,
            file,
            &command.column,
            command.encoding.map(Into::into),
        )?));
    }
    of_file(command, &command.from, file)
}

fn is_parquet(command: &ReplayCommand, path: &Path) -> bool {
    command.format.map_or_else(|| has_parquet_name(path), |format| format == Format::Parquet)
}

/// Returns a source as it is shown: its URL without the password.
pub(super) fn shown(from: &str) -> String {
    match Url::parse(from) {
        Ok(mut url) if url.has_host() => {
            // It fails only where there can be no password.
            _ = url.set_password(None);
            url.query_pairs().any(|(name, _)| name == "password").then(|| url.set_query(None));
            url.to_string()
        }
        _ if from.contains("://") => from.split("://").next().unwrap_or_default().to_owned() + "://…",
        _ => from.to_owned(),
    }
}

fn read(path: &PathBuf) -> Result<String, BadInput> {
    fs::read_to_string(path).map_err(|source| BadInput::File { file: path.display().to_string(), source })
}

fn things_stack(command: &ReplayCommand, now: Timestamp) -> anyhow::Result<Box<dyn UplinkSource>> {
    let Some(file) = &command.password_file else {
        let reason = "The Things Stack wants an API key: use --password-file with a file that has it";
        return Err(BadInput::Request(reason.to_owned()).into());
    };
    let (key, authority) = (Secret::new(read(file)?.trim()), command.ca_certificate.as_ref().map(read).transpose()?);
    Ok(Box::new(StoredUplinks::new(&command.from, key, authority, &command.filter(now))?))
}

fn redis(command: &ReplayCommand) -> RedisSettings {
    let (url, password_file) = (command.from.clone(), command.password_file.clone());
    RedisSettings { url, password_file, authority: command.ca_certificate.clone() }
}

fn postgres(command: &ReplayCommand) -> anyhow::Result<PostgresSettings> {
    Ok(PostgresSettings {
        url: command.from.clone(),
        password: password(),
        password_file: command.password_file.as_ref().map(read).transpose()?.map(Secret::new),
        authority: command.ca_certificate.as_ref().map(read).transpose()?,
    })
}

/// The variable in which all clients of PostgreSQL expect the password.
#[expect(clippy::disallowed_methods, reason = "it is not a setting of ours")]
fn password() -> Option<Secret> {
    std::env::var("PGPASSWORD").ok().map(Secret::new)
}

/// A file or a pipe, in the format that its name or its first character says.
fn of_file(
    command: &ReplayCommand,
    name: &str,
    input: impl Read + Send + 'static,
) -> anyhow::Result<Box<dyn UplinkSource>> {
    let mut input = BufReader::new(input);
    let by_name = || match Path::new(name).extension()?.to_str()? {
        "csv" | "tsv" => Some(Format::Csv),
        "json" | "jsonl" | "ndjson" => Some(Format::Jsonl),
        _ => None,
    };
    let format = match command.format.or_else(by_name) {
        Some(format) => format,
        None => by_start(input.fill_buf().map_err(|source| unread(name, source))?),
    };
    Ok(match format {
        Format::Jsonl => Box::new(JsonLines::new(name, input)),
        Format::Parquet => {
            let reason = match command.from.as_str() {
                "-" => "Parquet is read from its end: name a file instead of `-`".to_owned(),
                file => format!("{file} is a Parquet file: use --format parquet"),
            };
            return Err(BadInput::Request(reason).into());
        }
        Format::Csv => Box::new(CsvFile::open(name, input, &command.column, command.encoding.map(Into::into))?),
    })
}

fn unread(name: &str, source: io::Error) -> replay::Error {
    replay::Error::Read { name: name.to_owned(), source }
}

/// Lines of JSON begin with a brace, a bracket or a topic; the names of columns have none of these.
fn by_start(start: &[u8]) -> Format {
    if start.starts_with(b"PAR1") {
        return Format::Parquet;
    }
    let line = start.split(|byte| *byte == b'\n').find(|line| !line.trim_ascii().is_empty()).unwrap_or_default();
    if line.contains(&b'{') || line.contains(&b'[') || line.is_empty() { Format::Jsonl } else { Format::Csv }
}
