//! The functions and the message of a command, from its arguments.

use std::path::{Path, PathBuf};

use anyhow::anyhow;
use replay::RecordedUplink;
use runtime::{Call, Dialect, Engine, EntryPoint, Failure, Slot, Sources};
use types::Clock;
use workbench::{BadInput, describe, is_stdin};

use super::{
    MessageArgs,
    values::{name, text, variables},
};

/// The seed of `Math.random`, but for records of our own.
pub(in crate::commands::functions) const SEED: u64 = 1;

pub(in crate::commands::functions) fn sources(file: &Path, message: &MessageArgs) -> anyhow::Result<Sources> {
    let own = PathBuf::from(file);
    let files = [Some(&own), message.converter.as_ref(), message.validator.as_ref(), message.message.as_ref()];
    let files = files.into_iter().chain([message.variables.as_ref()]);
    if files.flatten().filter(|file| is_stdin(file)).count() > 1 {
        let reason =
            "`-` appears more than once: standard input can be only one of the functions, the message or the variables";
        return Err(BadInput::Request(reason.to_owned()).into());
    }
    let read = |file: Option<&PathBuf>, slot| file.map_or_else(|| Ok(String::new()), |file| read_function(file, slot));
    let (decoder, encoder) = match message.fields {
        None => (Some(&own), None),
        Some(_) => (None, Some(&own)),
    };
    Ok(Sources {
        decoder: read(decoder, Slot::Decoder)?,
        converter: read(message.converter.as_ref(), Slot::Converter)?,
        validator: read(message.validator.as_ref(), Slot::Validator)?,
        encoder: read(encoder, Slot::Encoder)?,
        dialect: message.dialect.map(Into::into),
        ..Sources::default()
    })
}

/// Reads a function. A blank file would silently skip a step, so it is an error.
fn read_function(file: &Path, slot: Slot) -> anyhow::Result<String> {
    let text = workbench::read_function(file).map_err(|source| BadInput::File { file: name(file), source })?;
    if text.trim().is_empty() {
        let names = Dialect::ALL.into_iter().filter_map(|dialect| dialect.function_name(slot));
        let names = names.map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        let (slot, file) = (slot.name(), name(file));
        let reason = format!("no {slot} in {file}: the file is empty; expected a function named {names}");
        return Err(BadInput::Request(reason).into());
    }
    Ok(text)
}

/// Loads the functions; the error says if an encoder was given as a decoder, or the reverse.
pub(in crate::commands::functions) fn load(engine: &Engine, sources: &Sources) -> anyhow::Result<runtime::Functions> {
    engine.load(sources, engine.limits()).map_err(|failure| {
        let (decoder, encoder) = (sources.encoder.clone(), sources.decoder.clone());
        let swapped = Sources { decoder, encoder, dialect: sources.dialect, ..Sources::default() };
        let loads_swapped = || engine.load(&swapped, engine.limits()).is_ok();
        let error = to_error(&failure, sources);
        match failure.slot {
            Slot::Decoder if loads_swapped() => anyhow!("{error}; it is an encoder, which needs --fields"),
            Slot::Encoder if loads_swapped() => anyhow!("{error}; it is a decoder, which needs --hex"),
            _ => error,
        }
    })
}

pub(in crate::commands::functions) fn call(message: &MessageArgs, clock: &dyn Clock) -> anyhow::Result<Call> {
    let given = message.hex.as_ref().or(message.base64.as_ref()).map(|bytes| bytes.0.clone());
    let uplink = match (&message.message, given) {
        (Some(file), _) => of_network(file)?,
        (None, payload) => {
            RecordedUplink { payload: payload.unwrap_or_default(), port: 1, ..RecordedUplink::default() }
        }
    };
    let (entry_point, payload) = match &message.fields {
        Some(fields) => (EntryPoint::EncodeDownlink, fields.0.get().as_bytes().to_vec()),
        None => (EntryPoint::Uplink, uplink.payload),
    };
    let time_ms = message.time.or(uplink.time).unwrap_or_else(|| clock.now()).as_millis();
    let port = message.port.unwrap_or(uplink.port);
    let seed = uplink.seed.unwrap_or(SEED);
    let extra = match &message.variables {
        Some(file) if uplink.extra.is_empty() => variables(file)?,
        _ => uplink.extra,
    };
    Ok(Call { entry_point, port, time_ms, seed, payload, extra, single_function: None })
}

/// The message in a file, as a network reports it.
fn of_network(file: &Path) -> anyhow::Result<RecordedUplink> {
    let text = text(file)?;
    let uplink = replay::parse_uplink(&text);
    uplink.map_err(|error| BadInput::Request(format!("{} is not an uplink: {error}", name(file))).into())
}

/// The failure with its source line, as the command's error.
pub(in crate::commands::functions) fn to_error(failure: &Failure, sources: &Sources) -> anyhow::Error {
    anyhow::Error::msg(describe(failure, sources))
}
