//! Printed results of commands: tables for people, and JSON or CSV for programs.

mod ago;
mod cell;
mod local_time;
mod record;
mod table;

use std::{io, sync::Arc};

use anyhow::{Context, ensure};
use clap::{Args, ValueEnum};
use rustix::termios::tcgetwinsize;
use serde_json::{Map, Value};
use types::{Clock, Timestamp};

use self::local_time::local_time;
pub(crate) use self::{cell::Cell, record::Record, table::Table};
use crate::terminal::{json_lines, sanitize, say, warn};

#[derive(Clone, Copy, Debug, Default, Args)]
#[command(next_help_heading = "Output options")]
pub(crate) struct OutputOptions {
    /// Format of results; messages go to standard error unless it is `table`
    #[arg(
        id = "output_format",
        long = "output",
        short = 'o',
        global = true,
        value_name = "FORMAT",
        value_enum,
        default_value_t
    )]
    format: Format,
    /// Print no messages, and only the first column of tables
    #[arg(id = "output_quiet", long = "quiet", short = 'q', global = true)]
    quiet: bool,
    /// Print table cells in full, even if lines become wider than the terminal
    #[arg(id = "output_wide", long = "wide", global = true)]
    wide: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people
    #[default]
    Table,
    /// An object, or an array of objects
    Json,
    /// An object per line
    Jsonl,
    /// A line of names, then a line per row
    Csv,
}

/// Printer of a command's results and messages.
#[derive(Clone)]
pub(crate) struct Output {
    options: OutputOptions,
    clock: Arc<dyn Clock>,
}

impl Output {
    pub(crate) fn new(options: OutputOptions, clock: Arc<dyn Clock>) -> Self {
        Self { options, clock }
    }

    /// Returns true if results are for people, and not for a program.
    pub(crate) fn is_table(&self) -> bool {
        self.options.format == Format::Table
    }

    /// Prints what was done. It is not the result of the command.
    pub(crate) fn message(&self, message: impl std::fmt::Display) -> anyhow::Result<()> {
        match self.options {
            OutputOptions { quiet: true, .. } => Ok(()),
            OutputOptions { format: Format::Table, .. } => say(message),
            _ => warn(message),
        }
    }

    /// Prints rows; if there are none, `none` as a message.
    pub(crate) fn table(&self, table: Table, none: impl std::fmt::Display) -> anyhow::Result<()> {
        match self.options {
            OutputOptions { format: Format::Table, .. } if table.is_empty() => self.message(none),
            OutputOptions { format: Format::Table, quiet: true, .. } => {
                table.first_column().try_for_each(|text| say(sanitize(text)))
            }
            OutputOptions { format: Format::Table, .. } => say(table.text(self.width())),
            OutputOptions { format: Format::Csv, .. } => csv(&table.names(), table.records()),
            _ => self.json(table.into_value()),
        }
    }

    /// Prints the properties of one thing.
    pub(crate) fn record(&self, record: Record) -> anyhow::Result<()> {
        match self.options.format {
            Format::Table => say(record.text(self.width())),
            Format::Csv => csv(&record.names(), [record.values()]),
            _ => self.json(record.into_value()),
        }
    }

    /// Prints a single value, and nothing but the value unless a format for programs is chosen.
    pub(crate) fn value(&self, name: &'static str, value: &str) -> anyhow::Result<()> {
        match self.options.format {
            Format::Table => say(value),
            Format::Csv => csv(&[name], [vec![value.to_owned()]]),
            _ => self.json(Value::Object(Map::from_iter([(name.to_owned(), value.into())]))),
        }
    }

    /// A time, which people also see relative to now.
    pub(crate) fn time(&self, time: Timestamp) -> Cell {
        Cell::new(format!("{} ({})", local_time(time), ago::describe(time, self.clock.now())), time.to_rfc3339())
    }

    /// A time with all its digits, which people also see relative to now.
    pub(crate) fn exact_time(&self, time: Timestamp) -> Cell {
        let exact = time.to_rfc3339();
        Cell::new(format!("{exact} ({})", ago::describe(time, self.clock.now())), exact)
    }

    /// Prints an object that has no columns.
    pub(crate) fn object(&self, value: Value) -> anyhow::Result<()> {
        self.check_columns()?;
        self.json(value)
    }

    /// Refuses CSV for results that have no columns; for those that arrive over time, before any arrives.
    pub(crate) fn check_columns(&self) -> anyhow::Result<()> {
        ensure!(self.options.format != Format::Csv, "these results have no columns for CSV: use `--output jsonl`");
        Ok(())
    }

    /// Prints one of many results that arrive over time as an object in a line.
    pub(crate) fn json_line(&self, value: &Value) -> anyhow::Result<()> {
        self.check_columns()?;
        say(json_lines(value, false)?)
    }

    /// Returns the width of the terminal in columns; `None` without a terminal, or if lines may be wide.
    fn width(&self) -> Option<usize> {
        let size = tcgetwinsize(io::stdout()).ok().filter(|size| size.ws_col > 0 && !self.options.wide);
        size.map(|size| size.ws_col.into())
    }

    fn json(&self, value: Value) -> anyhow::Result<()> {
        match (self.options.format, value) {
            (Format::Jsonl, Value::Array(rows)) => rows.iter().try_for_each(|row| say(json_lines(row, false)?)),
            (format, value) => say(json_lines(&value, format == Format::Json)?),
        }
    }
}

fn csv<N: AsRef<[u8]>>(names: &[N], rows: impl IntoIterator<Item = Vec<String>>) -> anyhow::Result<()> {
    let mut writer = csv::Writer::from_writer(io::stdout().lock());
    let written = writer
        .write_record(names)
        .and_then(|()| rows.into_iter().try_for_each(|row| writer.write_record(row.iter().map(|cell| sanitize(cell)))));
    let flushed = written.map_err(io::Error::from).and_then(|()| writer.flush());
    flushed.context("cannot write to standard output")
}
