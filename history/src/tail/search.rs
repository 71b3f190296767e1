//! Searches the blocks of a segment.

use crate::{
    Error, Skipped,
    query::{Filter, Shared},
    tail::{
        codec,
        index::{BlockPlace, Index},
        segment::Segment,
    },
};

/// Adds what a query wants of a segment, as far as it is among the best. Blocks that cannot be read are skipped.
pub(crate) fn search(
    segment: &Segment,
    (filter, best): (&Filter, &Shared<'_>),
    skip: &dyn Fn(Skipped),
) -> Result<(), Error> {
    let mut places = places(segment, filter);
    if !filter.query.oldest_first {
        places.reverse();
    }
    for place in places {
        best.check()?;
        if best.admits_any(place.first, place.last) {
            let searched = search_block(segment, &place, filter, best);
            searched.or_else(|error| Skipped::of(error).map(skip))?;
        }
    }
    Ok(())
}

fn search_block(segment: &Segment, place: &BlockPlace, filter: &Filter, best: &Shared<'_>) -> Result<(), Error> {
    let block = segment.read(place)?;
    let bound = best.bound();
    for record in codec::records(&block.records) {
        let head = codec::decode_head(block.writer, record);
        let is_wanted =
            |head: codec::Head<'_>| bound.admits(head.id) && filter.accepts_head(head.id, head.app_id, head.dev_id);
        let view = if head.is_some_and(is_wanted) { codec::decode(block.writer, record) } else { None };
        if let Some(view) = view.filter(|view| filter.accepts_rest(view)) {
            best.offer(view.id, || view.to_record());
        }
    }
    Ok(())
}

/// The blocks that can have wanted records, oldest first.
pub(super) fn places(segment: &Segment, filter: &Filter) -> Vec<BlockPlace> {
    segment.index(|index: &Index| index.blocks.iter().filter(|place| may_be_in(filter, place)).cloned().collect())
}

/// Returns true if a block can have wanted records.
fn may_be_in(filter: &Filter, place: &BlockPlace) -> bool {
    filter.overlaps(place.first, place.last) && filter.device().is_none_or(|device| place.may_have(device))
}
