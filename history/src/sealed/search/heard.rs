//! Reads when devices were last heard: of each row its id and device, and no other column but those that select it.

use parquet::{
    data_type::{ByteArray, ByteArrayType},
    errors::Result as ParquetResult,
};

use super::{ids, is_excluded, present, select, select_bytes};
use crate::{
    Error, RecordId,
    query::{Filter, Heard},
    sealed::{
        file::{Group, SealedFile},
        schema::{Column, PAGE_ROWS},
        selection::Selection,
    },
};

/// Notes the uplinks of a file. The file may be damaged.
pub(crate) fn read(file: &SealedFile, filter: &Filter, heard: &Heard<'_>) -> Result<ParquetResult<()>, Error> {
    for group in file.groups() {
        heard.check()?;
        if let Err(damaged) = read_group(group, filter, heard) {
            return Ok(Err(damaged));
        }
        file.release();
    }
    Ok(Ok(()))
}

fn read_group(group: Group<'_>, filter: &Filter, heard: &Heard<'_>) -> ParquetResult<()> {
    if is_excluded(group, filter) {
        return Ok(());
    }
    let app_id = filter.query.app_id.as_str().as_bytes();
    let rows = select_bytes(group, select(group, filter)?, Column::AppId, |found| found == app_id)?;
    let ids = ids(group, &rows, filter)?;
    let rows = Selection::of(ids.iter().map(|(_, row)| *row));
    if rows.is_empty() {
        return Ok(());
    }
    group.need(&[Column::DevId], &rows)?;
    let mut devices = group.read::<ByteArrayType>(Column::DevId)?;
    let note = |(device, last): (ByteArray, RecordId)| {
        // What was removed of a device is the oldest, so that its last uplink says whether any is left.
        if filter.accepts_head(last, app_id, device.data()) {
            heard.note(device.data(), last);
        }
    };
    let (mut ids, mut run): (_, Option<(ByteArray, RecordId)>) = (ids.into_iter(), None);
    for part in rows.parts(PAGE_ROWS) {
        devices.take(&part)?;
        for (device, (id, _)) in present(&devices.values, &devices.levels).zip(&mut ids) {
            let Some(device) = device else { continue };
            run = match run.take() {
                // Rows are in the order of devices.
                Some((same, last)) if same == *device => Some((same, id.max(last))),
                other => {
                    other.into_iter().for_each(note);
                    Some((device.clone(), id))
                }
            };
        }
    }
    run.into_iter().for_each(note);
    Ok(())
}
