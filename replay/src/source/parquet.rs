//! Parquet files: our own history, and those of others with a row for each uplink.

mod cells;
mod corrected;
mod row;

use std::{fs::File, mem, sync::Arc};

use history::Chunks;
use parquet::{
    errors::Result as ParquetResult,
    file::metadata::{ParquetMetaData, ParquetMetaDataReader},
};

use self::{cells::Cells, corrected::corrections, row::uplink};
use crate::{
    Batch, ColumnNames, Encoding, Error, Role, UplinkSource,
    columns::{missing, places},
    own,
    stored::{Correction, StoredResult},
};

/// Number of rows that are read at once.
const BATCH_ROWS: usize = 512;
/// Place of the columns that only our own history has: behind those of the roles.
const OWN: usize = Role::ALL.len();
const COLUMNS: usize = OWN + own::Column::ALL.len();

/// A Parquet file, read from its first row group to its last.
pub struct ParquetFile {
    name: String,
    chunks: Arc<Chunks>,
    metadata: ParquetMetaData,
    /// The place of the column of each role, and of those of our own.
    places: [Option<usize>; COLUMNS],
    is_own: bool,
    /// Corrections in its rows, until they are handed out.
    corrections: Vec<Correction>,
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
        // Files of our own have checksums.
        let checked = metadata.and_then(|metadata| Ok((metadata, chunks.checked()?)));
        let (metadata, chunks) = checked.map_err(Error::parquet(&name))?;
        let schema = metadata.file_metadata().schema_descr();
        let header: Vec<String> = schema.columns().iter().map(|column| column.path().string()).collect();
        let (own, mut places) = (own::places(&header), [None; COLUMNS]);
        places[..OWN].copy_from_slice(&self::places(&name, &header, names)?);
        own.iter().for_each(|own| places[OWN..].copy_from_slice(own));
        // The nanoseconds belong to no other column of times.
        if places[Role::Time as usize].is_none_or(|place| header[place] != "received") {
            places[OWN + own::Column::ReceivedNanos as usize] = None;
        }
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
        let corrections = own.map_or(Ok(Vec::new()), |own| corrections(&name, &chunks, &metadata, &own))?;
        let (is_own, cells) = (own.is_some(), Vec::new());
        Ok(Self { name, chunks, metadata, places, is_own, corrections, encoding, group: 0, cells, left: 0, next: 1 })
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
    fn rows(&mut self) -> ParquetResult<Option<Vec<StoredResult>>> {
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
        Ok(Some((0..count).map(|_| uplink(row(), self.is_own, self.encoding)).collect()))
    }
}

impl UplinkSource for ParquetFile {
    fn next(&mut self) -> Result<Option<Batch>, Error> {
        let rows = self.rows().map_err(Error::parquet(&self.name))?;
        let first = self.next;
        Ok(rows.map(|rows| {
            self.next += rows.len() as u64;
            Batch::uplinks(first, rows).with_corrections(mem::take(&mut self.corrections))
        }))
    }

    fn unit(&self) -> &'static str {
        "row"
    }
}
