//! JSON: one object after the other, or arrays of them, in our form and in that of The Things Stack.

use std::{fmt, io::Write};

use api::rest::handler::Device;
use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use crate::{
    Error,
    fields::{BadField, Cells, FIELDS, Field},
    row::Row,
};

/// The LoRaWAN versions whose devices have the keys that the handler knows, as The Things Stack names them.
const VERSIONS: &str = "MAC_V1_0";

/// The devices of a value: one, or those in an array or in an answer of the handler. Reading ends when there are too
/// many: a small file may have very many.
struct Devices<'a> {
    objects: &'a mut Vec<Value>,
    rows_max: usize,
}

pub(crate) fn read(bytes: &[u8], rows_max: usize) -> Result<Vec<Row>, Error> {
    let mut objects = Vec::new();
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    while deserializer.end().is_err() {
        let read = Devices { objects: &mut objects, rows_max }.deserialize(&mut deserializer);
        if objects.len() > rows_max {
            return Err(Error::TooMany(rows_max));
        }
        read.map_err(Error::Json)?;
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

impl Devices<'_> {
    fn add<E: de::Error>(self, value: Value) -> Result<(), E> {
        self.objects.push(value);
        if self.objects.len() > self.rows_max { Err(E::custom("too many devices")) } else { Ok(()) }
    }
}

impl<'de> DeserializeSeed<'de> for Devices<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Devices<'_> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a device, or an array of devices")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let Self { objects, rows_max } = self;
        while list.next_element_seed(Devices { objects: &mut *objects, rows_max })?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        let (mut object, mut has_devices) = (Map::new(), false);
        while let Some(name) = members.next_key::<String>()? {
            if name == "devices" || name == "end_device" {
                has_devices = true;
                members.next_value_seed(Devices { objects: &mut *self.objects, rows_max: self.rows_max })?;
            } else {
                object.insert(name, members.next_value()?);
            }
        }
        if has_devices { Ok(()) } else { self.add(Value::Object(object)) }
    }

    // What is no object is refused as a row.

    fn visit_unit<E: de::Error>(self) -> Result<(), E> {
        self.add(Value::Null)
    }

    fn visit_bool<E: de::Error>(self, _: bool) -> Result<(), E> {
        self.add(Value::Null)
    }

    fn visit_i64<E: de::Error>(self, _: i64) -> Result<(), E> {
        self.add(Value::Null)
    }

    fn visit_u64<E: de::Error>(self, _: u64) -> Result<(), E> {
        self.add(Value::Null)
    }

    fn visit_f64<E: de::Error>(self, _: f64) -> Result<(), E> {
        self.add(Value::Null)
    }

    fn visit_str<E: de::Error>(self, _: &str) -> Result<(), E> {
        self.add(Value::Null)
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
