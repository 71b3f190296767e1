//! Records as bytes of the tail: numbers of variable length, then texts with their lengths, then what a record may
//! lack. What was added later is behind all that earlier versions read, and their records end before it.

use types::Timestamp;

use crate::{
    NewRecord, Outcome, RecordId,
    record::View,
    tail::varint::{Input, put_bytes, put_signed, put_unsigned},
};

const CONFIRMED: u8 = 1;
const RETRY: u8 = 1 << 1;
const SEED: u8 = 1 << 2;
const FUNCTIONS: u8 = 1 << 3;
const VERSION: u8 = 1 << 4;
const LIMITS: u8 = 1 << 5;
const FAILURE: u8 = 1 << 6;
const CORRECTS: u8 = 1 << 7;

/// Flags of what was added later: a byte that follows if one of them is set.
const MICROSECONDS: u8 = 1;

/// Maximum size of a record without texts, in bytes.
const FIXED_BYTES_MAX: usize = 256;

/// Returns the maximum size of a record in bytes.
pub(crate) fn bytes_max(new: &NewRecord<'_>) -> usize {
    let texts = [new.metadata, new.extra, new.result, new.normalized, new.logs, new.warnings, new.kind.as_str()];
    let texts: usize = texts.iter().map(|text| text.len()).sum();
    FIXED_BYTES_MAX + texts + new.payload.len() + new.failure.map_or(0, str::len)
}

/// Appends a record, with its length before it. The writer's part of its id is that of its block.
pub(crate) fn encode(view: &View<'_>, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    // What an index needs comes first.
    put_unsigned(out, view.id.millis);
    put_unsigned(out, view.id.number.into());
    put_bytes(out, view.app_id.as_bytes());
    put_bytes(out, view.dev_id.as_bytes());
    out.extend_from_slice(&[flags(view), view.outcome as u8, view.port]);
    put_signed(out, view.received.as_nanos());
    put_unsigned(out, view.counter.into());
    put_unsigned(out, view.fuel);
    put_unsigned(out, view.revision.into());
    put_bytes(out, view.payload);
    for text in [view.kind, view.metadata, view.extra, view.result, view.normalized, view.logs, view.warnings] {
        put_bytes(out, text.as_bytes());
    }
    encode_options(view, out);
    let length = u32::try_from(out.len() - start - 4).unwrap_or(u32::MAX);
    if let Some(prefix) = out.get_mut(start..start + 4) {
        prefix.copy_from_slice(&length.to_le_bytes());
    }
}

fn encode_options(view: &View<'_>, out: &mut Vec<u8>) {
    view.seed.inspect(|seed| out.extend_from_slice(&seed.to_le_bytes()));
    view.functions.inspect(|hash| out.extend_from_slice(*hash));
    view.version.inspect(|version| put_unsigned(out, u64::from(*version)));
    view.limits.inspect(|limits| out.extend_from_slice(*limits));
    view.failure.inspect(|failure| put_bytes(out, failure.as_bytes()));
    if let Some(id) = view.corrects {
        put_unsigned(out, id.millis);
        put_unsigned(out, id.writer.into());
        put_unsigned(out, id.number.into());
    }
    if let Some(microseconds) = view.microseconds {
        out.push(MICROSECONDS);
        put_unsigned(out, microseconds.into());
    }
}

fn flags(view: &View<'_>) -> u8 {
    let flags = [
        (view.confirmed, CONFIRMED),
        (view.is_retry, RETRY),
        (view.seed.is_some(), SEED),
        (view.functions.is_some(), FUNCTIONS),
        (view.version.is_some(), VERSION),
        (view.limits.is_some(), LIMITS),
        (view.failure.is_some(), FAILURE),
        (view.corrects.is_some(), CORRECTS),
    ];
    flags.into_iter().filter(|(is_set, _)| *is_set).fold(0, |all, (_, flag)| all | flag)
}

/// Members of a record that an index needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Head<'a> {
    pub(crate) id: RecordId,
    pub(crate) app_id: &'a [u8],
    pub(crate) dev_id: &'a [u8],
}

/// The records in the bytes of a block, from first to last. Ends early where they are damaged.
pub(crate) fn records(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = Input(bytes);
    std::iter::from_fn(move || {
        let length = rest.array::<4>()?;
        rest.take(u32::from_le_bytes(length) as usize)
    })
}

/// Reads what an index needs of a record. None if it is damaged.
pub(crate) fn decode_head(writer: u32, record: &[u8]) -> Option<Head<'_>> {
    head(writer, &mut Input(record))
}

fn head<'a>(writer: u32, input: &mut Input<'a>) -> Option<Head<'a>> {
    let id = RecordId { millis: input.unsigned()?, writer, number: input.unsigned_32()? };
    Some(Head { id, app_id: input.bytes()?, dev_id: input.bytes()? })
}

