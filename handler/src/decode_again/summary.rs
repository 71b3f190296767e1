//! Adds uplinks that were decoded again to a report.

use api::rest::handler::{ChangedField, DecodeReport, FieldExample, NewFailure};
use serde_json::{Value, value::RawValue, value::to_raw_value};

use super::{
    compare::{Difference, Verdict},
    made::Made,
    rerun::{After, Decoding},
};

/// Maximum number of places, and of failures, that a report tells apart.
const PLACES_MAX: usize = 200;
/// Maximum size of a value in an example, as JSON, and of a failure, in bytes.
const EXAMPLE_BYTES_MAX: usize = 500;

pub(super) fn add(report: &mut DecodeReport, decoding: &Decoding) {
    report.examined += 1;
    let Some(After { decoded, verdict, fuel_before, .. }) = &decoding.after else {
        report.not_repeatable += 1;
        return;
    };
    report.fuel_before += fuel_before;
    report.fuel_after += decoded.cost.fuel;
    match verdict {
        Verdict::Equal => report.equal += 1,
        Verdict::NewlyDecoded => report.newly_decoded += 1,
        Verdict::StillFailing => report.still_failing += 1,
        Verdict::Changed(differences) => {
            report.changed += 1;
            add_differences(report, decoding, differences);
        }
        Verdict::NewlyFailing => {
            report.newly_failing += 1;
            add_failure(report, decoding, &reason(&Made::from(decoded)));
        }
    }
}

/// Each place counts once for an uplink, however many entries of an array differ.
fn add_differences(report: &mut DecodeReport, decoding: &Decoding, differences: &[Difference]) {
    for (index, difference) in differences.iter().enumerate() {
        let is_counted = differences.iter().take(index).any(|other| other.path == difference.path);
        let has_room = report.fields.len() < PLACES_MAX || report.fields.contains_key(&difference.path);
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
    if report.failures.len() < PLACES_MAX || report.failures.contains_key(reason) {
        let failure = report.failures.entry(reason.to_owned()).or_insert_with(|| NewFailure {
            count: 0,
            id: decoding.original.id.to_string(),
            dev_id: decoding.original.dev_id.to_string(),
        });
        failure.count += 1;
    }
}

fn reason(after: &Made<'_>) -> String {
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
