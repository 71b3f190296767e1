//! `airlock history … --dir`: a directory of history, without the server that records there.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use anyhow::bail;
use api::history::Record as StoredRecord;
use bytes::Bytes;
use futures::TryStreamExt;
use handler::api::{WholeRecord, record_query, whole_record_message};
use history::{ExportPart, LIMIT_MAX, Page, Query, RecordId, RecordIdError, Skipped, StoredHistory};
use runtime::LimitsByName;
use types::AppId;

use super::{
    args::{Filter, Format},
    check_all_read,
    export::write,
};
use crate::{
    command_context::CommandContext,
    exit::CommandError,
    terminal::{sanitize, warn},
};

/// Maximum number of applications that an error names.
const NAMES_MAX: usize = 20;

/// A directory, and the application in it whose records are wanted.
pub(super) struct Directory {
    history: StoredHistory,
    pub(super) app_id: AppId,
}

impl Directory {
    /// Opens a directory, which has to have records of the application; without one, of a single one.
    pub(super) fn open(dir: &Path, app_id: Option<AppId>) -> anyhow::Result<Self> {
        let history = StoredHistory::open(dir)?;
        warn_skipped(history.skipped())?;
        let app_id = application(&history, dir, app_id)?;
        Ok(Self { history, app_id })
    }

    /// The newest records that are wanted, and the number of files that could not be read.
    pub(super) async fn records(
        &self,
        filter: Filter,
        limit: usize,
        context: &CommandContext,
    ) -> anyhow::Result<(Vec<StoredRecord>, usize)> {
        let mut query = self.query(filter, context)?;
        let (mut records, mut unread, mut named) = (Vec::new(), 0, BTreeSet::<PathBuf>::new());
        while records.len() < limit {
            query.limit = (limit - records.len()).min(LIMIT_MAX);
            let page = self.history.query(query.clone()).await?;
            let new: Vec<_> = page.skipped.into_iter().filter(|file| named.insert(file.path.clone())).collect();
            unread += warn_skipped(&new)?;
            records.extend(page.records.into_iter().map(|record| {
                let (limits, corrections) = (LimitsByName::new(), Page::default());
                whole_record_message(WholeRecord { record, limits, corrections })
            }));
            query.before = page.next;
            if query.before.is_none() {
                break;
            }
        }
        Ok((records, self.unread(unread)))
    }

    /// All that is known of a record.
    pub(super) async fn record(&self, id: &str) -> anyhow::Result<StoredRecord> {
        let parsed = id.parse::<RecordId>();
        let parsed = parsed.map_err(|error: RecordIdError| CommandError::invalid(error.to_string()))?;
        match self.history.get(&self.app_id, parsed).await? {
            Ok(record) => {
                let limits = self.history.limits(&record)?;
                let limits = limits.or_else(|skipped| warn_skipped_limits(&skipped))?;
                let corrections = self.history.corrections(&record).await?;
                warn_skipped(&corrections.skipped)?;
                Ok(whole_record_message(WholeRecord { record, limits, corrections }))
            }
            Err(skipped) => {
                if self.unread(warn_skipped(&skipped)?) > 0 {
                    bail!(CommandError::unavailable(format!("Record {id} may be in a file that cannot be read")));
                }
                bail!(CommandError::not_found(format!("Record {id} not found")))
            }
        }
    }

    /// Writes all records that are wanted to a file, or to standard output.
    pub(super) async fn export(
        &self,
        filter: Filter,
        (file, format): (Option<&Path>, Format),
        context: &CommandContext,
    ) -> anyhow::Result<()> {
        let (query, format) = (self.query(filter, context)?, format.name().parse()?);
        let mut skipped = Vec::new();
        let parts = self.history.export(query, format).map_err(anyhow::Error::from).map_ok(|part| match part {
            ExportPart::Bytes(bytes) => bytes,
            ExportPart::Unreadable(files) => {
                skipped = files;
                Bytes::new()
            }
        });
        write(context, file, parts).await?;
        check_all_read(self.unread(warn_skipped(&skipped)?))
    }

    /// The number of files that could not be read: so many now, and those when the directory was opened.
    fn unread(&self, skipped: usize) -> usize {
        self.history.skipped().len() + skipped
    }

    fn query(&self, filter: Filter, context: &CommandContext) -> anyhow::Result<Query> {
        let network_kinds: Vec<&str> = [&chirpstack::NETWORK_KINDS[..], &things_stack::NETWORK_KINDS].concat();
        let query = filter.query(&self.app_id, context.clock.now());
        let query = record_query(self.app_id.clone(), query, &network_kinds);
        let query = query.map_err(|error| CommandError::invalid(error.to_string()))?;
        // Its pages need not fit into a response.
        Ok(Query { bytes_max: Query::of(self.app_id.clone()).bytes_max, ..query })
    }
}

/// The application with this id, or the only one.
fn application(history: &StoredHistory, dir: &Path, named: Option<AppId>) -> anyhow::Result<AppId> {
    let (applications, dir) = (history.applications()?, dir.display());
    let names = || applications.iter().take(NAMES_MAX).map(AppId::as_str).collect::<Vec<_>>().join(", ");
    // Its records may be in a file that was not read.
    let may_be_there =
        |app_id: &AppId| applications.contains(app_id) || history.skipped().iter().any(|file| !file.is_foreign);
    let mut ids = applications.iter();
    match (named, ids.next(), ids.next()) {
        (Some(app_id), ..) if may_be_there(&app_id) => Ok(app_id),
        (_, None, _) => bail!(CommandError::not_found(format!(
            "there are no records in {dir}: name the directory that has `tail`, or `app=` and an id"
        ))),
        (Some(app_id), ..) => {
            let names = names();
            bail!(CommandError::not_found(format!(
                "there are no records of {app_id} in {dir}: it has those of {names}"
            )))
        }
        (None, Some(only), None) => Ok(only.clone()),
        (None, Some(_), Some(_)) => {
            let names = names();
            bail!(CommandError::invalid(format!("{dir} has several applications: choose one with --app-id: {names}")))
        }
    }
}

/// Names the file that has limits.
fn warn_skipped_limits(Skipped { path, reason, .. }: &Skipped) -> anyhow::Result<LimitsByName> {
    let (path, reason) = (path.display().to_string(), sanitize(reason));
    warn(format_args!("cannot read {}: {reason}: the limits are not known", sanitize(&path)))?;
    Ok(LimitsByName::new())
}

/// Names files that are not read, and returns the number of those whose records are missing.
fn warn_skipped(files: &[Skipped]) -> anyhow::Result<usize> {
    for Skipped { path, reason, is_foreign } in files {
        let (path, reason) = (path.display().to_string(), sanitize(reason));
        let path = sanitize(&path);
        if *is_foreign {
            warn(format_args!("{path} is left out: {reason}"))?;
        } else {
            warn(format_args!("cannot read {path}: {reason}: records are missing"))?;
        }
    }
    Ok(files.iter().filter(|file| !file.is_foreign).count())
}