/// Reads a record. None if it is damaged.
pub(crate) fn decode(writer: u32, record: &[u8]) -> Option<View<'_>> {
    let mut input = Input(record);
    let Head { id, app_id, dev_id } = head(writer, &mut input)?;
    let (app_id, dev_id) = (str::from_utf8(app_id).ok()?, str::from_utf8(dev_id).ok()?);
    let [flags, outcome, port] = input.array()?;
    let has = |flag: u8| flags & flag != 0;
    let received = Timestamp::from_nanos(input.signed()?);
    let [counter, fuel, revision] = [input.unsigned()?, input.unsigned()?, input.unsigned()?];
    let payload = input.bytes()?;
    let [kind, metadata, extra] = [input.text()?, input.text()?, input.text()?];
    let [result, normalized, logs, warnings] = [input.text()?, input.text()?, input.text()?, input.text()?];
    Some(View {
        id,
        received,
        app_id,
        dev_id,
        kind,
        port,
        counter: counter.try_into().ok()?,
        confirmed: has(CONFIRMED),
        is_retry: has(RETRY),
        payload,
        metadata,
        extra,
        seed: optional(has(SEED), || input.array().map(u64::from_le_bytes))?,
        functions: optional(has(FUNCTIONS), || input.array_ref())?,
        version: optional(has(VERSION), || input.unsigned_32())?,
        limits: optional(has(LIMITS), || input.array_ref())?,
        outcome: Outcome::ALL.into_iter().find(|known| *known as u8 == outcome)?,
        result,
        normalized,
        failure: optional(has(FAILURE), || input.text())?,
        logs,
        warnings,
        fuel,
        revision: revision.try_into().ok()?,
        corrects: optional(has(CORRECTS), || input.id())?,
        microseconds: microseconds(&mut input)?,
    })
}

/// Reads what was added later. Nothing is left of records of earlier versions.
fn microseconds(input: &mut Input<'_>) -> Option<Option<u32>> {
    let [added] = if input.0.is_empty() { [0] } else { input.array()? };
    optional(added & MICROSECONDS != 0, || input.unsigned_32())
}

/// Reads what is there; the outer value is none if it is damaged.
fn optional<T>(is_there: bool, read: impl FnOnce() -> Option<T>) -> Option<Option<T>> {
    if is_there { read().map(Some) } else { Some(None) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Kind;

    fn check(new: &NewRecord<'_>) {
        let (view, bytes) = encoded(new);
        assert!(bytes.len() <= bytes_max(new));
        let encoded_records: Vec<_> = records(&bytes).collect();
        assert_eq!(encoded_records.len(), 1);
        assert_eq!(decode(8, encoded_records[0]).unwrap().to_record(), view.to_record());
        // Records of earlier versions end before what was added.
        let former_new = NewRecord { microseconds: None, ..*new };
        let (former, former_bytes) = encoded(&former_new);
        for length in 0..encoded_records[0].len() {
            let part = decode(8, &encoded_records[0][..length]).map(View::to_record);
            let is_former = length + 4 == former_bytes.len();
            assert_eq!(part, is_former.then(|| former.to_record()), "{length} bytes");
        }
    }

    fn encoded<'a>(new: &'a NewRecord<'a>) -> (View<'a>, Vec<u8>) {
        let (view, mut bytes) = (View::of_new(RecordId::new(7, 8, 9), new), Vec::new());
        encode(&view, &mut bytes);
        (view, bytes)
    }

    #[test]
    fn records_are_read_back_and_never_from_a_part() {
        let (app_id, dev_id) = ("my-app".parse().unwrap(), "my-device".parse().unwrap());
        let event = Kind::Event("down/sent".to_owned());
        let plain = NewRecord::new(&app_id, &dev_id, &Kind::Uplink, Timestamp::from_nanos(-1));
        check(&plain);
        check(&NewRecord {
            kind: &event,
            port: 255,
            counter: u32::MAX,
            confirmed: true,
            is_retry: true,
            payload: &[0; 300],
            metadata: "{}",
            extra: "{\"variables\":{}}",
            seed: Some(u64::MAX),
            functions: Some([7; 32]),
            version: Some(u32::MAX),
            limits: Some([1; 8]),
            outcome: Outcome::Failed,
            result: "{\"ä\":1}",
            normalized: "[]",
            failure: Some(""),
            logs: "[1]",
            warnings: "[\"w\"]",
            fuel: u64::MAX,
            microseconds: Some(u32::MAX),
            revision: 3,
            corrects: Some(RecordId::new(1, 2, 3)),
            ..plain
        });
    }
}
