//! Adds uplinks that were decoded again to a report.

use api::rest::handler::{
    self as body, ChangedField, DecodeReport, FieldExample, NewFailure, RefusedMessages, Verdicts,
};
use history::RecordId;
use serde_json::{Value, value::RawValue, value::to_raw_value};

use super::{
    compare::{Difference, Verdict},
    compared_result::ComparedResult,
    rerun::{After, Decoding},
};
use crate::{output::Receipt, payload::LowerLimit};

const DAY_NS: i64 = 24 * 3600 * 1_000_000_000;
/// Maximum size of a value in an example, as JSON, and of a failure, in bytes.
const EXAMPLE_BYTES_MAX: usize = 500;

/// Adds uplinks in the order in which they were recorded.
pub(super) fn add_all(report: &mut DecodeReport, decodings: &[Decoding]) {
    let time = |decoding: &Decoding| decoding.original.id.recorded();
    let day = |decoding: &Decoding| time(decoding).as_nanos().div_euclid(DAY_NS);
    for decodings in decodings.chunk_by(|one, next| day(one) == day(next)) {
        let mut verdicts = Verdicts::default();
        decodings.iter().for_each(|decoding| add(report, &mut verdicts, decoding));
        report.verdicts.add(&verdicts);
        if let Some(first) = decodings.first() {
            let date = time(first).to_rfc3339().chars().take_while(|character| *character != 'T').collect();
            report.add_day(date, &verdicts);
        }
    }
}

fn add(report: &mut DecodeReport, verdicts: &mut Verdicts, decoding: &Decoding) {
    report.examined += 1;
    let After { decoded, verdict, fuel_before, .. } = match &decoding.after {
        Ok(after) => after,
        Err(obstacle) => return add_not_repeatable(report, obstacle),
    };
    report.fuel_before += fuel_before;
    report.fuel_after += decoded.cost.fuel;
    match verdict {
        Verdict::Equal => verdicts.equal += 1,
        Verdict::AlreadyCorrected => verdicts.already_corrected += 1,
        Verdict::NewlyDecoded => verdicts.newly_decoded += 1,
        Verdict::StillFailing => verdicts.still_failing += 1,
        Verdict::Changed(differences) => {
            verdicts.changed += 1;
            add_differences(report, decoding, differences);
        }
        Verdict::NewlyFailing => {
            verdicts.newly_failing += 1;
            add_failure(report, decoding, &reason(&ComparedResult::from(decoded)));
        }
    }
}

/// Adds an uplink that did not run, and names the limits for which it did not.
fn add_not_repeatable(report: &mut DecodeReport, lower: &[LowerLimit]) {
    report.not_repeatable += 1;
    report.limited += u64::from(!lower.is_empty());
    for LowerLimit { name, then, now } in lower {
        let new = || body::LowerLimit { count: 0, then: *then, now: *now };
        let limit = report.lower_limits.entry(name.clone()).or_insert_with(new);
        limit.count += 1;
        limit.then = limit.then.max(*then);
    }
}

/// Adds who took a correction, and who did not: each counts once, as when messages are sent again.
pub(super) fn add_receipt(report: &mut DecodeReport, id: &RecordId, receipt: Receipt) {
    match (receipt.refused.is_empty(), receipt.taken) {
        (true, 0) => report.unwanted += 1,
        (true, _) => report.published += 1,
        (false, _) => report.refused += 1,
    }
    for refused in receipt.refused {
        let new = RefusedMessages { count: 1, reason: refused.reason, id: id.to_string() };
        RefusedMessages::add_to(&mut report.receivers, refused.receiver, new);
    }
}

/// Each place counts once for an uplink, however many entries of an array differ.
fn add_differences(report: &mut DecodeReport, decoding: &Decoding, differences: &[Difference]) {
    for (index, difference) in differences.iter().enumerate() {
        let is_counted = differences.iter().take(index).any(|other| other.path == difference.path);
        let has_room = report.fields.len() < DecodeReport::NAMED_MAX || report.fields.contains_key(&difference.path);
        if is_counted || !has_room {
            continue;
        }
        let field = report.fields.entry(difference.path.clone()).or_insert_with(|| ChangedField {
            count: 0,
            example: FieldExample {
                id: decoding.original.id.to_string(),
                dev_id: decoding.original.dev_id.to_string(),
                before: difference.before.as_ref().and_then(example),
                after: difference.after.as_ref().and_then(example),
            },
        });
        field.count += 1;
    }
}

fn add_failure(report: &mut DecodeReport, decoding: &Decoding, reason: &str) {
    let reason = &reason[..reason.floor_char_boundary(EXAMPLE_BYTES_MAX)];
    if report.failures.len() < DecodeReport::NAMED_MAX || report.failures.contains_key(reason) {
        let failure = report.failures.entry(reason.to_owned()).or_insert_with(|| NewFailure {
            count: 0,
            id: decoding.original.id.to_string(),
            dev_id: decoding.original.dev_id.to_string(),
        });
        failure.count += 1;
    }
}

fn reason(after: &ComparedResult<'_>) -> String {
    if after.failure.is_empty() { "the validator returned false".to_owned() } else { after.failure.to_string() }
}

/// Returns a value, or only its beginning as a text if it is too long to be shown.
fn example(value: &Value) -> Option<Box<RawValue>> {
    let json = to_raw_value(value).ok()?;
    if json.get().len() <= EXAMPLE_BYTES_MAX {
        return Some(json);
    }
    let start = &json.get()[..json.get().floor_char_boundary(EXAMPLE_BYTES_MAX)];
    to_raw_value(&format!("{start}…")).ok()
}
