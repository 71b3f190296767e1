//! One message through the functions.

use crate::clock;
use crate::dialect::Function;
use crate::failure::{self, Failure};
use crate::guest::Guest;
use crate::js::{Realm, Thrown, Value};
use crate::json::Writer as Json;
use crate::wire::{self, Entry, Kind, Reader, Slot, Writer};
use crate::{downlink, trial, uplink};
use std::ffi::CString;

/// What is known of a message.
pub(crate) struct Message<'a> {
    pub(crate) entry: Entry,
    pub(crate) port: u8,
    pub(crate) time_ms: i64,
    pub(crate) payload: &'a [u8],
    /// What a trial runs.
    trial: Option<wire::Function>,
    /// A JSON object that a trial adds to the input; empty for none.
    extra: &'a [u8],
}

/// What the functions made of it.
pub(crate) enum Outcome {
    Fields { valid: bool, json: Vec<u8>, normalized: Option<Vec<u8>> },
    Bytes { port: u8, bytes: Vec<u8> },
    Returned { json: Option<Vec<u8>> },
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
        None => Err(malformed()),
    };
    reply.clear();
    match &outcome {
        Ok(outcome) => outcome.write(reply),
        Err(failure) => failure.write(reply.byte(2), guest.bounds().message_bytes_max),
    }
    reply.number(call.warnings.len() as u32);
    for warning in &call.warnings {
        reply.text(warning.as_bytes());
    }
    guest.log.take().write(reply);
}

/// Writes what can be said after a trap, when any of our own work may be half done.
pub(crate) fn last_words(guest: &Guest, words: &mut Writer) {
    let (line, column) = guest.slot().and_then(|slot| guest.place(slot)).unwrap_or((0, 0));
    words.number(line).number(column);
    match guest.log.try_borrow() {
        Ok(log) => log.write(words),
        Err(_) => _ = words.number(0),
    }
}

fn malformed() -> Failure {
    Failure::new(Slot::Decoder, Kind::Broken, "the call request is malformed")
}

impl<'a> Message<'a> {
    const EMPTY: Message<'static> =
        Message { entry: Entry::Uplink, port: 0, time_ms: 0, payload: &[], trial: None, extra: &[] };

    fn read(request: &'a [u8]) -> Option<Self> {
        let mut reader = Reader::new(request);
        let entry = Entry::from_byte(reader.byte()?)?;
        let port = reader.byte()?;
        let time_ms = reader.long()? as i64;
        clock::set(time_ms, reader.long()?);
        let mut message = Self { entry, port, time_ms, payload: reader.text()?, ..Message::EMPTY };
        if entry == Entry::Trial {
            message.trial = Some(wire::Function::from_byte(reader.byte()?)?);
            message.extra = reader.text()?;
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
        match (self.message.entry, self.message.trial) {
            (Entry::Uplink, _) => uplink::run(self, &functions),
            (Entry::EncodeDownlink, _) => downlink::encode(self, functions[Slot::Encoder as usize].as_ref()),
            (Entry::DecodeDownlink, _) => uplink::decode_downlink(self, &functions),
            (Entry::Trial, Some(which)) => trial::run(self, &functions, which),
            (Entry::Trial, None) => Err(malformed()),
        }
    }

    /// The payload as the array that a function gets.
    pub(crate) fn byte_array(&self, function: &Function) -> Result<Value, Failure> {
        self.made(function, function.realm().byte_array(self.message.payload))
    }

    /// The payload as the value whose JSON it is; `undefined` if it is empty.
    pub(crate) fn value(&self, function: &Function) -> Result<Value, Failure> {
        if self.message.payload.is_empty() {
            return Ok(function.realm().undefined());
        }
        self.parse(function, self.message.payload)
    }

    /// The object that a trial adds to the input, if it does.
    pub(crate) fn extra(&self, function: &Function) -> Result<Option<Value>, Failure> {
        if self.message.extra.is_empty() {
            return Ok(None);
        }
        self.parse(function, self.message.extra).map(Some)
    }

    /// The object that functions of ChirpStack 3 get last.
    pub(crate) fn variables(&self, function: &Function) -> Result<Value, Failure> {
        match self.extra(function)? {
            Some(variables) => Ok(variables),
            None => self.made(function, function.realm().object()),
        }
    }

    /// The value whose JSON the bytes are.
    pub(crate) fn parse(&self, function: &Function, json: &[u8]) -> Result<Value, Failure> {
        let unfit = |message| Failure::output(function.slot, message);
        let text = CString::new(json).map_err(|_| unfit("got fields with a zero byte"))?;
        function.realm().parse_json(&text).map_err(|_| unfit("got fields that are no JSON"))
    }

    /// The port as a number.
    pub(crate) fn port(&self, realm: Realm) -> Value {
        realm.number(f64::from(self.message.port))
    }

    /// A value that we made for a function; making it can only run out of memory.
    pub(crate) fn made<T>(&self, function: &Function, value: Result<T, Thrown>) -> Result<T, Failure> {
        value.map_err(|thrown| function.threw(self.guest, &thrown))
    }

    /// Writes `value`, which `function` returned, as the JSON of an object.
    pub(crate) fn fields(&mut self, function: &Function, value: Value) -> Result<Vec<u8>, Failure> {
        match self.json(function, value)? {
            Some(json) if json.first() == Some(&b'{') => Ok(json),
            _ => Err(Failure::output(function.slot, "returned an object whose JSON is none")),
        }
    }

    /// Writes `value`, which `function` returned, as JSON; none for what JSON leaves out.
    pub(crate) fn json(&mut self, function: &Function, value: Value) -> Result<Option<Vec<u8>>, Failure> {
        let (json, notes) = self.write(function, value)?;
        notes.into_iter().for_each(|note| self.warn(note));
        Ok(json)
    }

    /// The same, with notes about numbers that JSON does not have.
    pub(crate) fn write(&self, function: &Function, value: Value) -> Result<(Option<Vec<u8>>, Vec<String>), Failure> {
        self.guest.enter(function.slot);
        value.keep();
        let mut writer = Json::new(self.guest, self.guest.bounds().fields_bytes_max as usize);
        let written = writer.write(value).map_err(|refusal| Failure::refused(self.guest, function.slot, refusal))?;
        let (json, notes) = writer.into_parts();
        Ok((written.then_some(json), notes))
    }

    /// Adds a warning, within limits.
    pub(crate) fn warn(&mut self, text: String) {
        let bounds = self.guest.bounds();
        if self.warnings.len() < bounds.warnings_max as usize {
            self.warnings.push(failure::cut(text.as_bytes(), bounds.message_bytes_max));
        }
    }
}
