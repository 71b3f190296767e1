//! `airlock history export`: records as JSON lines, CSV or Parquet, as the handler writes them.

use std::{
    io::{self, Write},
    path::Path,
};

use anyhow::{Context, bail};
use client::history::Export;
use types::AppId;
use workbench::PendingFile;

use super::args::{Filter, Format};
use crate::{network::Network, terminal::sanitize};

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
    match file {
        None => _ = copy(&mut export, &mut io::stdout()).await?,
        Some(path) => {
            // A file that is there stays until the new one is whole.
            let mut file = PendingFile::create(path).with_context(|| format!("cannot create {}", path.display()))?;
            let bytes = copy(&mut export, &mut file).await?;
            file.finish().with_context(|| format!("cannot write {}", path.display()))?;
            network.output.message(format_args!("Wrote {bytes} bytes to {}", path.display()))?;
        }
    }
    match export.unreadable_files() {
        None => Ok(()),
        Some(names) => bail!("the handler cannot read {}: their records are missing", sanitize(names)),
    }
}

/// Writes what comes, and returns how many bytes that was.
async fn copy(export: &mut Export, out: &mut impl Write) -> anyhow::Result<usize> {
    let mut bytes = 0;
    while let Some(part) = export.next().await? {
        bytes += part.len();
        out.write_all(&part).context("cannot write")?;
    }
    out.flush().context("cannot write")?;
    Ok(bytes)
}
