//! Reads the results of a device's uplinks in a segment, for a chart.

use crate::{
    Error, Skipped,
    chart::{batch::Batch, collector::Collector},
    query::Filter,
    tail::{codec, index::BlockPlace, search, segment::Segment},
};

/// Adds the uplinks of a segment to a chart. Blocks that cannot be read are skipped.
pub(crate) fn read(
    segment: &Segment,
    (filter, collector): (&Filter, &Collector<'_>),
    skip: &dyn Fn(Skipped),
) -> Result<(), Error> {
    let mut batch = Batch::new(collector);
    for place in search::places(segment, filter) {
        collector.check()?;
        if collector.admits_any(place.last) {
            let read = read_block(segment, &place, filter, &mut batch);
            read.or_else(|error| Skipped::of(error).map(skip))?;
        }
    }
    batch.flush();
    Ok(())
}

fn read_block(segment: &Segment, place: &BlockPlace, filter: &Filter, batch: &mut Batch<'_>) -> Result<(), Error> {
    let block = segment.read(place)?;
    for record in codec::records(&block.records) {
        let head = codec::decode_head(block.writer, record);
        let is_wanted = |head: codec::Head<'_>| filter.accepts_head(head.id, head.app_id, head.dev_id);
        let view = if head.is_some_and(is_wanted) { codec::decode(block.writer, record) } else { None };
        if let Some(view) = view.filter(|view| filter.accepts_rest(view)) {
            batch.add(view.id, view.outcome, view.result);
        }
    }
    Ok(())
}
