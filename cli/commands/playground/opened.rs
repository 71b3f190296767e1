//! The codec that the page opens: a file, and the messages of its examples.

use std::{path::Path, sync::Arc};

use anyhow::Context;
use runtime::{Dialect, Engine, Function, Slot, Sources};
use serde::Serialize;
use serde_json::Value;
use workbench::{Codec, Example, Input};

/// A codec and its messages, as the page reads them.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Opened {
    name: String,
    text: String,
    dialect: Option<&'static str>,
    uplinks: Vec<OpenedPayload>,
    /// Fields of the first downlink that an example encodes.
    fields: Option<Value>,
}

/// A payload, in hexadecimal.
#[derive(Debug, Serialize)]
struct OpenedPayload {
    port: u8,
    payload: String,
    description: String,
}

impl Opened {
    /// Reads a file as `functions test` does; of several codecs, the first.
    pub(super) fn read(file: &Path, settings: &runtime::Settings) -> anyhow::Result<Self> {
        let engine = Arc::new(Engine::new(settings)?);
        let mut found = workbench::find(&[file.to_owned()], None, &engine);
        if let Some(problem) = found.problems.pop() {
            return Err(problem.into());
        }
        let codec = found.codecs.into_iter().next().with_context(|| format!("no codec in {}", file.display()))?;
        let sources = Sources { dialect: codec.dialect, ..Sources::single_file(&codec.script) };
        // A source that cannot be loaded is shown, too: the page tells why.
        let encoder =
            engine.load(&sources, engine.limits()).ok().and_then(|functions| functions.dialect(Slot::Encoder));
        Ok(Self::of(&codec, encoder == Some(Dialect::Ts013)))
    }

    fn of(codec: &Codec, is_ts013: bool) -> Self {
        let uplinks = codec.examples.iter().filter(|example| example.function == Function::Decoder);
        let mut downlinks = codec.examples.iter().filter(|example| example.function == Function::Encoder);
        let fields = downlinks.find_map(|example| example.fields(is_ts013)).cloned();
        Self {
            name: codec.id.clone(),
            text: codec.script.clone(),
            dialect: codec.dialect.map(Dialect::name),
            uplinks: uplinks.filter_map(message).collect(),
            fields,
        }
    }
}

fn message(example: &Example) -> Option<OpenedPayload> {
    let Input::Bytes(payload) = &example.input else { return None };
    let payload = hex::encode(payload);
    Some(OpenedPayload { port: example.port, payload, description: example.description.clone() })
}
