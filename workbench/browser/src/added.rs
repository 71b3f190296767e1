//! Payloads of the page as examples of a codec, in the file and the layout of those that it has.

use std::{collections::BTreeSet, path::PathBuf, sync::Arc};

use runtime::{Engine, Function};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    codec::{Codec, EXAMPLES_MAX, Example, Input, compare::Rules},
    file::normal,
    layout::Layout,
    page_files::PageFiles,
    run::{self, update::append::appended},
    text::{span, surrogates::to_json},
    tree::{NewText, Origin, UNREAD, find},
    uplink_example::uplink_example,
};

/// Why payloads are not added.
const BY_HAND: &str = "examples of this layout are written by hand, in their file";

/// The file of the examples with further ones.
#[derive(Serialize)]
pub(crate) struct Added {
    file: Option<NewText>,
    added: usize,
    /// The number of payloads for which the codec returns nothing that an example could state.
    left: usize,
}

/// A payload of the page.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Payload {
    port: u8,
    payload: Vec<u8>,
}

/// Adds the payloads that no example has, each once, with what the codec returns for it.
pub(crate) fn add(
    engine: &Arc<Engine>,
    origin: &Origin,
    text: Option<String>,
    payloads: Vec<Payload>,
) -> Result<Added, String> {
    let codec = find(engine, origin).0.ok_or(UNREAD)?;
    let file = decoder_file(&codec).ok_or("no file has examples of its decoder")?;
    let layout = file.file_name().and_then(|name| Layout::of(name.to_str()?)).ok_or(BY_HAND)?;
    if matches!(layout, Layout::Milesight | Layout::Lines) {
        return Err(BY_HAND.to_owned());
    }
    let is_known = |payload: &Payload| codec.examples.iter().any(|example| payload.is_of(example));
    let mut seen = BTreeSet::new();
    let is_new = |payload: &Payload| !is_known(payload) && seen.insert((payload.port, payload.payload.clone()));
    let new: Vec<Payload> = payloads.into_iter().filter(is_new).collect();
    if codec.examples.len() + new.len() > EXAMPLES_MAX {
        return Err(format!("it would have more than {EXAMPLES_MAX} examples"));
    }
    let examples = new.iter().map(|payload| payload.example(layout)).collect();
    let script = text.unwrap_or_else(|| codec.script.clone());
    let codec = Codec { script, examples, ..codec };
    let report = run::codec::run(engine, &mut engine.sandbox(), &codec, Rules::default());
    let returned = report.examples.iter().map(|example| Some(example.settled.as_ref()?.new.clone()));
    let stated = new
        .iter()
        .zip(returned)
        .filter_map(|(Payload { port, payload }, value)| uplink_example(layout, *port, payload, &value?));
    let examples: Vec<Value> = stated.collect();
    let (added, left) = (examples.len(), new.len() - examples.len());
    if added == 0 {
        return Ok(Added { file: None, added, left });
    }
    let before = PageFiles.text(&file).map_err(|error| error.to_string())?;
    let file = Some(NewText { text: with_examples(layout, &before, &examples)?, path: file });
    Ok(Added { file, added, left })
}

/// The file with the last example of its decoder.
fn decoder_file(codec: &Codec) -> Option<PathBuf> {
    let mut examples = codec.examples.iter().rev();
    let last = examples.find(|example| example.function == Function::Decoder)?;
    last.place.as_ref().map(|place| normal(&place.file))
}

impl Payload {
    fn is_of(&self, example: &Example) -> bool {
        let is_same = |bytes: &[u8]| bytes == self.payload && example.port == self.port;
        example.function == Function::Decoder && matches!(&example.input, Input::Bytes(bytes) if is_same(bytes))
    }

    fn example(&self, layout: Layout) -> Example {
        let input = Input::Bytes(self.payload.clone());
        Example { port: self.port, wrapped: layout != Layout::Own, ..Example::new(Function::Decoder, input) }
    }
}

/// The text of a file with examples behind those that it has.
fn with_examples(layout: Layout, text: &str, examples: &[Value]) -> Result<String, String> {
    match layout {
        Layout::Own => appended(text, &["examples"], examples),
        Layout::DeviceRepository => appended(text, &["uplinkDecoder", "examples"], examples),
        _ => appended_json(text, examples),
    }
}

/// The same for a list of JSON, or of JavaScript that looks like it.
fn appended_json(text: &str, examples: &[Value]) -> Result<String, String> {
    let items = span::find(text, &[]).and_then(|range| span::items(text, &range));
    let items = items.ok_or("its examples are no plain list")?;
    let last = items.last().ok_or("its list of examples is empty")?;
    let (before, behind) = text.split_at_checked(last.value.end).ok_or("its examples are no plain list")?;
    let line = before.get(..last.start).and_then(|before| before.rsplit('\n').next()).unwrap_or_default();
    let between = if before.contains('\n') && line.trim().is_empty() { format!(",\n{line}") } else { ", ".to_owned() };
    let new: String = examples.iter().map(|example| format!("{between}{}", to_json(example))).collect();
    Ok(format!("{before}{new}{behind}"))
}
