//! Compares two results of functions.

use api::rest::handler::DecodeReport;
use serde_json::{Map, Value};

use super::compared_result::ComparedResult;

/// Result of decoding an uplink again, compared with the earlier one.
#[derive(Debug, PartialEq)]
pub(super) enum Verdict {
    /// The same fields.
    Equal,
    /// The same fields as in a correction that an earlier run has kept.
    AlreadyCorrected,
    /// Other fields.
    Changed(Vec<Difference>),
    /// There were fields, or none were asked for, and now the functions fail or refuse the uplink.
    NewlyFailing,
    /// There were no fields, and now there are.
    NewlyDecoded,
    /// The functions failed or refused the uplink before, and do now.
    StillFailing,
}

/// A place where two results differ.
#[derive(Debug, PartialEq)]
pub(super) struct Difference {
    /// Such as `fields.history[].time`: entries of arrays count as one place.
    pub(super) path: String,
    /// None if there is nothing.
    pub(super) before: Option<Value>,
    /// None if there is nothing.
    pub(super) after: Option<Value>,
}

/// Compares the fields. The order of members does not matter, nor what was logged, nor why functions fail.
pub(super) fn compare(before: &ComparedResult<'_>, after: &ComparedResult<'_>) -> Verdict {
    match (before.outcome.is_failure(), after.outcome.is_failure()) {
        (true, true) => Verdict::StillFailing,
        (false, true) => Verdict::NewlyFailing,
        _ if before.outcome != after.outcome && after.outcome == history::Outcome::Decoded => Verdict::NewlyDecoded,
        _ => verdict(fields(before, after)),
    }
}

/// Compares everything, to the last unit of fuel.
pub(super) fn compare_exactly(before: &ComparedResult<'_>, after: &ComparedResult<'_>) -> Verdict {
    let mut differences = fields(before, after);
    for (path, before, after) in [
        ("outcome", before.outcome.as_str(), after.outcome.as_str()),
        ("failure", &before.failure, &after.failure),
        ("logs", &before.logs, &after.logs),
    ] {
        push_text(&mut differences, path, before, after);
    }
    if differences.is_empty() {
        // The same values, written in another way.
        push_text(&mut differences, "fields", before.result, after.result);
        push_text(&mut differences, "normalized", before.normalized, after.normalized);
    }
    if !warnings_of(&before.warnings).ends_with(&warnings_of(&after.warnings)) {
        push_text(&mut differences, "warnings", &before.warnings, &after.warnings);
    }
    if before.fuel != after.fuel {
        differences.push(difference("fuel", Some(before.fuel.into()), Some(after.fuel.into())));
    }
    verdict(differences)
}

/// Those of the functions are last: what the network warned of is before them.
fn warnings_of(json: &str) -> Vec<String> {
    serde_json::from_str(json).unwrap_or_default()
}

fn push_text(differences: &mut Vec<Difference>, path: &str, before: &str, after: &str) {
    if before != after {
        differences.push(difference(path, Some(before.into()), Some(after.into())));
    }
}

fn verdict(differences: Vec<Difference>) -> Verdict {
    if differences.is_empty() { Verdict::Equal } else { Verdict::Changed(differences) }
}

fn fields(before: &ComparedResult<'_>, after: &ComparedResult<'_>) -> Vec<Difference> {
    let mut found = Vec::new();
    for (path, before, after) in
        [("fields", before.result, after.result), ("normalized", before.normalized, after.normalized)]
    {
        // Most are equal to the last character.
        if before != after {
            values(&mut found, path, parse(before).as_ref(), parse(after).as_ref());
        }
    }
    found
}

fn parse(json: &str) -> Option<Value> {
    if json.is_empty() { None } else { Some(serde_json::from_str(json).unwrap_or_else(|_| json.into())) }
}

