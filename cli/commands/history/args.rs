//! The arguments of `airlock history …`.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::bail;
use api::{
    history::Query,
    rest::handler::{DecodeAgain, SendAgain, SendTo},
};
use clap::{Args, Subcommand, ValueEnum};
use types::{AppId, DevId, Timestamp};

use crate::exit::CommandError;

#[derive(Debug, Subcommand)]
pub(crate) enum History {
    /// List uplinks and events, the newest first
    #[command(visible_alias = "ls")]
    #[command(
        after_help = "Examples:\n  airlock history list --device my-device --since 2h\n  airlock history list --failed\n  airlock history list --field 'fields.temperature > 30' --output jsonl\n  airlock history list --dir bridge/chirpstack/history --failed"
    )]
    List {
        #[command(flatten)]
        filter: Filter,
        /// Maximum number of records
        #[arg(long, value_name = "N", default_value_t = 50)]
        limit: usize,
        /// Read a directory of history in place of asking the handler, such as that of a bridge
        #[arg(long, value_name = "DIR")]
        dir: Option<PathBuf>,
    },
    /// Show one uplink or event with all that is known about it
    #[command(visible_alias = "get")]
    #[command(after_help = "Example:\n  airlock history info 0196f3c2a1b40000002a00000001")]
    Info {
        /// Id of the record, as `history list` prints it
        id: String,
        /// Read a directory of history in place of asking the handler, such as that of a bridge
        #[arg(long, value_name = "DIR")]
        dir: Option<PathBuf>,
    },
    /// Run other functions on stored uplinks, and report what changes; exit code 1 if any newly fail, 5 if files cannot
    /// be read or nobody has room for corrections
    #[command(
        after_help = "Examples:\n  airlock history decode --functions decoder.js --since 7d\n  airlock history decode --since 7d --write --publish"
    )]
    Decode(Decode),
    /// Send stored uplinks and events again, the oldest first; exit code 1 if any are refused, 5 if files
    /// cannot be read or nobody has room
    #[command(
        after_help = "Examples:\n  airlock history replay --since 2h --dry-run\n  airlock history replay --since 2h\n  airlock history replay --since 7d --kind up --to webhook my-hook --rate 50\n  airlock history replay --device my-device --to topic backfill"
    )]
    Replay(Replay),
    /// Run the functions of stored uplinks again, and report whatever differs; exit code 1 if anything does, 5
    /// if files cannot be read
    #[command(after_help = "Example:\n  airlock history verify --since 1d --sample 100")]
    Verify {
        #[command(flatten)]
        selection: Selection,
        /// Number of uplinks of each device to run, from the newest on
        #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
        sample: u32,
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
        /// Read a directory of history in place of asking the handler, such as that of a bridge
        #[arg(long, value_name = "DIR")]
        dir: Option<PathBuf>,
    },
}

/// Options for decoding stored uplinks again.
#[derive(Debug, Args)]
pub(crate) struct Decode {
    #[command(flatten)]
    pub(super) selection: Selection,
    /// File with a decoder to run; the other functions are those that are live
    #[arg(long, value_name = "FILE", conflicts_with = "version")]
    pub(super) functions: Option<PathBuf>,
    /// Version of the functions to run [default: the one that is live]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) version: Option<u32>,
    /// Run each uplink within the limits that it had when it came, and compare with what came of it then
    #[arg(long, conflicts_with = "write")]
    pub(super) recorded_limits: bool,
    /// Keep what has changed as a revision beside the original
    #[arg(long)]
    pub(super) write: bool,
    /// Publish what has changed, as messages with `revision` and `corrects`
    #[arg(long, requires = "write")]
    pub(super) publish: bool,
    /// Maximum number of messages to publish each second [default: 200]
    #[arg(long, value_name = "N", requires = "publish", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(super) rate: Option<u32>,
    /// Go on after this uplink, as an interrupted run says
    #[arg(long, value_name = "ID")]
    pub(super) after: Option<String>,
    /// Also write a report for people to this file
    #[arg(long, value_name = "FILE")]
    pub(super) html: Option<PathBuf>,
}

/// Options for sending stored messages again.
#[derive(Debug, Args)]
pub(crate) struct Replay {
    #[command(flatten)]
    pub(super) filter: Filter,
    /// Send to mqtt, or only to webhook NAME, to output NAME of the operator, or on MQTT topics below topic PREFIX
    /// [default: to whoever gets live messages]
    #[arg(long, value_names = ["RECEIVER", "NAME"], num_args = 1..=2)]
    pub(super) to: Vec<String>,
    /// Maximum number of messages to send each second [default: 200]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(super) rate: Option<u32>,
    /// Go on after this message, as an interrupted run says
    #[arg(long, value_name = "ID")]
    pub(super) after: Option<String>,
    /// Only say how many would be sent
    #[arg(long)]
    pub(super) dry_run: bool,
}

