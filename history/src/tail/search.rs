//! Searches the blocks of a segment.

use crate::{
    Error,
    query::{Best, Filter},
    tail::{
        codec,
        segment::{BlockPlace, Segment},
    },
};

/// Adds what a query wants of a segment, as far as it is among the best. `check` says when to stop.
pub(crate) fn search(
    segment: &Segment,
    filter: &Filter,
    best: &mut Best,
    check: &dyn Fn() -> Result<(), Error>,
) -> Result<(), Error> {
    let places = |index: &super::segment::Index| -> Vec<BlockPlace> {
        index.blocks.iter().filter(|place| filter.may_be_in(place)).cloned().collect()
    };
    let mut places = segment.index(places);
    if !filter.query.oldest_first {
        places.reverse();
    }
    for place in places {
        check()?;
        if best.admits_any(place.first, place.last) {
            search_block(segment, &place, filter, best)?;
        }
    }
    Ok(())
}

fn search_block(segment: &Segment, place: &BlockPlace, filter: &Filter, best: &mut Best) -> Result<(), Error> {
    let block = segment.read(place)?;
    for record in codec::records(&block.records) {
        let head = codec::decode_head(block.writer, record);
        let is_wanted =
            head.is_some_and(|head| best.admits(head.id) && filter.accepts_head(head.id, head.app_id, head.dev_id));
        let view = if is_wanted { codec::decode(block.writer, record) } else { None };
        let view = view.filter(|view| filter.accepts_rest(view));
        view.and_then(crate::record::View::to_record).into_iter().for_each(|record| best.insert(record));
    }
    Ok(())
}
