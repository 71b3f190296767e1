//! Results of decoders that networks accept or refuse.

use runtime::Dialect;
use serde_json::Value;

use super::sandbox::FUNCTION;
use crate::{
    codec::compare::truncate,
    lint::target::{Shape, Target, engine::Engine},
    report::ExampleReport,
};

/// Key of results that a network accepts, and publishes nothing of.
pub(super) const NO_FIELDS: &str = "fields";
/// Key of results that a decoder returns for messages without data: networks take them for an error.
pub(super) const NOTHING: &str = "nothing";
/// Key of numbers with which a network publishes nothing at all.
pub(super) const NUMBERS: &str = "numbers";
/// The same for functions.
pub(super) const FUNCTIONS: &str = "functions";

/// Maximum depth at which fields are searched for functions.
const DEPTH_MAX: usize = 32;

/// Returns why a network would refuse a decoder's result, and a key that groups such results; `None` if it accepts it.
pub(super) fn wrong_result(
    (text, value): (&str, &Value),
    (target, dialect): (Target, Option<Dialect>),
) -> Option<(String, &'static str)> {
    let (taken, is_taken) = match (target.shape(), target.dialect()) {
        (Shape::Measurements, _) => ("a list of objects with `field` and `value`", is_measurements(value)),
        (Shape::TypedFields, _) => return wrong_type((text, value), dialect),
        (Shape::Fields, Some(Dialect::Ts013)) => ("an object as `data`", has_data(value)),
        (Shape::Fields, Some(Dialect::V2)) => ("an object", value.is_object()),
        (Shape::Fields, Some(Dialect::ChirpStack3)) => ("an object", value.is_object() || value.is_array()),
        _ => return None,
    };
    (!is_taken).then(|| (format!("returns {}, and {} takes {taken}", truncate(text), target.title()), taken))
}

/// The same where results are decoded into types: those of TS013 have members of their own.
fn wrong_type((text, value): (&str, &Value), dialect: Option<Dialect>) -> Option<(String, &'static str)> {
    let is_wrong = |name: &&str| {
        let list = value.get(name).filter(|list| !list.is_null());
        // Members that are no texts are made some.
        list.is_some_and(|list| !list.is_array())
    };
    let is_scalar = |fields: &Value| fields.is_string() || fields.is_number() || fields.is_boolean();
    let fields = if dialect == Some(Dialect::Ts013) { value.get("data") } else { Some(value) };
    if fields.is_some_and(is_scalar) {
        return Some((format!("returns {}, and The Things Stack takes an object as fields", truncate(text)), "scalar"));
    }
    if fields.is_some_and(|fields| has_function(fields, DEPTH_MAX)) {
        return Some(("returns a function as a field, so The Things Stack publishes nothing".to_owned(), FUNCTIONS));
    }
    if dialect != Some(Dialect::Ts013) {
        return None;
    }
    if value.is_null() {
        return Some((format!("returns {text}, which The Things Stack takes for an error"), NOTHING));
    }
    if let Some(name) = ["errors", "warnings"].into_iter().find(is_wrong) {
        return Some((format!("returns `{name}` that are no list, which The Things Stack refuses"), name));
    }
    let is_without = ["data", "errors"].iter().all(|name| value.get(name).is_none());
    is_without.then(|| ("returns no `data`, so The Things Stack publishes no fields".to_owned(), NO_FIELDS))
}

/// A number of a result that has no form in what the target publishes. ChirpStack 4 writes `NaN` as null.
pub(super) fn refused_number(report: &ExampleReport, target: Target) -> Option<&str> {
    let lost = report.warnings.iter().filter_map(|warning| warning.strip_suffix(", which JSON writes as null"));
    let is_refused = |lost: &&str| match target.engine() {
        Engine::QuickJs => lost.ends_with("Infinity"),
        engine => engine.is_known(),
    };
    lost.into_iter().find(is_refused)
}

/// Returns true if a value, or a part of it, was a function.
fn has_function(value: &Value, depth_max: usize) -> bool {
    let is_one = |value: &Value| depth_max > 0 && has_function(value, depth_max - 1);
    match value {
        Value::String(text) => text == FUNCTION,
        Value::Array(list) => list.iter().any(is_one),
        Value::Object(members) => members.values().any(is_one),
        _ => false,
    }
}

fn has_data(value: &Value) -> bool {
    let has_errors = value.get("errors").and_then(Value::as_array).is_some_and(|errors| !errors.is_empty());
    has_errors || value.get("data").is_some_and(Value::is_object)
}

fn is_measurements(value: &Value) -> bool {
    let is_one = |value: &Value| value.get("field").is_some_and(Value::is_string) && value.get("value").is_some();
    value.as_array().is_some_and(|list| list.iter().all(is_one))
}
