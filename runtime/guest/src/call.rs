//! Runs one message through the functions.

mod downlink;
mod function;
mod globals;
mod normalize;
mod single_function;
mod transfer;
mod ts013;
mod uplink;

use crate::environment::clock;
use crate::failure::{self, Failure};
use crate::guest::{Function, Guest};
use crate::js::{Primitive, Realm, Thrown, Value};
use crate::json::Writer as Json;
use crate::wire::{self, EntryPoint, FailureKind, Reader, Slot, Writer};
use std::ffi::CString;

/// A decoded call request.
pub(crate) struct Message<'a> {
    pub(crate) entry_point: EntryPoint,
    pub(crate) port: u8,
    pub(crate) time_ms: i64,
    pub(crate) payload: &'a [u8],
    /// For [`EntryPoint::SingleFunction`]: which function.
    single_function: Option<wire::Function>,
    /// A JSON object with more input: members for TS013 functions, `variables` for ChirpStack 3; empty for none.
    extra: &'a [u8],
}

/// A successful result.
pub(crate) enum Outcome {
    Fields { valid: bool, json: Vec<u8>, normalized: Option<Vec<u8>> },
    Bytes { port: u8, bytes: Vec<u8> },
    Returned { json: Option<Vec<u8>> },
}

pub(crate) struct Call<'a> {
    pub(crate) guest: &'a Guest,
    pub(crate) message: Message<'a>,
    pub(crate) warnings: Vec<String>,
}

/// Runs the message in `request` and writes the reply.
pub(crate) fn run(guest: &Guest, request: &[u8], reply: &mut Writer) {
    guest.start();
    let mut call = Call { guest, message: Message::EMPTY, warnings: Vec::new() };
    let outcome = match Message::read(request) {
        Some(message) => {
            call.message = message;
            call.dispatch()
        }
        None => Err(malformed()),
    };
    match &outcome {
        Ok(outcome) => outcome.write(reply),
        Err(failure) => failure.write(reply.byte(2), guest.limits().message_bytes_max),
    }
    reply.number(call.warnings.len() as u32);
    for warning in &call.warnings {
        reply.text(warning.as_bytes());
    }
    guest.log.take().write(reply);
}

/// Writes the trap report. Any of the guest's own data structures may be in the middle of a change.
pub(crate) fn trap_report(guest: &Guest, report: &mut Writer) {
    let (line, column) = guest.slot().and_then(|slot| guest.location(slot)).unwrap_or((0, 0));
    report.number(line).number(column);
    match guest.log.try_borrow() {
        Ok(log) => log.write(report),
        Err(_) => _ = report.number(0),
    }
}

fn malformed() -> Failure {
    Failure::new(Slot::Decoder, FailureKind::Broken, "the call request is malformed")
}

impl<'a> Message<'a> {
    const EMPTY: Message<'static> = Message {
        entry_point: EntryPoint::Uplink,
        port: 0,
        time_ms: 0,
        payload: &[],
        single_function: None,
        extra: &[],
    };

    fn read(request: &'a [u8]) -> Option<Self> {
        let mut reader = Reader::new(request);
        let entry_point = EntryPoint::from_byte(reader.byte()?)?;
        let port = reader.byte()?;
        let time_ms = reader.long()? as i64;
        clock::set(time_ms, reader.long()?);
        let (payload, extra) = (reader.text()?, reader.text()?);
        let mut message = Self { entry_point, port, time_ms, payload, extra, single_function: None };
        if entry_point == EntryPoint::SingleFunction {
            message.single_function = Some(wire::Function::from_byte(reader.byte()?)?);
        }
        reader.is_empty().then_some(message)
    }
}

impl Outcome {
    fn write(&self, reply: &mut Writer) {
        match self {
            Self::Fields { valid, json, normalized } => {
                reply.byte(0).byte(u8::from(*valid)).text(json).text(normalized.as_deref().unwrap_or_default())
            }
            Self::Bytes { port, bytes } => reply.byte(1).byte(*port).text(bytes),
            Self::Returned { json } => reply.byte(3).text(json.as_deref().unwrap_or_default()),
        };
    }
}

