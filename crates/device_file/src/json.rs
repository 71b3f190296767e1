//! JSON: one object after the other, or arrays of them, in our form and in that of The Things Stack.

use std::io::Write;

use api::rest::handler::Device;
use serde_json::Value;

use crate::{
    Error,
    fields::{BadField, Cells, FIELDS, Field},
    row::Row,
};

/// The LoRaWAN versions whose devices have the keys that the handler knows, as The Things Stack names them.
const VERSIONS: &str = "MAC_V1_0";

pub(crate) fn read(bytes: &[u8]) -> Result<Vec<Row>, Error> {
    let mut objects = Vec::new();
    for value in serde_json::Deserializer::from_slice(bytes).into_iter() {
        flatten(value.map_err(Error::Json)?, &mut objects);
    }
    let row = |(index, object): (usize, Value)| Row { number: index + 1, cells: cells(&object) };
    Ok(objects.into_iter().enumerate().map(row).collect())
}

/// Writes a device per line.
pub fn write<'a>(to: &mut dyn Write, devices: impl Iterator<Item = &'a Device>) -> Result<(), Error> {
    for device in devices {
        serde_json::to_writer(&mut *to, device).map_err(Error::Device)?;
        to.write_all(b"\n").map_err(Error::Write)?;
    }
    Ok(())
}

/// The devices in arrays, and in the answers of the handler.
fn flatten(value: Value, objects: &mut Vec<Value>) {
    match value {
        Value::Array(values) => values.into_iter().for_each(|value| flatten(value, objects)),
        Value::Object(mut object) if object.contains_key("devices") => {
            flatten(object.remove("devices").unwrap_or_default(), objects);
        }
        Value::Object(mut object) if object.contains_key("end_device") => {
            flatten(object.remove("end_device").unwrap_or_default(), objects);
        }
        value => objects.push(value),
    }
}

fn cells(object: &Value) -> Result<Cells, BadField> {
    if !object.is_object() {
        return Err(BadField { name: "", reason: "it must be an object".to_owned() });
    }
    let is_things_stack = object.get("ids").is_some();
    if is_things_stack {
        check_version(object)?;
    }
    let mut cells = Cells::default();
    for field in &FIELDS {
        let value = if is_things_stack { of_things_stack(object, field) } else { ours(object, field) };
        if let Some(text) = value.and_then(text) {
            cells.set(field.name, text);
        }
    }
    Ok(cells)
}

/// Devices with LoRaWAN 1.1 have other keys, with which no join here could succeed.
fn check_version(object: &Value) -> Result<(), BadField> {
    match object.get("lorawan_version").and_then(Value::as_str) {
        Some(version) if !version.starts_with(VERSIONS) && !version.starts_with("1.0") => Err(BadField {
            name: "lorawan_version",
            reason: format!("{version} is not supported: the handler knows the keys of LoRaWAN 1.0"),
        }),
        _ => Ok(()),
    }
}

fn of_things_stack<'a>(object: &'a Value, field: &Field) -> Option<&'a Value> {
    let mut values = field.things_stack.iter().filter_map(|place| object.pointer(place));
    values.find(|value| value.as_str() != Some(""))
}

/// As the handler has it, or beside each other, as lists have it.
fn ours<'a>(object: &'a Value, field: &Field) -> Option<&'a Value> {
    object.get("lorawan_device").and_then(|lorawan| lorawan.get(field.name)).or_else(|| object.get(field.name))
}

/// The text of a value; `None` for what is not set.
fn text(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) if text.is_empty() => None,
        Value::String(text) => Some(text.clone()),
        value => Some(value.to_string()),
    }
}
