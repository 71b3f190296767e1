//! Adds examples to a text of YAML.

use serde_json::{Map, Value};

use super::{
    change::{NOT_THE_SAME, apply},
    yaml::end_of_line,
};
use crate::{
    codec::compare::differences,
    text::{
        yaml::{self, Node},
        yaml_text,
    },
};

/// Indent of a new list, in spaces.
const INDENT: usize = 2;

/// `text` with `examples` behind those that it has, which the list at `path` is. All else stays as it is, comments too.
pub(crate) fn appended(text: &str, path: &[&str], examples: &[Value]) -> Result<String, String> {
    let root = yaml::parse(text).map_err(|error| format!("line {}: {}", error.line, error.reason))?;
    let list = path.iter().try_fold(&root, |node, name| node.get(name));
    let new = match (list.map(|list| list.elements().last()), path) {
        (None, [name]) => {
            let text = text.trim_end();
            let line_break = if text.is_empty() { "" } else { "\n" };
            format!("{text}{line_break}{name}:{}\n", lines(examples, INDENT))
        }
        (None, _) => return Err(format!("there is no `{}`", path.join("."))),
        (Some(last), _) => {
            let (last, column) = last
                .and_then(|last| Some((last, dash(text, last)?)))
                .ok_or("its `examples` are not a list with a line for each")?;
            let end = end_of_line(text, last.range.end);
            apply(text, vec![(end..end, lines(examples, column))])?
        }
    };
    let is_same = |read: Node| differences(&with(root.value(), path, examples), &read.value(), false).is_empty();
    match yaml::parse(&new).is_ok_and(is_same) {
        true => Ok(new),
        false => Err(NOT_THE_SAME.to_owned()),
    }
}

/// The column of the dash before an element.
fn dash(text: &str, element: &Node) -> Option<usize> {
    let before = text.get(..element.range.start)?.rsplit('\n').next()?;
    before.trim_end().strip_suffix('-').map(str::len)
}

fn lines(examples: &[Value], column: usize) -> String {
    let line = |example: &Value| format!("\n{:column$}- {}", "", yaml_text::block(example, column + 2));
    examples.iter().map(line).collect()
}

fn with(value: Value, path: &[&str], examples: &[Value]) -> Value {
    let Some((name, rest)) = path.split_first() else {
        let list = if let Value::Array(list) = value { list } else { Vec::new() };
        return list.into_iter().chain(examples.iter().cloned()).collect();
    };
    let mut members = if let Value::Object(members) = value { members } else { Map::new() };
    let inner = members.get_mut(*name).map(Value::take).unwrap_or_default();
    members.insert((*name).to_owned(), with(inner, rest, examples));
    Value::Object(members)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn added(text: &str) -> String {
        let example = json!({"description": "new", "bytes": "00", "outcome": "valid"});
        appended(text, &["examples"], &[example]).unwrap_or_else(|reason| format!("refused: {reason}"))
    }

    #[test]
    fn what_is_there_stays_as_it_is() {
        const NEW: &str = "- description: new\n  bytes: \"00\"\n  outcome: valid";
        let indented = |column: usize| {
            let indent = " ".repeat(column);
            format!("{indent}{}", NEW.replace('\n', &format!("\n{indent}")))
        };
        for (text, column, rest) in [
            ("# mine\nexamples:\n  - bytes: 01 # one\n  # end", 2, "\n  # end"),
            ("examples:\n- { bytes: 01 }\n- bytes: 02\n  output: {}\n", 0, "\n"),
            ("examples:\n    -   bytes: 01\n\n# end\ndialect: v2\n", 4, "\n\n# end\ndialect: v2\n"),
        ] {
            let before = text.strip_suffix(rest).unwrap();
            assert_eq!(added(text), format!("{before}\n{}{rest}", indented(column)), "{text}");
        }
        for text in ["", "# mine", "dialect: v2\n"] {
            let line_break = if text.is_empty() { "" } else { "\n" };
            assert_eq!(added(text), format!("{}{line_break}examples:\n{}\n", text.trim_end(), indented(2)));
        }
    }

    #[test]
    fn a_list_may_be_within_another_member() {
        let text = "up:\n  fileName: a.js\n  examples:\n    - input: 1 # one\ndown: {}\n";
        let new = appended(text, &["up", "examples"], &[json!({"input": 2, "output": {"data": {"celsius": 3}}})]);
        let added = "    - input: 2\n      output:\n        data:\n          celsius: 3\n";
        assert_eq!(new.unwrap(), text.replace("down", &format!("{added}down")));
        appended(text, &["down", "examples"], &[json!({})]).unwrap_err();
    }

    #[test]
    fn what_cannot_be_kept_is_refused() {
        for text in ["examples: [{ bytes: 01 }]", "examples: []", "examples: 7", "- 7", "examples: {"] {
            assert!(added(text).starts_with("refused: "), "{text}: {}", added(text));
        }
    }
}
