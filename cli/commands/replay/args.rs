//! The arguments of `airlock replay`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use replay::{Encoding, Filter, Role, Table};
use types::Timestamp;

use crate::{commands::history::args::Moment, values::dialect::DialectName};

#[derive(Debug, Args)]
pub(crate) struct ReplayCommand {
    /// Where the uplinks are: a file of JSON lines, CSV or Parquet, `-` for standard input, postgres://user@host/database of
    /// ChirpStack's PostgreSQL integration, redis://user@host/0?stream=device:stream:event of its Redis, or
    /// https://host/api/v3/as/applications/ID of The Things Stack's storage
    #[arg(long, value_name = "SOURCE")]
    pub(crate) from: String,
    /// File with the codec that runs on them. PROFILE=FILE is the codec of devices with this profile, by id or name; can be
    /// repeated
    #[arg(long, value_name = "[PROFILE=]FILE", required = true, value_parser = codec)]
    pub(crate) codec: Vec<CodecFile>,
    /// File with a JSON object: the variables that the codec sees where an uplink has none of its own
    #[arg(long, value_name = "FILE")]
    pub(crate) variables: Option<PathBuf>,
    /// Dialect of the codec [default: detected from the source]
    #[arg(long, value_name = "DIALECT")]
    pub(crate) dialect: Option<DialectName>,
    /// Format of a file [default: as its name says, otherwise as it begins]
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub(crate) format: Option<Format>,
    /// The column of a table that has the payload, port, time, object, device, application, id or profile, as in payload=raw;
    /// can be repeated [default: the names that networks use]
    #[arg(long, value_name = "PART=COLUMN", value_parser = column)]
    pub(crate) column: Vec<(Role, String)>,
    /// Encoding of a table's payloads [default: as their column says]
    #[arg(long, value_enum, value_name = "ENCODING")]
    pub(crate) encoding: Option<EncodingName>,
    /// Only uplinks from then on: a time such as 2026-11-28T10:00:00Z, or how long ago, such as 90m, 2h or 7d
    #[arg(long, value_name = "TIME")]
    since: Option<Moment>,
    /// Only uplinks until then: a time, or how long ago
    #[arg(long, value_name = "TIME")]
    until: Option<Moment>,
    /// Only this device, by id, DevEUI or name
    #[arg(long, value_name = "ID")]
    device: Option<String>,
    /// Only this application, by id or name
    #[arg(long, value_name = "ID")]
    application: Option<String>,
    /// In files of Airlock's history, compare with the results that uplinks had when they came, and leave out corrections
    #[arg(long)]
    originals: bool,
    /// Table of PostgreSQL with the uplinks
    #[arg(long, value_name = "TABLE", default_value = "event_up")]
    pub(crate) table: Table,
    /// File with the password or API key of the source, or with lines like those of .pgpass [default: PGPASSWORD]
    #[arg(long, value_name = "FILE")]
    pub(crate) password_file: Option<PathBuf>,
    /// PEM file with the certificate authority of the source [default: the system's]
    #[arg(long, value_name = "FILE")]
    pub(crate) ca_certificate: Option<PathBuf>,
    /// Uplinks to run in parallel [default: number of processors]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(crate) jobs: Option<u16>,
    /// Print the report as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Also write the report as a page
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Also write each uplink with the old object and the new one, as lines of JSON; as Parquet if the file's name ends with
    /// .parquet
    #[arg(long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Also write statements that put the new objects into PostgreSQL, to be read before they run
    #[arg(long, value_name = "FILE")]
    pub(crate) sql: Option<PathBuf>,
}

/// A codec, for devices of one profile or for all others.
#[derive(Clone, Debug)]
pub(crate) struct CodecFile {
    pub(crate) profile: Option<String>,
    pub(crate) file: PathBuf,
}

/// Format of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// A JSON object on each line
    Jsonl,
    /// A line of names, then a line per uplink
    Csv,
    /// Apache Parquet
    Parquet,
}

/// Encoding of payloads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum EncodingName {
    /// Base64
    Base64,
    /// Hexadecimal
    Hex,
}

impl From<EncodingName> for Encoding {
    fn from(name: EncodingName) -> Self {
        match name {
            EncodingName::Base64 => Self::Base64,
            EncodingName::Hex => Self::Hex,
        }
    }
}

impl ReplayCommand {
    /// Returns the filter of uplinks.
    pub(super) fn filter(&self, now: Timestamp) -> Filter {
        let time = |moment: Option<Moment>| moment.map(|moment| moment.before(now));
        Filter {
            since: time(self.since),
            until: time(self.until),
            device: self.device.clone(),
            application: self.application.clone(),
            originals_only: self.originals,
        }
    }
}

/// Parses `PROFILE=FILE` or a file. Text before `=` is part of a path if it has a slash.
fn codec(text: &str) -> Result<CodecFile, String> {
    match text.split_once('=') {
        Some(("", _) | (_, "")) => Err("a profile and its codec are needed, as in Meter=meter.js".to_owned()),
        Some((profile, file)) if !profile.contains('/') => {
            Ok(CodecFile { profile: Some(profile.to_owned()), file: file.into() })
        }
        _ => Ok(CodecFile { profile: None, file: text.into() }),
    }
}

fn column(text: &str) -> Result<(Role, String), String> {
    let names = || Role::ALL.map(Role::name).join(", ");
    let (role, column) = text.split_once('=').ok_or("a part and its column are needed, as in payload=raw")?;
    let found = Role::ALL.into_iter().find(|known| known.name() == role);
    let role = found.ok_or_else(|| format!("there is no part `{role}`: use one of {}", names()))?;
    Ok((role, column.to_owned()))
}