/// Format of records.
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
    #[command(flatten)]
    selection: Selection,
    /// Kind: up, or an event such as down/sent [default: all]
    #[arg(long, value_name = "KIND")]
    kind: Option<String>,
    /// Version of the functions that ran
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..))]
    version: Option<u32>,
}

/// Which uplinks are wanted, or which records of any kind.
#[derive(Debug, Args)]
pub(crate) struct Selection {
    /// Device [default: all]
    #[arg(long, value_name = "ID")]
    device: Option<DevId>,
    /// From when on: a time such as 2026-11-28T10:00:00Z, or how long ago, such as 90m, 2h or 7d
    #[arg(long, value_name = "TIME")]
    since: Option<Moment>,
    /// Until when: a time, or how long ago
    #[arg(long, value_name = "TIME")]
    until: Option<Moment>,
    /// LoRaWAN port
    #[arg(long)]
    port: Option<u8>,
    /// Only uplinks whose functions failed, or whose validator refused them; of events, failed downlinks and joins
    #[arg(long)]
    failed: bool,
    /// Text that the fields, the failure, the logs or the warnings contain
    #[arg(long)]
    text: Option<String>,
    /// Condition on a field, such as 'fields.temperature > 30'
    #[arg(long, value_name = "CONDITION")]
    field: Option<String>,
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
        let Self { selection, kind, version } = self;
        let nanos = |moment: Option<Moment>| moment.map(|moment| moment.before(now).as_nanos());
        Query {
            app_id: app_id.to_string(),
            dev_id: selection.device.map(|device| device.to_string()).unwrap_or_default(),
            since: nanos(selection.since),
            until: nanos(selection.until),
            kind: kind.unwrap_or_default(),
            port: selection.port.map(u32::from),
            failed: selection.failed,
            text: selection.text.unwrap_or_default(),
            field: selection.field.unwrap_or_default(),
            version: version.unwrap_or_default(),
            ..Query::default()
        }
    }
}

impl Replay {
    /// The request to send these messages again.
    pub(super) fn send_again(self, now: Timestamp) -> anyhow::Result<SendAgain> {
        let Self { filter: Filter { selection, kind, version }, to, rate, after, dry_run } = self;
        Ok(SendAgain {
            dev_id: selection.device.map(|device| device.to_string()).unwrap_or_default(),
            since: selection.since.map(|moment| moment.before(now)),
            // What is recorded meanwhile is live.
            until: Some(selection.until.map_or(now, |moment| moment.before(now))),
            kind: kind.unwrap_or_default(),
            port: selection.port,
            failed: selection.failed,
            text: selection.text.unwrap_or_default(),
            field: selection.field.unwrap_or_default(),
            version: version.unwrap_or_default(),
            after: after.unwrap_or_default(),
            to: receivers(&to)?,
            per_s: rate.unwrap_or_default(),
            dry_run,
            ..SendAgain::default()
        })
    }
}

/// Parses `--to`; `None` stands for all who get live messages.
fn receivers(to: &[String]) -> anyhow::Result<Option<SendTo>> {
    let to: Vec<_> = to.iter().map(String::as_str).collect();
    Ok(Some(match to[..] {
        [] => return Ok(None),
        ["mqtt"] => SendTo::Mqtt,
        ["topic", prefix] => SendTo::Topic(prefix.to_owned()),
        ["webhook", id] => SendTo::Webhook(id.to_owned()),
        ["output", name] => SendTo::Output(name.to_owned()),
        _ => bail!(CommandError::invalid("--to takes mqtt, topic PREFIX, webhook NAME or output NAME")),
    }))
}

impl Selection {
    /// The request to decode these uplinks again.
    pub(super) fn decode_again(self, now: Timestamp) -> DecodeAgain {
        DecodeAgain {
            dev_id: self.device.map(|device| device.to_string()).unwrap_or_default(),
            since: self.since.map(|moment| moment.before(now)),
            // What is recorded meanwhile ran with the functions that are live by then.
            until: Some(self.until.map_or(now, |moment| moment.before(now))),
            port: self.port,
            failed: self.failed,
            text: self.text.unwrap_or_default(),
            field: self.field.unwrap_or_default(),
            ..DecodeAgain::default()
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
