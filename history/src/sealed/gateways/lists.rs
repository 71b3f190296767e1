//! Reads the gateways of some rows.

use parquet::{
    data_type::{ByteArray, ByteArrayType, DataType, FloatType, Int32Type, Int64Type},
    errors::{ParquetError, Result as ParquetResult},
};

use super::{
    Values,
    level::{EMPTY, GATEWAY, VALUE, WHOLE},
};
use crate::{
    record::moment,
    sealed::{
        file::{ColumnRows, Group},
        schema::Column,
        selection::Selection,
    },
};

/// The columns of gateways of a row group, read from first to last.
pub(crate) struct Lists {
    gtw_id: ColumnRows<ByteArrayType>,
    timestamp: ColumnRows<Int32Type>,
    time: ColumnRows<Int64Type>,
    time_nanos: ColumnRows<Int32Type>,
    channel: ColumnRows<Int32Type>,
    rssi: ColumnRows<FloatType>,
    snr: ColumnRows<FloatType>,
    metadata: ColumnRows<ByteArrayType>,
}

/// Place in each column, while lists are shown one after the other.
pub(crate) struct ListCursor<'a> {
    lists: &'a Lists,
    level: usize,
    /// Number of values passed in each column.
    passed: Passed,
    gateways: Vec<(Values<'a>, &'a str)>,
}

#[derive(Default)]
struct Passed {
    gtw_id: usize,
    timestamp: usize,
    time: usize,
    time_nanos: usize,
    channel: usize,
    rssi: usize,
    snr: usize,
    metadata: usize,
}

impl Lists {
    pub(crate) fn open(group: Group<'_>) -> ParquetResult<Self> {
        Ok(Self {
            gtw_id: group.read(Column::GatewayId)?,
            timestamp: group.read(Column::GatewayTimestamp)?,
            time: group.read(Column::GatewayTime)?,
            time_nanos: group.read(Column::GatewayTimeNanos)?,
            channel: group.read(Column::GatewayChannel)?,
            rssi: group.read(Column::GatewayRssi)?,
            snr: group.read(Column::GatewaySnr)?,
            metadata: group.read(Column::GatewayMetadata)?,
        })
    }

    /// Reads the lists of these rows, which follow those that were read before.
    pub(crate) fn take(&mut self, rows: &Selection) -> ParquetResult<()> {
        self.gtw_id.take(rows)?;
        self.timestamp.take(rows)?;
        self.time.take(rows)?;
        self.time_nanos.take(rows)?;
        self.channel.take(rows)?;
        self.rssi.take(rows)?;
        self.snr.take(rows)?;
        self.metadata.take(rows)
    }

    pub(crate) fn cursor(&self) -> ListCursor<'_> {
        ListCursor { lists: self, level: 0, passed: Passed::default(), gateways: Vec::new() }
    }
}

impl<'a> ListCursor<'a> {
    /// The gateways of the next row, each with its metadata. None if that of the row is whole.
    pub(crate) fn next_list(&mut self) -> ParquetResult<Option<&[(Values<'a>, &'a str)]>> {
        self.gateways.clear();
        let lists = self.lists;
        let metadata = &lists.metadata;
        match metadata.levels.get(self.level).copied() {
            Some(level @ (WHOLE | EMPTY)) => {
                self.level += 1;
                return Ok((level == EMPTY).then_some(self.gateways.as_slice()));
            }
            Some(_) => {}
            None => return Err(damaged()),
        }
        loop {
            let gateway = self.gateway()?;
            self.gateways.push(gateway);
            self.level += 1;
            if metadata.repetition.get(self.level).is_none_or(|level| *level == 0) {
                return Ok(Some(self.gateways.as_slice()));
            }
        }
    }

    fn gateway(&mut self) -> ParquetResult<(Values<'a>, &'a str)> {
        let (lists, passed, level) = (self.lists, &mut self.passed, self.level);
        let gtw_id = value(&lists.gtw_id, (level, VALUE), &mut passed.gtw_id)?;
        let metadata = value(&lists.metadata, (level, GATEWAY), &mut passed.metadata)?;
        let millis = value(&lists.time, (level, VALUE), &mut passed.time)?;
        let nanos = value(&lists.time_nanos, (level, VALUE), &mut passed.time_nanos)?.copied().unwrap_or(0);
        let timestamp = value(&lists.timestamp, (level, VALUE), &mut passed.timestamp)?;
        let channel = value(&lists.channel, (level, VALUE), &mut passed.channel)?;
        let values = Values {
            gtw_id: gtw_id.map(text).transpose()?,
            timestamp: timestamp.map(|timestamp| *timestamp as u32),
            time: millis.map(|millis| moment::of_parts(*millis, nanos.into())),
            channel: channel.map(|channel| *channel as u32),
            rssi: value(&lists.rssi, (level, VALUE), &mut passed.rssi)?.copied(),
            snr: value(&lists.snr, (level, VALUE), &mut passed.snr)?.copied(),
        };
        Ok((values, metadata.map_or(Ok(""), text)?))
    }
}

/// The value at a place, if the level there says that there is one.
fn value<'a, T: DataType>(
    column: &'a ColumnRows<T>,
    (place, value_level): (usize, i16),
    passed: &mut usize,
) -> ParquetResult<Option<&'a T::T>> {
    if *column.levels.get(place).ok_or_else(damaged)? < value_level {
        return Ok(None);
    }
    let value = column.values.get(*passed).ok_or_else(damaged)?;
    *passed += 1;
    Ok(Some(value))
}

fn text(bytes: &ByteArray) -> ParquetResult<&str> {
    str::from_utf8(bytes.data()).map_err(|_| damaged())
}

fn damaged() -> ParquetError {
    ParquetError::General("a list of gateways is not valid".to_owned())
}