fn values(found: &mut Vec<Difference>, path: &str, before: Option<&Value>, after: Option<&Value>) {
    match (before, after) {
        _ if found.len() >= DecodeReport::NAMED_OF_UPLINK_MAX || before == after => {}
        (Some(Value::Object(before)), Some(Value::Object(after))) => objects(found, path, before, after),
        (None, Some(Value::Object(after))) => objects(found, path, &Map::new(), after),
        (Some(Value::Object(before)), None) => objects(found, path, before, &Map::new()),
        (Some(Value::Array(before)), Some(Value::Array(after))) => {
            let path = format!("{path}[]");
            let count = before.len().max(after.len());
            (0..count).for_each(|index| values(found, &path, before.get(index), after.get(index)));
        }
        _ => found.push(difference(path, before.cloned(), after.cloned())),
    }
}

fn objects(found: &mut Vec<Difference>, path: &str, before: &Map<String, Value>, after: &Map<String, Value>) {
    let added = after.keys().filter(|name| !before.contains_key(*name));
    for name in before.keys().chain(added) {
        values(found, &format!("{path}.{name}"), before.get(name), after.get(name));
    }
}

fn difference(path: &str, before: Option<Value>, after: Option<Value>) -> Difference {
    Difference { path: path.to_owned(), before, after }
}

#[cfg(test)]
mod tests {
    use history::Outcome;
    use serde_json::json;

    use super::*;

    fn compared(outcome: Outcome, result: &str) -> ComparedResult<'_> {
        let none = || "".into();
        ComparedResult { outcome, result, normalized: "", failure: none(), logs: none(), warnings: none(), fuel: 7 }
    }

    #[test]
    fn uplinks_are_equal_change_fail_or_recover() {
        let decoded = |result| compared(Outcome::Decoded, result);
        let (failed, refused) = (compared(Outcome::Failed, ""), compared(Outcome::Invalid, "{}"));
        assert_eq!(compare(&decoded(r#"{"a":1,"b":2}"#), &decoded(r#"{"b":2,"a":1}"#)), Verdict::Equal);
        assert_eq!(compare(&failed, &decoded("{}")), Verdict::NewlyDecoded);
        assert_eq!(compare(&compared(Outcome::NotConverted, ""), &decoded("{}")), Verdict::NewlyDecoded);
        assert_eq!(compare(&decoded("{}"), &refused), Verdict::NewlyFailing);
        assert_eq!(compare(&refused, &failed), Verdict::StillFailing);
    }

    #[test]
    fn differences_have_paths_in_which_entries_of_arrays_are_one() {
        let before = compared(Outcome::Decoded, r#"{"a":1,"b":[{"c":1},{"c":2}],"d":null}"#);
        let after = compared(Outcome::Decoded, r#"{"a":2,"b":[{"c":1},{"c":3}],"e":{"f":1}}"#);
        let Verdict::Changed(differences) = compare(&before, &after) else { panic!() };
        let found: Vec<_> = differences.into_iter().map(|found| (found.path, found.before, found.after)).collect();
        let expected = [
            ("fields.a", Some(json!(1)), Some(json!(2))),
            ("fields.b[].c", Some(json!(2)), Some(json!(3))),
            ("fields.d", Some(json!(null)), None),
            ("fields.e.f", None, Some(json!(1))),
        ];
        assert_eq!(found, expected.map(|(path, before, after)| (path.to_owned(), before, after)));
    }

    #[test]
    fn an_exact_comparison_sees_order_fuel_and_warnings_of_the_functions() {
        let before = ComparedResult {
            warnings: r#"["network","mine"]"#.into(),
            ..compared(Outcome::Decoded, r#"{"a":1,"b":2}"#)
        };
        let after = |result, warnings: &'static str, fuel| {
            let after = ComparedResult { warnings: warnings.into(), fuel, ..compared(Outcome::Decoded, result) };
            match compare_exactly(&before, &after) {
                Verdict::Changed(found) => found.into_iter().map(|found| found.path).collect(),
                verdict => vec![format!("{verdict:?}")],
            }
        };
        assert_eq!(after(r#"{"a":1,"b":2}"#, r#"["mine"]"#, 7), ["Equal"]);
        assert_eq!(after(r#"{"b":2,"a":1}"#, "[]", 8), ["fields", "fuel"]);
        assert_eq!(after(r#"{"a":1,"b":2}"#, r#"["other"]"#, 7), ["warnings"]);
    }
}
