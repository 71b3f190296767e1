//! The arguments of `airlock history …`.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use api::history::Query;
use clap::{Args, Subcommand, ValueEnum};
use types::{AppId, DevId, Timestamp};

#[derive(Debug, Subcommand)]
pub(crate) enum History {
    /// List uplinks and events, the newest first
    #[command(visible_alias = "ls")]
    #[command(
        after_help = "Examples:\n  airlock history list --device my-device --since 2h\n  airlock history list --failed\n  airlock history list --field 'fields.temperature > 30' --output jsonl"
    )]
    List {
        #[command(flatten)]
        filter: Filter,
        /// Maximum number of records
        #[arg(long, value_name = "N", default_value_t = 50)]
        limit: usize,
    },
    /// Show one uplink or event with all that is known about it
    #[command(visible_alias = "get")]
    #[command(after_help = "Example:\n  airlock history info 0196f3c2a1b40000002a00000001")]
    Info {
        /// Id of the record, as `history list` prints it
        id: String,
    },
    /// Write uplinks and events to a file, the newest first; Parquet by device
    #[command(
        after_help = "Examples:\n  airlock history export messages.jsonl --since 7d\n  airlock history export messages.parquet --device my-device"
    )]
    Export {
        /// File to write; - is standard output, the default
        file: Option<PathBuf>,
        /// Format of the file [default: as its name says, otherwise jsonl]
        #[arg(long, value_enum)]
        format: Option<Format>,
        #[command(flatten)]
        filter: Filter,
    },
}

/// How records are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// An object per line
    Jsonl,
    /// A line of names, then a line per record
    Csv,
    /// Apache Parquet
    Parquet,
}

impl Format {
    /// The format that the name of a file stands for.
    pub(super) fn of(file: Option<&Path>) -> Self {
        match file.and_then(|file| file.extension()?.to_str()) {
            Some("csv") => Self::Csv,
            Some("parquet") => Self::Parquet,
            _ => Self::Jsonl,
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Jsonl => "jsonl",
            Self::Csv => "csv",
            Self::Parquet => "parquet",
        }
    }
}

/// Which records are wanted.
#[derive(Debug, Args)]
pub(crate) struct Filter {
    /// Device [default: all]
    #[arg(long, value_name = "ID")]
    device: Option<DevId>,
    /// From when on: a time such as 2026-11-28T10:00:00Z, or how long ago, such as 90m, 2h or 7d
    #[arg(long, value_name = "TIME")]
    since: Option<Moment>,
    /// Until when: a time, or how long ago
    #[arg(long, value_name = "TIME")]
    until: Option<Moment>,
    /// Kind: up, or an event such as down/sent [default: all]
    #[arg(long, value_name = "KIND")]
    kind: Option<String>,
    /// LoRaWAN port
    #[arg(long)]
    port: Option<u8>,
    /// Only uplinks whose functions failed, or whose validator refused them
    #[arg(long)]
    failed: bool,
    /// Text that the fields, the failure, the logs or the warnings contain
    #[arg(long)]
    text: Option<String>,
    /// Condition on a field, such as 'fields.temperature > 30'
    #[arg(long, value_name = "CONDITION")]
    field: Option<String>,
    /// Version of the functions that ran
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..))]
    version: Option<u32>,
}

/// A time, or how long ago it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moment {
    /// That time.
    At(Timestamp),
    /// So long before now.
    Ago(Duration),
}

impl Filter {
    /// The query for the first page of these records.
    pub(super) fn query(self, app_id: &AppId, now: Timestamp) -> Query {
        let nanos = |moment: Option<Moment>| moment.map(|moment| moment.before(now).as_nanos());
        Query {
            app_id: app_id.to_string(),
            dev_id: self.device.map(|device| device.to_string()).unwrap_or_default(),
            since: nanos(self.since),
            until: nanos(self.until),
            kind: self.kind.unwrap_or_default(),
            port: self.port.map(u32::from),
            failed: self.failed,
            text: self.text.unwrap_or_default(),
            field: self.field.unwrap_or_default(),
            version: self.version.unwrap_or_default(),
            ..Query::default()
        }
    }
}

impl Moment {
    /// The time, if it is `now`.
    pub(crate) fn before(self, now: Timestamp) -> Timestamp {
        match self {
            Self::At(time) => time,
            Self::Ago(duration) => now.minus(duration),
        }
    }
}

impl std::str::FromStr for Moment {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(time) = text.parse() {
            return Ok(Self::At(time));
        }
        let seconds = |unit: &str| match unit {
            "s" => Some(1),
            "m" => Some(60),
            "h" => Some(3600),
            "d" => Some(24 * 3600),
            _ => None,
        };
        let ago = text.split_at_checked(text.len().saturating_sub(1)).and_then(|(number, unit)| {
            let number: u64 = number.parse().ok()?;
            number.checked_mul(seconds(unit)?)
        });
        let ago = ago.ok_or("a time such as 2026-11-28T10:00:00Z, or how long ago such as 90m, 2h or 7d, is needed")?;
        Ok(Self::Ago(Duration::from_secs(ago)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_times_or_how_long_ago() {
        let ago = |seconds| Ok(Moment::Ago(Duration::from_secs(seconds)));
        for (text, moment) in [("90m", ago(5400)), ("2h", ago(7200)), ("7d", ago(604_800)), ("0s", ago(0))] {
            assert_eq!(text.parse::<Moment>(), moment, "{text}");
        }
        let time = "2026-11-28T10:00:00Z";
        assert_eq!(time.parse::<Moment>(), Ok(Moment::At(time.parse().unwrap())));
        for text in ["", "h", "2", "2w", "-2h", "99999999999999999999d", "18446744073709551615d", "é"] {
            assert!(text.parse::<Moment>().is_err(), "{text}");
        }
    }

    #[test]
    fn what_was_long_ago_begins_with_the_first_record() {
        let moment: Moment = "99999999d".parse().unwrap();
        assert!(moment.before(Timestamp::from_nanos(0)).as_nanos() < 0);
    }
}
