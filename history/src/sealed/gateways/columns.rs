//! The gateways of a row group, column by column, until they are written.

use std::io::Write;

use parquet::{
    data_type::{DataType, FloatType, Int32Type, Int64Type},
    errors::Result,
    file::writer::SerializedRowGroupWriter,
};
use types::Timestamp;

use super::{
    Values,
    level::{EMPTY, GATEWAY, VALUE, WHOLE},
    split::Split,
};
use crate::{
    record::{View, moment},
    sealed::{
        column::{
            self,
            texts::{Levels, Texts},
        },
        schema::GATEWAYS_MAX,
    },
};

/// The columns of gateways, each with a level for every gateway, and for every row without one.
#[derive(Default)]
pub(crate) struct GatewayColumns {
    /// Zero for the first gateway of a row.
    repetition: Vec<i16>,
    gtw_id: Leaf<Texts>,
    timestamp: Leaf<Vec<i32>>,
    time: Leaf<Vec<i64>>,
    time_nanos: Leaf<Vec<i32>>,
    channel: Leaf<Vec<i32>>,
    rssi: Leaf<Vec<f32>>,
    snr: Leaf<Vec<f32>>,
    metadata: Leaf<Texts>,
}

/// Values, and the definition levels that say where they are.
#[derive(Default)]
struct Leaf<T> {
    levels: Vec<i16>,
    values: T,
}

/// The rest of the metadata of some rows.
#[derive(Default)]
pub(crate) struct Metadata {
    text: String,
    ends: Vec<usize>,
}

impl GatewayColumns {
    /// Adds rows, as far as their metadata can be split.
    pub(crate) fn add(&mut self, rows: &[View<'_>]) -> Metadata {
        let (mut left, mut split) = (Metadata::default(), Split::default());
        for row in rows {
            let is_split = !row.metadata.is_empty() && split.fill(row.metadata, row.received).is_some();
            if !is_split || self.repetition.len().saturating_add(split.count()) > GATEWAYS_MAX {
                left.push(row.metadata);
                self.push_level(WHOLE);
            } else {
                left.push(&split.metadata);
                self.push_list(&split, row.received);
            }
        }
        left
    }

    fn push_list(&mut self, split: &Split<'_>, received: Timestamp) {
        let start = self.repetition.len();
        for (values, metadata) in split.gateways() {
            self.repetition.push((self.repetition.len() > start).into());
            self.push_gateway(values, metadata, received);
        }
        if self.repetition.len() == start {
            self.push_level(EMPTY);
        }
    }

    fn push_gateway(&mut self, values: &Values<'_>, metadata: &str, received: Timestamp) {
        self.metadata.levels.push(GATEWAY);
        self.metadata.values.push(metadata.as_bytes());
        if let Some(gtw_id) = self.gtw_id.noted(values.gtw_id) {
            self.gtw_id.values.push(gtw_id.as_bytes());
        }
        // What it shares with the whole uplink takes no room.
        let time = values.time.filter(|time| *time != received).map(moment::parts);
        self.time.push(time.map(|(millis, _)| millis));
        self.time_nanos.push(time.map(|(_, nanos)| nanos as i32).filter(|nanos| *nanos > 0));
        self.timestamp.push(values.timestamp.map(|timestamp| timestamp as i32));
        self.channel.push(values.channel.map(|channel| channel as i32));
        self.rssi.push(values.rssi);
        self.snr.push(values.snr);
    }

    /// Adds a row without gateways.
    fn push_level(&mut self, level: i16) {
        self.repetition.push(0);
        for levels in [
            &mut self.gtw_id.levels,
            &mut self.timestamp.levels,
            &mut self.time.levels,
            &mut self.time_nanos.levels,
            &mut self.channel.levels,
            &mut self.rssi.levels,
            &mut self.snr.levels,
            &mut self.metadata.levels,
        ] {
            levels.push(level);
        }
    }

    /// Writes all columns.
    pub(crate) fn write<W: Write + Send>(self, group: &mut SerializedRowGroupWriter<'_, W>) -> Result<()> {
        let repetition = &*self.repetition;
        self.gtw_id.write((repetition, VALUE), group)?;
        write::<Int32Type, W>(&self.timestamp, repetition, group)?;
        write::<Int64Type, W>(&self.time, repetition, group)?;
        write::<Int32Type, W>(&self.time_nanos, repetition, group)?;
        write::<Int32Type, W>(&self.channel, repetition, group)?;
        write::<FloatType, W>(&self.rssi, repetition, group)?;
        write::<FloatType, W>(&self.snr, repetition, group)?;
        self.metadata.write((repetition, GATEWAY), group)
    }
}

fn write<T: DataType, W: Write + Send>(
    leaf: &Leaf<Vec<T::T>>,
    repetition: &[i16],
    group: &mut SerializedRowGroupWriter<'_, W>,
) -> Result<()> {
    let mut out = column::next(group)?;
    out.typed::<T>().write_batch(&leaf.values, Some(&leaf.levels), Some(repetition))?;
    out.close()
}

impl<T> Leaf<T> {
    /// Notes whether a gateway has a value.
    fn noted<V>(&mut self, value: Option<V>) -> Option<V> {
        self.levels.push(if value.is_some() { VALUE } else { GATEWAY });
        value
    }
}

impl<T> Leaf<Vec<T>> {
    fn push(&mut self, value: Option<T>) {
        let value = self.noted(value);
        self.values.extend(value);
    }
}

impl Leaf<Texts> {
    fn write<W: Write + Send>(
        self,
        (repetition, value): (&[i16], i16),
        group: &mut SerializedRowGroupWriter<'_, W>,
    ) -> Result<()> {
        let mut out = column::next(group)?;
        let levels = Levels { definition: &self.levels, repetition: Some(repetition), value };
        self.values.write(out.typed(), Some(levels))?;
        out.close()
    }
}

impl Metadata {
    fn push(&mut self, text: &str) {
        self.text.push_str(text);
        self.ends.push(self.text.len());
    }

    /// The metadata of each row.
    pub(crate) fn texts(&self) -> impl Iterator<Item = &str> {
        let starts = [0].into_iter().chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, end)| self.text.get(start..*end).unwrap_or_default())
    }
}
