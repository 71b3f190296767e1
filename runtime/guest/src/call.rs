//! One message through the functions.

use crate::clock;
use crate::dialect::{DECODE_DOWNLINK, Function, describe};
use crate::downlink;
use crate::failure::Failure;
use crate::guest::Guest;
use crate::js::{Primitive, Realm, Thrown, Value};
use crate::json::Writer as Json;
use crate::load::subject_name;
use crate::uplink;
use crate::wire::{Entry, Kind, Reader, Slot, Writer};

/// The longest fields, in bytes of JSON.
const FIELDS_BYTES_MAX: usize = 16 * 1024;
/// The most warnings of one call, and the longest of them in bytes.
const WARNINGS_MAX: usize = 32;
const WARNING_BYTES_MAX: usize = 1024;

/// What is known of a message.
pub(crate) struct Message<'a> {
    pub(crate) entry: Entry,
    pub(crate) port: u8,
    pub(crate) time_ms: i64,
    pub(crate) payload: &'a [u8],
}

/// What the functions made of it.
pub(crate) enum Outcome {
    Fields { valid: bool, json: Vec<u8> },
    Bytes { port: u8, bytes: Vec<u8> },
}

/// One call while it runs.
pub(crate) struct Call<'a> {
    pub(crate) guest: &'a Guest,
    pub(crate) message: Message<'a>,
    pub(crate) warnings: Vec<String>,
}

/// Sends the message in `request` through the functions and writes the reply.
pub(crate) fn run(guest: &Guest, request: &[u8], reply: &mut Writer) {
    guest.start();
    let mut call = Call { guest, message: Message::EMPTY, warnings: Vec::new() };
    let outcome = match Message::read(request) {
        Some(message) => {
            call.message = message;
            call.dispatch()
        }
        None => Err(Failure::new(Slot::Decoder, Kind::Broken, "the call request is malformed")),
    };
    reply.clear();
    match &outcome {
        Ok(Outcome::Fields { valid, json }) => _ = reply.byte(0).byte(u8::from(*valid)).text(json),
        Ok(Outcome::Bytes { port, bytes }) => _ = reply.byte(1).byte(*port).text(bytes),
        Err(failure) => failure.write(reply.byte(2)),
    }
    reply.number(call.warnings.len() as u32);
    for warning in &call.warnings {
        reply.text(warning.as_bytes());
    }
    guest.log.take().write(reply);
}

impl<'a> Message<'a> {
    const EMPTY: Message<'static> = Message { entry: Entry::Uplink, port: 0, time_ms: 0, payload: &[] };

    fn read(request: &'a [u8]) -> Option<Self> {
        let mut reader = Reader::new(request);
        let entry = Entry::from_byte(reader.byte()?)?;
        let port = reader.byte()?;
        let time_ms = reader.long()? as i64;
        clock::set(time_ms, reader.long()?);
        let message = Self { entry, port, time_ms, payload: reader.text()? };
        reader.is_empty().then_some(message)
    }
}

impl Call<'_> {
    fn dispatch(&mut self) -> Result<Outcome, Failure> {
        let functions = self.guest.functions.borrow();
        match self.message.entry {
            Entry::Uplink => uplink::run(self, &functions),
            Entry::EncodeDownlink => downlink::encode(self, functions[Slot::Encoder as usize].as_ref()),
            Entry::DecodeDownlink => uplink::decode_downlink(self, functions[DECODE_DOWNLINK].as_ref()),
        }
    }

    /// The payload as the array that a function gets.
    pub(crate) fn byte_array(&self, function: &Function) -> Result<Value, Failure> {
        self.made(function, function.realm().byte_array(self.message.payload))
    }

    /// The port as a number.
    pub(crate) fn port(&self, realm: Realm) -> Value {
        realm.number(f64::from(self.message.port))
    }

    /// A value that we made for a function; making it can only run out of memory.
    pub(crate) fn made<T>(&self, function: &Function, value: Result<T, Thrown>) -> Result<T, Failure> {
        value.map_err(|thrown| function.threw(self.guest, &thrown))
    }

    /// Sets the globals that a text of TTN v2 reads.
    pub(crate) fn set_globals(&self, function: &Function, subject: &Value) -> Result<(), Failure> {
        let realm = function.realm();
        if function.globals.0 {
            let set = realm.global().set(subject_name(self.guest, function.slot), subject.share(realm));
            self.made(function, set)?;
        }
        if function.globals.1 {
            self.made(function, realm.global().set(self.guest.names.port, self.port(realm)))?;
        }
        Ok(())
    }

    /// Writes `value`, which `function` returned, as the JSON of an object.
    pub(crate) fn fields(&mut self, function: &Function, value: Value) -> Result<Vec<u8>, Failure> {
        self.guest.enter(function.slot);
        let mut writer = Json::new(self.guest, FIELDS_BYTES_MAX);
        writer.write(value).map_err(|refusal| Failure::refused(self.guest, function.slot, refusal))?;
        let (json, notes) = writer.into_parts();
        if json.first() != Some(&b'{') {
            return Err(Failure::output(function.slot, "returned an object whose JSON is none"));
        }
        notes.into_iter().for_each(|note| self.warn(note));
        Ok(json)
    }

    /// Adds a warning, within limits.
    pub(crate) fn warn(&mut self, text: String) {
        if self.warnings.len() < WARNINGS_MAX {
            self.warnings.push(crate::failure::cut(text, WARNING_BYTES_MAX));
        }
    }

    /// Takes `warnings` and `errors` out of a TS013 result; errors make it a failure.
    pub(crate) fn take_remarks(&mut self, function: &Function, result: &Value) -> Result<(), Failure> {
        let names = &self.guest.names;
        for warning in self.texts(function, self.made(function, result.get(names.warnings))?)? {
            self.warn(warning);
        }
        let errors = self.texts(function, self.made(function, result.get(names.errors))?)?;
        if errors.is_empty() {
            return Ok(());
        }
        let message = crate::failure::cut(errors.join("; "), WARNING_BYTES_MAX);
        Err(Failure::new(function.slot, Kind::Thrown, message))
    }

    /// A list of remarks: an array, or a single one.
    fn texts(&self, function: &Function, value: Value) -> Result<Vec<String>, Failure> {
        let values = match value.primitive() {
            Primitive::Undefined | Primitive::Null | Primitive::Bool(false) => Vec::new(),
            Primitive::Object if value.is_array() => {
                let length = self.made(function, value.length())?.clamp(0, WARNINGS_MAX as i64) as u32;
                (0..length).map(|index| self.made(function, value.at(index))).collect::<Result<_, _>>()?
            }
            _ => vec![value],
        };
        values.iter().map(|value| self.remark(function, value)).collect()
    }

    fn remark(&self, function: &Function, value: &Value) -> Result<String, Failure> {
        if value.primitive() == Primitive::Symbol {
            return Ok(describe(value).to_owned());
        }
        let text = self.made(function, value.text())?;
        Ok(String::from_utf8_lossy(&text[..text.len().min(WARNING_BYTES_MAX)]).into_owned())
    }
}
