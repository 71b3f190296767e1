//! Tells without parsing that a result cannot have a field with a wanted value: most results are left out so.

use memchr::memmem::Finder;

use crate::query::{FieldFilter, json_path::FieldValue};

/// Finds a key in JSON as functions return it: without spaces after keys.
#[derive(Debug)]
pub(crate) struct FieldScan {
    /// The last key of the path with its quotes and the colon; none if the path ends in the position of an element.
    key: Option<Finder<'static>>,
}

impl FieldScan {
    pub(crate) fn new(field: &FieldFilter) -> Self {
        let key = field.path.last().filter(|key| key.parse::<usize>().is_err());
        let key = key.map(|key| Finder::new(&format!("{}:", serde_json::Value::from(key.as_str()))).into_owned());
        Self { key }
    }

    /// False only if the field is missing, or its value is not accepted.
    pub(crate) fn may_match(&self, field: &FieldFilter, result: &[u8]) -> bool {
        let Some(key) = &self.key else { return true };
        let length = key.needle().len();
        let mut rest = result;
        // A key may be there more than once, at other paths.
        while let Some(position) = key.find(rest) {
            rest = rest.get(position + length..).unwrap_or_default();
            if scalar(rest).is_none_or(|found| field.accepts(&found)) {
                return true;
            }
        }
        false
    }
}

/// The number, boolean or null at the start. None if it is something else, which only a parser can read.
fn scalar(json: &[u8]) -> Option<FieldValue> {
    let end = json.iter().position(|byte| matches!(byte, b',' | b'}' | b']')).unwrap_or(json.len());
    match json.get(..end)? {
        b"true" => Some(FieldValue::Bool(true)),
        b"false" => Some(FieldValue::Bool(false)),
        b"null" => Some(FieldValue::Null),
        [first, ..] if *first == b'"' || *first == b'{' || *first == b'[' => None,
        number => str::from_utf8(number).ok()?.parse().ok().map(FieldValue::Number),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RESULTS: [&str; 9] = [
        r#"{"t":31}"#,
        r#"{"t":30}"#,
        r#"{"u":31}"#,
        r#"{"a":{"t":31},"t":1}"#,
        r#"{"a":"\"t\":31","t":1}"#,
        r#"{"t":"31"}"#,
        r#"{"t":[31]}"#,
        r#"{"t":3.1e1}"#,
        r#"{}"#,
    ];

    #[test]
    fn no_result_is_left_out_that_a_parser_accepts() {
        for filter in ["fields.t > 30", "fields.t = \"31\"", "fields.a.t >= 31", "fields.t.0 = 31", "fields.t != 1"] {
            let field: FieldFilter = filter.parse().unwrap();
            let scan = FieldScan::new(&field);
            for result in RESULTS.iter().filter(|result| field.matches(result)) {
                assert!(scan.may_match(&field, result.as_bytes()), "{filter}: {result}");
            }
        }
    }

    #[test]
    fn results_without_the_key_or_with_another_number_are_left_out() {
        let field: FieldFilter = "fields.t > 30".parse().unwrap();
        let scan = FieldScan::new(&field);
        let left: Vec<_> = RESULTS.iter().filter(|result| scan.may_match(&field, result.as_bytes())).collect();
        assert!(!left.iter().any(|result| [RESULTS[1], RESULTS[2], RESULTS[8]].contains(result)), "{left:?}");
    }
}
