//! Corrections in the records of our own files. Rows are sorted by device, so these are read first.

use std::sync::Arc;

use history::Chunks;
use parquet::{
    errors::Result as ParquetResult,
    file::{
        metadata::{ParquetMetaData, RowGroupMetaData},
        statistics::Statistics,
    },
};

use super::{
    BATCH_ROWS,
    cells::{Cell, Cells},
};
use crate::{
    Error,
    own::{Column, Places},
    revisions::{CORRECTED_MAX, too_many},
    stored::Correction,
};

/// The corrections in a file.
pub(super) fn corrections(
    name: &str,
    chunks: &Arc<Chunks>,
    metadata: &ParquetMetaData,
    places: &Places,
) -> Result<Vec<Correction>, Error> {
    let [Some(corrects), Some(revision)] = [Column::Corrects, Column::Revision].map(|column| places[column as usize])
    else {
        return Ok(Vec::new());
    };
    let mut found = Vec::new();
    for group in metadata.row_groups() {
        if !has_none(group, corrects) {
            let read = of_group(chunks, group, [corrects, revision], &mut found);
            read.map_err(Error::parquet(name))?;
        }
        if found.len() > CORRECTED_MAX {
            return Err(too_many());
        }
    }
    Ok(found)
}

fn has_none(group: &RowGroupMetaData, corrects: usize) -> bool {
    let nulls = group.column(corrects).statistics().and_then(Statistics::null_count_opt);
    nulls.is_some_and(|nulls| u64::try_from(group.num_rows()) == Ok(nulls))
}

fn of_group(
    chunks: &Arc<Chunks>,
    group: &RowGroupMetaData,
    places: [usize; 2],
    found: &mut Vec<Correction>,
) -> ParquetResult<()> {
    let [corrects, revisions] = places.map(|place| Cells::open(chunks, group, place));
    let (mut corrects, mut revisions) = (corrects?, revisions?);
    let mut left = usize::try_from(group.num_rows()).unwrap_or(0);
    while left > 0 {
        let count = left.min(BATCH_ROWS);
        left -= count;
        let rows = corrects.take(count)?.into_iter().zip(revisions.take(count)?);
        found.extend(rows.filter_map(correction));
    }
    Ok(())
}

/// One that cannot be read is reported with its uplink.
fn correction((corrects, revision): (Option<Cell>, Option<Cell>)) -> Option<Correction> {
    let original = corrects?.as_text()?.parse().ok()?;
    Some(Correction { original, revision: revision?.number()? as u32 })
}
