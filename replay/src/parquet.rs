//! Parquet files: our own history, and those of others with a row for each uplink.

mod cells;
mod chunks;

use std::{fs::File, sync::Arc};

use parquet::{
    errors::Result as ParquetResult,
    file::metadata::{ParquetMetaData, ParquetMetaDataReader},
};

use self::{
    cells::{Cell, Cells},
    chunks::Chunks,
};
use crate::{
    Batch, ColumnNames, Encoding, Error, Role, Source, Stored,
    columns::{self, missing, places},
    stored::{Found, Name},
};

/// How many rows are read at once.
const BATCH_ROWS: usize = 512;
/// Where the columns of our own history are that say what a row is, behind those of the roles.
const KIND: usize = Role::ALL.len();
const OUTCOME: usize = KIND + 1;
const COLUMNS: usize = OUTCOME + 1;

/// A Parquet file, read from its first row group to its last.
pub struct ParquetFile {
    name: String,
    chunks: Arc<Chunks>,
    metadata: ParquetMetaData,
    /// The place of the column of each role, and of our own two.
    places: [Option<usize>; COLUMNS],
    encoding: Encoding,
    /// The next row group, the columns of the one that is read, and how many of its rows are left.
    group: usize,
    cells: Vec<Option<Cells>>,
    left: usize,
    /// The number of the next row.
    next: u64,
}

impl ParquetFile {
    /// Reads the end of a file, which has the names of the columns.
    pub fn open(
        name: impl Into<String>,
        file: File,
        names: &ColumnNames,
        encoding: Option<Encoding>,
    ) -> Result<Self, Error> {
        let name = name.into();
        let chunks = Chunks::new(file).map_err(|source| Error::Read { name: name.clone(), source })?;
        let metadata = ParquetMetaDataReader::new().parse_and_finish(&chunks);
        let metadata = metadata.map_err(|source| Error::Parquet { name: name.clone(), source })?;
        let schema = metadata.file_metadata().schema_descr();
        let header: Vec<String> = schema.columns().iter().map(|column| column.path().string()).collect();
        let places = all_places(&name, &header, names)?;
        let payload = places[Role::Payload as usize].ok_or_else(|| missing(&name, &header))?;
        // Bytes need no encoding.
        let is_text = cells::is_text(&schema.column(payload));
        let encoding = match encoding.or_else(|| Encoding::detect(&header[payload], b"")) {
            Some(encoding) => encoding,
            None if !is_text => Encoding::Hex,
            None => {
                let column = &header[payload];
                return Err(Error::Invalid(format!(
                    "the column `{column}` of {name} is a text: use --encoding base64 or --encoding hex"
                )));
            }
        };
        let chunks = Arc::new(chunks);
        Ok(Self { name, chunks, metadata, places, encoding, group: 0, cells: Vec::new(), left: 0, next: 1 })
    }

    /// Begins to read a row group; false behind the last one.
    fn open_group(&mut self) -> ParquetResult<bool> {
        let Some(group) = self.metadata.row_groups().get(self.group) else { return Ok(false) };
        self.group += 1;
        self.left = group.num_rows().try_into().unwrap_or(0);
        let open = |place: &Option<usize>| place.map(|place| Cells::open(&self.chunks, group, place)).transpose();
        self.cells = self.places.iter().map(open).collect::<ParquetResult<_>>()?;
        Ok(true)
    }

    /// The next rows; none at the end.
    fn rows(&mut self) -> ParquetResult<Option<Vec<Found>>> {
        while self.left == 0 {
            if !self.open_group()? {
                return Ok(None);
            }
        }
        let count = self.left.min(BATCH_ROWS);
        self.left -= count;
        let take = |cells: &mut Option<Cells>| cells.as_mut().map_or(Ok(Vec::new()), |cells| cells.take(count));
        let columns = self.cells.iter_mut().map(take).collect::<ParquetResult<Vec<_>>>()?;
        let mut columns: Vec<_> = columns.into_iter().map(Vec::into_iter).collect();
        let mut row = || columns.iter_mut().map(|column| column.next().flatten()).collect();
        Ok(Some((0..count).map(|_| uplink(row(), self.encoding)).collect()))
    }
}

impl Source for ParquetFile {
    fn next(&mut self) -> Result<Option<Batch>, Error> {
        let rows = self.rows().map_err(|source| Error::Parquet { name: self.name.clone(), source })?;
        let first = self.next;
        Ok(rows.map(|rows| {
            self.next += rows.len() as u64;
            Batch::uplinks(first, rows)
        }))
    }

    fn unit(&self) -> &'static str {
        "row"
    }
}

fn all_places(file: &str, header: &[String], names: &ColumnNames) -> Result<[Option<usize>; COLUMNS], Error> {
    let mut all = [None; COLUMNS];
    all[..KIND].copy_from_slice(&places(file, header, names)?);
    let place = |name: &str| header.iter().position(|column| column == name);
    // A table of others may have one of these names for something else.
    if let (Some(kind), Some(outcome)) = (place("kind"), place("outcome")) {
        (all[KIND], all[OUTCOME]) = (Some(kind), Some(outcome));
    }
    Ok(all)
}

/// The uplink of a row, whose cells are in the order of the places.
fn uplink(mut row: Vec<Option<Cell>>, encoding: Encoding) -> Found {
    let mut take = |place: usize| row.get_mut(place).and_then(Option::take);
    if take(KIND).is_some_and(|kind| !kind.is("up")) {
        return Ok(None);
    }
    let is_decoded = take(OUTCOME).is_none_or(|outcome| outcome.is("decoded"));
    let mut text = |role: Role| take(role as usize).map(|cell| cell.text(role.name())).transpose();
    let mut name = |role| Ok::<_, String>(Name::new(text(role)?, None));
    let (application, device) = (name(Role::Application)?, name(Role::Device)?);
    let (id, object) = (text(Role::Id)?, text(Role::Object)?);
    let payload = take(Role::Payload as usize).map(|payload| payload.bytes(encoding)).transpose()?;
    Ok(Some(Stored {
        id: id.unwrap_or_default(),
        application,
        device,
        payload: payload.unwrap_or_default(),
        port: take(Role::Port as usize).map_or(Ok(0), Cell::port)?,
        time: take(Role::Time as usize).map(Cell::time).transpose()?,
        object: object
            .filter(|object| is_decoded && !object.is_empty())
            .as_deref()
            .map(columns::object)
            .transpose()?
            .flatten(),
    }))
}
