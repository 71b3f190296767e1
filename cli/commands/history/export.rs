//! `airlock history export`: records as JSON lines, CSV or Parquet, as the handler writes them.

use std::{
    fs::File,
    io::{self, BufWriter, Write},
    path::Path,
};

use anyhow::Context;
use client::history::Export;
use types::AppId;

use super::args::{Filter, Format};
use crate::network::Network;

/// Writes all records that are wanted.
pub(super) async fn run(
    network: &Network,
    app_id: &AppId,
    filter: Filter,
    file: Option<&Path>,
    format: Format,
) -> anyhow::Result<()> {
    let query = filter.query(app_id, network.clock.now());
    let credential = network.credential_for(app_id).await?;
    let announcement = network.announcement().await?;
    let mut export = Export::start(&announcement, app_id, &credential, &query, format.name()).await?;
    let out: Box<dyn Write> = match file {
        Some(path) => Box::new(File::create(path).with_context(|| format!("cannot create {}", path.display()))?),
        None => Box::new(io::stdout()),
    };
    let mut out = BufWriter::new(out);
    let mut bytes = 0;
    while let Some(part) = export.next().await? {
        bytes += part.len();
        out.write_all(&part).context("cannot write")?;
    }
    out.flush().context("cannot write")?;
    match file {
        Some(path) => network.output.message(format_args!("Wrote {bytes} bytes to {}", path.display())),
        None => Ok(()),
    }
}
