//! Files of records on the wire.

use std::iter;

use ::history::{ExportPart, Format, Query};
use api::history::{ExportQuery, FilePart};
use bytes::Bytes;

use super::history::SentQuery;
use crate::{Error, uplink::stored::UnreadableFiles};

/// Maximum number of bytes of a file in one message. Clients take messages of 4 MB by default.
const PART_BYTES_MAX: usize = 64 << 10;

pub(crate) fn format(name: &str) -> Result<Format, Error> {
    name.parse().map_err(|error| Error::invalid("Export", error))
}

/// The records and the format of a file that a message asks for.
pub(crate) fn export_query(message: ExportQuery) -> Result<(Query, Format), Error> {
    let query = message.query.unwrap_or_default();
    let (app_id, format) = (query.app_id.parse()?, format(&message.format)?);
    Ok((SentQuery::from(query).into_query(app_id)?, format))
}

/// A part of a file as messages, each made when it is wanted.
pub(crate) fn file_messages(part: ExportPart) -> impl Iterator<Item = FilePart> + Send {
    let (bytes, unreadable) = match part {
        ExportPart::Bytes(bytes) => (bytes, None),
        ExportPart::Unreadable(files) => {
            let mut unreadable = UnreadableFiles::default();
            unreadable.add(&files);
            (Bytes::new(), Some(FilePart { unreadable_files: unreadable.take_new(), ..FilePart::default() }))
        }
    };
    pieces(bytes).chain(unreadable)
}

fn pieces(mut bytes: Bytes) -> impl Iterator<Item = FilePart> + Send {
    iter::from_fn(move || {
        let piece = bytes.split_to(bytes.len().min(PART_BYTES_MAX));
        (!piece.is_empty()).then(|| FilePart { data: piece.to_vec(), ..FilePart::default() })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_any_size_goes_in_small_messages() {
        let bytes: Vec<u8> = (0..=250).cycle().take(2 * PART_BYTES_MAX + 7).collect();
        let messages: Vec<_> = file_messages(ExportPart::Bytes(bytes.clone().into())).collect();
        let sizes: Vec<_> = messages.iter().map(|message| message.data.len()).collect();
        assert_eq!(sizes, [PART_BYTES_MAX, PART_BYTES_MAX, 7]);
        assert_eq!(messages.into_iter().flat_map(|message| message.data).collect::<Vec<_>>(), bytes);
    }
}
