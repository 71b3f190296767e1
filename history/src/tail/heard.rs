//! Reads when devices were last heard in a segment.

use crate::{
    Error, Skipped,
    query::{Filter, Heard},
    tail::{codec, index::BlockPlace, search, segment::Segment},
};

/// Notes the uplinks of a segment. Blocks that cannot be read are skipped.
pub(crate) fn read(
    segment: &Segment,
    (filter, heard): (&Filter, &Heard<'_>),
    skip: &dyn Fn(Skipped),
) -> Result<(), Error> {
    // Newest first: of a device that is known from a later block, nothing more than heads is read.
    for place in search::places(segment, filter).into_iter().rev() {
        heard.check()?;
        let read = read_block(segment, &place, filter, heard);
        read.or_else(|error| Skipped::of(error).map(skip))?;
    }
    Ok(())
}

fn read_block(segment: &Segment, place: &BlockPlace, filter: &Filter, heard: &Heard<'_>) -> Result<(), Error> {
    let block = segment.read(place)?;
    for record in codec::records(&block.records) {
        let head = codec::decode_head(block.writer, record);
        let is_wanted = |head: &codec::Head<'_>| {
            filter.accepts_head(head.id, head.app_id, head.dev_id) && !heard.knows(head.dev_id, head.id)
        };
        let Some(head) = head.filter(is_wanted) else { continue };
        if codec::decode(block.writer, record).is_some_and(|view| filter.accepts_rest(&view)) {
            heard.note(head.dev_id, head.id);
        }
    }
    Ok(())
}
