//! The uplink of a row.

use history::RecordId;
use types::Timestamp;

use super::{OWN, cells::Cell};
use crate::{
    Encoding, RecordedUplink, Role, columns,
    own::{self, Column, Own},
    stored::{Name, StoredResult},
};

/// The uplink of a row, whose cells are in the order of the roles and of our own columns.
pub(super) fn uplink(mut row: Vec<Option<Cell>>, is_own: bool, encoding: Encoding) -> StoredResult {
    let own = OwnCells(row.split_off(OWN));
    if own.cell(Column::Kind).is_some_and(|kind| !kind.is("up")) {
        return Ok(None);
    }
    let is_decoded = own.cell(Column::Outcome).is_none_or(|outcome| outcome.is("decoded"));
    let uplink = stored(row, is_decoded, encoding)?;
    if !is_own {
        return Ok(Some(uplink));
    }
    let id = own.id().unwrap_or_else(|| uplink.id.clone());
    let time = uplink.time.map(|time| own.exact(time));
    Ok(Some(own.read()?.complete(RecordedUplink { id, time, ..uplink })))
}

/// Reads the cells that any row has, also of others. Fails if one has another type.
fn stored(mut row: Vec<Option<Cell>>, is_decoded: bool, encoding: Encoding) -> Result<RecordedUplink, String> {
    let mut take = |role: Role| row.get_mut(role as usize).and_then(Option::take);
    let mut text = |role: Role| take(role).map(|cell| cell.text(role.name())).transpose();
    let mut name = |role| Ok::<_, String>(Name::new(text(role)?, None));
    let (application, device, profile) = (name(Role::Application)?, name(Role::Device)?, name(Role::Profile)?);
    let (id, object) = (text(Role::Id)?, text(Role::Object)?);
    let payload = take(Role::Payload).map(|payload| payload.bytes(encoding)).transpose()?;
    let object = object.filter(|object| is_decoded && !object.is_empty());
    Ok(RecordedUplink {
        id: id.unwrap_or_default(),
        application,
        device,
        payload: payload.unwrap_or_default(),
        port: take(Role::Port).map_or(Ok(0), Cell::port)?,
        time: take(Role::Time).map(Cell::time).transpose()?,
        object: object.as_deref().map(columns::object).transpose()?.flatten(),
        profile,
        ..RecordedUplink::default()
    })
}

/// The cells of our own columns.
struct OwnCells(Vec<Option<Cell>>);

impl OwnCells {
    fn cell(&self, column: Column) -> Option<&Cell> {
        self.0.get(column as usize)?.as_ref()
    }

    /// Unsigned numbers are signed ones of the same bits in files.
    fn number(&self, column: Column) -> Option<i64> {
        self.cell(column).and_then(Cell::number)
    }

    fn text(&self, column: Column) -> Option<&str> {
        self.cell(column).and_then(Cell::as_text)
    }

    /// The time with the nanoseconds that its column lacks.
    fn exact(&self, time: Timestamp) -> Timestamp {
        let nanos = self.number(Column::ReceivedNanos).unwrap_or_default();
        Timestamp::from_nanos(time.as_nanos().saturating_add(nanos))
    }

    fn id(&self) -> Option<String> {
        let [recorded, writer, number] =
            [Column::Recorded, Column::Writer, Column::Number].map(|column| self.number(column));
        Some(RecordId::new(recorded?.try_into().ok()?, writer? as u32, number? as u32).to_string())
    }

    fn read(&self) -> Result<Own, String> {
        let corrects = self.text(Column::Corrects).map(str::parse).transpose();
        Ok(Own {
            seed: self.number(Column::Seed).map(|seed| seed as u64),
            counter: self.number(Column::Counter).unwrap_or_default() as u32,
            extra: self.text(Column::Extra).map_or(Ok(String::new()), own::object)?,
            profile: self.text(Column::Metadata).map(own::profile).unwrap_or_default(),
            corrects: corrects.map_err(|_| own::NO_ID)?,
            revision: self.number(Column::Revision).unwrap_or_default() as u32,
        })
    }
}