impl Call<'_> {
    fn dispatch(&mut self) -> Result<Outcome, Failure> {
        let functions = self.guest.functions.borrow();
        match (self.message.entry_point, self.message.single_function) {
            (EntryPoint::Uplink, _) => uplink::run(self, &functions),
            (EntryPoint::EncodeDownlink, _) => downlink::encode(self, functions[Slot::Encoder as usize].as_ref()),
            (EntryPoint::DecodeDownlink, _) => uplink::decode_downlink(self, &functions),
            (EntryPoint::SingleFunction, Some(which)) => single_function::run(self, &functions, which),
            (EntryPoint::SingleFunction, None) => Err(malformed()),
        }
    }

    /// The payload as a JavaScript array.
    pub(crate) fn byte_array(&self, function: &Function) -> Result<Value, Failure> {
        self.made(function, function.realm().byte_array(self.message.payload))
    }

    /// The payload, parsed as JSON; `undefined` if it is empty.
    pub(crate) fn value(&self, function: &Function) -> Result<Value, Failure> {
        if self.message.payload.is_empty() {
            return Ok(function.realm().undefined());
        }
        self.parse(function, self.message.payload)
    }

    /// The object with more input, if there is one.
    pub(crate) fn extra(&self, function: &Function) -> Result<Option<Value>, Failure> {
        if self.message.extra.is_empty() {
            return Ok(None);
        }
        self.parse(function, self.message.extra).map(Some)
    }

    /// The last argument of ChirpStack 3 functions.
    pub(crate) fn variables(&self, function: &Function) -> Result<Value, Failure> {
        if let Some(extra) = self.extra(function)? {
            let variables = self.made(function, extra.get(self.guest.names.variables))?;
            if variables.primitive() == Primitive::Object {
                return Ok(variables);
            }
        }
        self.made(function, function.realm().object())
    }

    pub(crate) fn parse(&self, function: &Function, json: &[u8]) -> Result<Value, Failure> {
        let unusable = |message| Failure::output(function.slot, message);
        let text = CString::new(json).map_err(|_| unusable("got fields with a zero byte"))?;
        function.realm().parse_json(&text).map_err(|_| unusable("got fields that are no JSON"))
    }

    /// The port as a JavaScript number.
    pub(crate) fn port(&self, realm: Realm) -> Value {
        realm.number(f64::from(self.message.port))
    }

    /// Turns a failure to create a value, which can only be out of memory, into a failure of the function.
    pub(crate) fn made<T>(&self, function: &Function, value: Result<T, Thrown>) -> Result<T, Failure> {
        value.map_err(|thrown| function.threw(self.guest, &thrown))
    }

    /// Serializes the object that `function` returned.
    pub(crate) fn fields(&mut self, function: &Function, value: Value) -> Result<Vec<u8>, Failure> {
        match self.json(function, value)? {
            Some(json) if json.first() == Some(&b'{') => Ok(json),
            _ => Err(Failure::output(function.slot, "returned an object whose JSON is none")),
        }
    }

    /// Serializes the value that `function` returned; none if JSON omits it.
    pub(crate) fn json(&mut self, function: &Function, value: Value) -> Result<Option<Vec<u8>>, Failure> {
        let (json, notes) = self.write(function, value)?;
        notes.into_iter().for_each(|note| self.warn(note));
        Ok(json)
    }

    /// Serializes a value, with notes about numbers that JSON cannot represent.
    pub(crate) fn write(&self, function: &Function, value: Value) -> Result<(Option<Vec<u8>>, Vec<String>), Failure> {
        self.guest.enter(function.slot);
        value.leak();
        let mut writer = Json::new(self.guest, self.guest.limits().fields_bytes_max as usize);
        let written = writer.write(value).map_err(|refusal| Failure::refused(self.guest, function.slot, refusal))?;
        let (json, notes) = writer.into_parts();
        Ok((written.then_some(json), notes))
    }

    /// Adds a warning, within the limits.
    pub(crate) fn warn(&mut self, text: String) {
        let limits = self.guest.limits();
        if self.warnings.len() < limits.warnings_max as usize {
            self.warnings.push(failure::cut(text.as_bytes(), limits.message_bytes_max));
        }
    }
}
