//! `airlock history export`: records as JSON lines, CSV or Parquet, as the handler writes them.

use std::{
    io::{self, Write},
    path::Path,
    pin::pin,
};

use anyhow::{Context, bail};
use bytes::Bytes;
use client::history::Export;
use futures::{Stream, TryStreamExt, stream};
use types::AppId;
use workbench::PendingFile;

use super::args::{Filter, Format};
use crate::{command_context::CommandContext, exit::CommandError, terminal::sanitize};

/// Writes all records that are wanted.
pub(super) async fn run(
    context: &CommandContext,
    app_id: &AppId,
    filter: Filter,
    file: Option<&Path>,
    format: Format,
) -> anyhow::Result<()> {
    let query = filter.query(app_id, context.clock.now());
    let credential = context.credential_for(app_id).await?;
    let announcement = context.announcement().await?;
    let mut export = Export::start(&announcement, app_id, &credential, &query, format.name()).await?;
    let parts = stream::try_unfold(&mut export, async |export| {
        let part = export.next().await?;
        anyhow::Ok(part.map(|part| (part, export)))
    });
    write(context, file, parts).await?;
    match export.unreadable_files() {
        None => Ok(()),
        Some(names) => {
            let names = sanitize(names);
            bail!(CommandError::unavailable(format!("the handler cannot read {names}: records are missing")))
        }
    }
}

/// Writes what comes to a file, or to standard output.
pub(super) async fn write(
    context: &CommandContext,
    file: Option<&Path>,
    parts: impl Stream<Item = anyhow::Result<Bytes>>,
) -> anyhow::Result<()> {
    let Some(path) = file else { return copy(parts, &mut io::stdout(), "standard output").await.map(drop) };
    // A file that is there stays until the new one is whole.
    let name = path.display().to_string();
    let mut file = PendingFile::create(path).with_context(|| format!("cannot create {name}"))?;
    let bytes = copy(parts, &mut file, &name).await?;
    file.finish().with_context(|| format!("cannot write {name}"))?;
    context.output.message(format_args!("Wrote {bytes} bytes to {name}"))
}

/// Writes what comes to `out`, which has this name, and returns how many bytes that was.
async fn copy(
    parts: impl Stream<Item = anyhow::Result<Bytes>>,
    out: &mut impl Write,
    name: &str,
) -> anyhow::Result<usize> {
    let mut parts = pin!(parts);
    let mut bytes = 0;
    while let Some(part) = parts.try_next().await? {
        bytes += part.len();
        out.write_all(&part).with_context(|| format!("cannot write to {name}"))?;
    }
    out.flush().with_context(|| format!("cannot write to {name}"))?;
    Ok(bytes)
}
