//! The files that a replay writes beside what it prints.

use std::{
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
};

use replay::{OutputFormat, OutputRow, ParquetOutput, Updates, is_postgres};
use workbench::{BadInput, PendingFile, is_stdin};

use super::{
    args::ReplayCommand,
    codecs::Codec,
    has_parquet_name, print,
    report::{Summary, html, text},
};
use crate::terminal::{json_lines, say};

/// Files that are put in place once they are complete.
pub(super) struct Outputs {
    is_json: bool,
    html: Option<OutputFile>,
    lines: Option<OutputFile>,
    rows: Option<RowsFile>,
    sql: Option<(Updates, OutputFile)>,
}

struct OutputFile {
    path: PathBuf,
    out: BufWriter<PendingFile>,
}

struct RowsFile {
    path: PathBuf,
    out: ParquetOutput<PendingFile>,
}

impl Outputs {
    /// Begins the files that the arguments name.
    pub(super) fn create(command: &ReplayCommand) -> anyhow::Result<Self> {
        let create = |path: &Option<PathBuf>| path.as_deref().map(OutputFile::create).transpose();
        refuse_same(command)?;
        if command.sql.is_some() && !is_postgres(&command.from) {
            let reason = "`--sql` writes statements for PostgreSQL: use it with --from postgres://…";
            return Err(BadInput::Request(reason.to_owned()).into());
        }
        let sql = create(&command.sql)?.map(|file| (Updates::new(&command.table), file));
        let uplinks = command.output.as_deref();
        let lines = uplinks.filter(|path| !has_parquet_name(path)).map(OutputFile::create).transpose()?;
        let rows = uplinks.filter(|path| has_parquet_name(path)).map(RowsFile::create).transpose()?;
        Ok(Self { is_json: command.json, html: create(&command.html)?, lines, rows, sql })
    }

    /// Returns how each uplink is written, if there is a file for them.
    pub(super) fn format(&self) -> Option<OutputFormat> {
        match (&self.lines, &self.rows) {
            (Some(_), _) => Some(OutputFormat::JsonLines),
            (None, Some(_)) => Some(OutputFormat::Parquet),
            (None, None) => None,
        }
    }

    /// Writes what the statements of SQL are about.
    pub(super) fn begin(&mut self, command: &ReplayCommand, source: &str, codecs: &[Codec]) -> anyhow::Result<()> {
        let Some((updates, file)) = &mut self.sql else { return Ok(()) };
        let mut notes = vec![
            "New objects for the uplinks of which `airlock replay` found a difference.".to_owned(),
            format!("Source: {source}, table {}", command.table),
        ];
        notes.extend(codecs.iter().map(|codec| format!("Codec: {codec}")));
        file.write(updates.begin(&notes).as_bytes())
    }

    /// Adds lines or rows, and statements.
    pub(super) fn write(&mut self, lines: &[u8], rows: Vec<OutputRow>, sql: &[u8]) -> anyhow::Result<()> {
        self.lines.as_mut().map_or(Ok(()), |file| file.write(lines))?;
        self.rows.as_mut().map_or(Ok(()), |file| file.write(rows))?;
        self.sql.as_mut().map_or(Ok(()), |(_, file)| file.write(sql))
    }

    /// Puts the files in place, and prints the report.
    pub(super) fn finish(self, summary: &Summary<'_>) -> anyhow::Result<()> {
        if let Some(mut file) = self.html {
            file.write(html::html(summary)?.as_bytes())?;
            file.finish()?;
        }
        if let Some(file) = self.lines {
            file.finish()?;
        }
        if let Some(file) = self.rows {
            file.finish()?;
        }
        if let Some((updates, mut file)) = self.sql {
            file.write(updates.end(summary.report.updates).as_bytes())?;
            file.finish()?;
        }
        match self.is_json {
            true => say(json_lines(summary, false)?),
            false => print(&text::text(summary)),
        }
    }
}

/// One file cannot be two of those that are read and written. Standard output is for one of them, beside the report.
fn refuse_same(command: &ReplayCommand) -> Result<(), BadInput> {
    let written: Vec<&Path> =
        [&command.html, &command.output, &command.sql].into_iter().flatten().map(PathBuf::as_path).collect();
    let codecs = command.codec.iter().map(|codec| codec.file.as_path());
    let read: Vec<&Path> = codecs.chain(command.variables.as_deref()).chain([Path::new(&command.from)]).collect();
    let same = |one: &Path, other: &Path| match (one.canonicalize(), other.canonicalize()) {
        (Ok(one), Ok(other)) => one == other,
        _ => one == other,
    };
    for (number, path) in written.iter().enumerate() {
        if is_stdin(path) {
            let reason = "the report is printed: name a file, or /dev/stderr";
            return Err(BadInput::Request(reason.to_owned()));
        }
        if read.iter().chain(&written[..number]).any(|other| same(path, other)) {
            return Err(BadInput::Request(format!("{} is named twice: name another file", path.display())));
        }
    }
    Ok(())
}

impl OutputFile {
    fn create(path: &Path) -> Result<Self, BadInput> {
        let file = PendingFile::create(path).map_err(|source| unwritable(path, source))?;
        Ok(Self { path: path.to_owned(), out: BufWriter::new(file) })
    }

    fn write(&mut self, bytes: &[u8]) -> anyhow::Result<()> {
        Ok(self.out.write_all(bytes).map_err(|source| unwritable(&self.path, source))?)
    }

    fn finish(self) -> anyhow::Result<()> {
        let Self { path, out } = self;
        let file = out.into_inner().map_err(|error| unwritable(&path, error.into_error()))?;
        Ok(file.finish().map_err(|source| unwritable(&path, source))?)
    }
}

impl RowsFile {
    fn create(path: &Path) -> Result<Self, BadInput> {
        let out = PendingFile::create(path).and_then(ParquetOutput::new);
        Ok(Self { path: path.to_owned(), out: out.map_err(|source| unwritable(path, source))? })
    }

    fn write(&mut self, rows: Vec<OutputRow>) -> anyhow::Result<()> {
        Ok(self.out.write(rows).map_err(|source| unwritable(&self.path, source))?)
    }

    fn finish(self) -> anyhow::Result<()> {
        let Self { path, out } = self;
        Ok(out.finish().and_then(PendingFile::finish).map_err(|source| unwritable(&path, source))?)
    }
}

fn unwritable(path: &Path, source: io::Error) -> BadInput {
    BadInput::Unwritable { file: path.display().to_string(), source }
}
