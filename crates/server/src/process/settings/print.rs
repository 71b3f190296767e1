//! Prints settings as a commented TOML file.

use std::fmt::Write;

use schemars::{JsonSchema, generate::SchemaSettings};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::Error;

/// The width of comments in characters.
const WIDTH: usize = 100;

/// Writes every setting with its description, its value, and its default where that differs.
///
/// The result is a valid settings file with the same values. Settings without a value are commented out, and so are
/// secrets, which have `writeOnly` in their schema.
pub fn print<T: Serialize + JsonSchema + Default>(settings: &T) -> Result<String, Error> {
    let schema = SchemaSettings::draft2020_12()
        .with(|settings| settings.inline_subschemas = true)
        .into_generator()
        .into_root_schema_for::<T>()
        .to_value();
    let value = toml::Value::try_from(settings)?;
    let default = toml::Value::try_from(T::default())?;
    let mut text = String::new();
    table(&mut text, "", &schema, Some(&value), Some(&default));
    Ok(text)
}

/// Writes the values of a table, then its subtables.
fn table(text: &mut String, path: &str, schema: &Value, value: Option<&toml::Value>, default: Option<&toml::Value>) {
    let (tables, plain): (Vec<_>, Vec<_>) =
        members(schema).into_iter().flatten().partition(|(_, schema)| members(schema).is_some());
    for (name, schema) in plain {
        setting(text, name, schema, get(value, name), get(default, name));
    }
    for (name, schema) in tables {
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        let (value, default) = (get(value, name), get(default, name));
        comment(text, schema);
        match value {
            Some(value) => {
                let _ = writeln!(text, "[{path}]");
                table(text, &path, schema, Some(value), default);
            }
            None => {
                let _ = writeln!(text, "# [{path}]\n");
            }
        }
    }
}

fn setting(text: &mut String, name: &str, schema: &Value, value: Option<&toml::Value>, default: Option<&toml::Value>) {
    comment(text, schema);
    let secret = schema.get("writeOnly") == Some(&Value::Bool(true));
    let _ = match (value, default) {
        (Some(_), _) if secret => writeln!(text, "# {name} = (set, not shown)\n"),
        (None, _) => writeln!(text, "# {name} =\n"),
        (Some(value), Some(default)) if value == default => writeln!(text, "{name} = {value}\n"),
        (Some(value), Some(default)) => writeln!(text, "# Default: {default}\n{name} = {value}\n"),
        (Some(value), None) => writeln!(text, "# Default: none\n{name} = {value}\n"),
    };
}

/// The properties of a struct's schema, even of an optional struct; none for other types.
fn members(schema: &Value) -> Option<&Map<String, Value>> {
    let own = schema.get("properties").and_then(Value::as_object);
    let either = schema.get("anyOf").and_then(Value::as_array);
    own.or_else(|| either?.iter().find_map(members))
}

fn get<'a>(table: Option<&'a toml::Value>, name: &str) -> Option<&'a toml::Value> {
    table.and_then(|table| table.get(name))
}

/// Writes the doc comment of a setting, wrapped.
fn comment(text: &mut String, schema: &Value) {
    let meaning = schema.get("description").and_then(Value::as_str).unwrap_or_default();
    for paragraph in meaning.split("\n\n").filter(|paragraph| !paragraph.is_empty()) {
        let mut line = String::from("#");
        for word in paragraph.split_whitespace() {
            if line.len() > 1 && line.len() + 1 + word.chars().count() > WIDTH {
                let _ = writeln!(text, "{line}");
                line.truncate(1);
            }
            let _ = write!(line, " {word}");
        }
        let _ = writeln!(text, "{line}");
    }
}
