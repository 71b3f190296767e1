//! Payloads of the page, with what the codec returns for them, as a new file in a layout that somebody has chosen.

use std::{slice, sync::Arc};

use runtime::{Dialect, Engine, FailureKind, Function, Functions, Sandbox, Value as Returned};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use types::Timestamp;

use crate::{
    codec::{
        DEFAULT_TIME_MS, EXAMPLES_MAX, Example, Input,
        call::{call, dialect},
        compare::differences,
        kind_name,
    },
    layout::Layout,
    report::describe,
    submitted::Submitted,
    text::{
        surrogates::{mark, to_json},
        yaml, yaml_text,
    },
    uplink_example::{description, uplink_example},
};

/// The layouts of new files, by their names in the page.
const LAYOUTS: [(&str, Layout); 5] = [
    ("own", Layout::Own),
    ("repository", Layout::DeviceRepository),
    ("profile", Layout::DeviceProfile),
    ("package", Layout::Package),
    ("milesight", Layout::Milesight),
];
/// The port that Milesight's devices send on, and the only one of that layout.
const MILESIGHT_PORT: u8 = 85;

/// What is typed, and the file that is wanted of it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Typed {
    layout: String,
    /// The name of the codec's file.
    script: String,
    codec: Submitted,
    payloads: Vec<Payload>,
    downlink: Option<Downlink>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Payload {
    port: u8,
    payload: Vec<u8>,
    /// None for the time that examples have by themselves.
    time_ms: Option<i64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Downlink {
    port: u8,
    /// An object, in JSON.
    fields: String,
}

/// The file, which belongs beside `script`.
#[derive(Serialize)]
pub(crate) struct NewExamples {
    file: String,
    text: String,
    script: String,
    count: usize,
    /// The number of examples that this layout cannot state.
    left: usize,
    /// The number of payloads that did not run, because a codec has no more examples.
    cut: usize,
}

/// How a call ended.
enum End {
    Value(Value),
    /// One that only our layout can state, by the name that it has there.
    Outcome(&'static str),
}

/// A payload that has run.
struct Ran {
    payload: Payload,
    /// None for one that no example could state.
    end: Option<End>,
}

/// Runs payloads and fields, each once, and writes them as examples.
pub(crate) fn write(engine: &Arc<Engine>, typed: Typed) -> Result<NewExamples, String> {
    let Typed { layout: name, script, codec, mut payloads, downlink } = typed;
    let layout = LAYOUTS.iter().find(|(known, _)| *known == name).map(|(_, layout)| *layout);
    let layout = layout.ok_or_else(|| format!("there is no layout `{name}`"))?;
    let codec = codec.codec()?;
    let sources = codec.sources();
    let functions = engine.load(&sources, engine.limits()).map_err(|failure| describe(&failure, &sources))?;
    // The fields of a downlink may become one more.
    let cut = payloads.len().saturating_sub(EXAMPLES_MAX - 1);
    payloads.truncate(EXAMPLES_MAX - 1);
    let mut runner = Runner { sandbox: engine.sandbox(), functions: &functions };
    let uplinks: Vec<Ran> = payloads.into_iter().map(|payload| runner.uplink(payload)).collect();
    let has_encoder = dialect(&functions, Function::Encoder).is_some();
    let downlink = downlink.filter(|_| has_encoder);
    let all = uplinks.len() + usize::from(downlink.is_some());
    let stem = stem(&script);
    let is_ts013 = dialect(&functions, Function::Decoder) == Some(Dialect::Ts013);
    let file = match layout {
        Layout::Own => {
            let downlink = downlink.map(|downlink| runner.downlink(downlink)).transpose()?.flatten();
            let examples = uplinks.iter().filter_map(own_example).chain(downlink).collect();
            own_file(stem, &script, codec.dialect, examples)
        }
        Layout::Milesight => milesight_file(stem, &uplinks, is_ts013),
        _ => {
            shared_file(layout, stem, &script, uplinks.iter().filter_map(|ran| ran.example(layout, is_ts013)).collect())
        }
    };
    Ok(NewExamples { left: all - file.count, cut, ..file })
}

/// The name of a file without its end.
fn stem(script: &str) -> &str {
    let stem = script.rsplit_once('.').map_or(script, |(stem, _)| stem);
    if stem.is_empty() { "codec" } else { stem }
}

struct Runner<'a> {
    sandbox: Sandbox,
    functions: &'a Functions,
}

impl Runner<'_> {
    fn uplink(&mut self, payload: Payload) -> Ran {
        let input = Input::Bytes(payload.payload.clone());
        let time_ms = payload.time_ms.unwrap_or(DEFAULT_TIME_MS);
        let end = self.run(&Example { port: payload.port, time_ms, ..Example::new(Function::Decoder, input) });
        Ran { payload, end }
    }

    /// The example of an encoder in our layout.
    fn downlink(&mut self, Downlink { port, fields }: Downlink) -> Result<Option<Value>, String> {
        let fields: Value = serde_json::from_str(&mark(&fields)).map_err(|error| format!("the fields: {error}"))?;
        let is_ts013 = dialect(self.functions, Function::Encoder) == Some(Dialect::Ts013);
        let input = if is_ts013 { json!({"data": fields}) } else { fields };
        let end = self.run(&Example { port, ..Example::new(Function::Encoder, Input::Json(input.clone())) });
        let members = json!({"function": kind_name(Function::Encoder), "port": port, "input": input});
        Ok(end.and_then(|end| with_end(members, &end)))
    }

    fn run(&mut self, example: &Example) -> Option<End> {
        match self.sandbox.call(self.functions, &call(self.functions, example)).result {
            Ok(Returned::Returned { json: Some(json) }) => serde_json::from_str(&mark(json.get())).ok().map(End::Value),
            Ok(Returned::Returned { json: None }) => Some(End::Outcome("undefined")),
            Ok(_) => None,
            Err(failure) => match failure.kind {
                FailureKind::Thrown | FailureKind::Stack => Some(End::Outcome("throws")),
                FailureKind::Fuel | FailureKind::Time => Some(End::Outcome("timeout")),
                _ => None,
            },
        }
    }
}

impl Ran {
    /// The example in a layout that has values of TS013, and neither times nor other ends.
    fn example(&self, layout: Layout, is_ts013: bool) -> Option<Value> {
        let Payload { port, payload, time_ms: None } = &self.payload else { return None };
        let Some(End::Value(value)) = &self.end else { return None };
        let value = if is_ts013 { value.clone() } else { json!({"data": value}) };
        uplink_example(layout, *port, payload, &value)
    }

    /// The names of the fields that are found, where a list of fields can have them.
    fn names(&self, is_ts013: bool) -> Option<Vec<&str>> {
        let Some(End::Value(value)) = &self.end else { return None };
        // Members of `data` count in all dialects.
        let fields = value.get("data").filter(|data| !data.is_null()).or_else(|| (!is_ts013).then_some(value))?;
        let names: Vec<&str> = fields.as_object()?.keys().map(String::as_str).collect();
        // A list of fields has these for parts of one.
        let is_name = |name: &&str| !name.contains(['.', '[']) && !name.ends_with("_item");
        (!names.is_empty() && names.iter().all(is_name)).then_some(names)
    }
}

fn own_example(Ran { payload: Payload { port, payload, time_ms }, end }: &Ran) -> Option<Value> {
    let mut members = json!({"description": description(*port, payload), "port": port, "bytes": hex::encode(payload)});
    if let (Some(time_ms), Some(members)) = (time_ms, members.as_object_mut()) {
        members.insert("time".to_owned(), json!(Timestamp::from_millis(*time_ms).to_string()));
    }
    with_end(members, end.as_ref()?)
}

/// An example of our layout with what it states.
fn with_end(mut example: Value, end: &End) -> Option<Value> {
    let (name, value) = match end {
        End::Value(value) => ("output", value.clone()),
        End::Outcome(outcome) => ("outcome", json!(outcome)),
    };
    example.as_object_mut()?.insert(name.to_owned(), value);
    Some(example)
}

fn own_file(stem: &str, script: &str, dialect: Option<Dialect>, examples: Vec<Value>) -> NewExamples {
    let is_named = script != format!("{stem}.js");
    let head = [("script", is_named.then_some(script)), ("dialect", dialect.map(Dialect::name))];
    let root = |examples: &[Value]| {
        let head = head.iter().filter_map(|(name, value)| Some(((*name).to_owned(), json!((*value)?))));
        let all = head.chain([("examples".to_owned(), json!(examples))]);
        Value::Object(all.collect::<Map<_, _>>())
    };
    let (text, count) = yaml_of(examples, root);
    made(format!("{stem}.test.yaml"), text, script, count)
}

/// The file of a layout that other networks have.
fn shared_file(layout: Layout, stem: &str, script: &str, examples: Vec<Value>) -> NewExamples {
    if layout == Layout::DeviceRepository {
        let root = |examples: &[Value]| json!({"uplinkDecoder": {"fileName": script, "examples": examples}});
        let (text, count) = yaml_of(examples, root);
        return made(format!("{stem}-codec.yaml"), text, script, count);
    }
    let lines: Vec<String> = examples.iter().map(|example| format!("  {}", to_json(example))).collect();
    let file = match layout {
        Layout::DeviceProfile => format!("test_decode_{stem}.json"),
        _ => format!("{stem}.examples.json"),
    };
    made(file, format!("[\n{}\n]\n", lines.join(",\n")), &format!("{stem}.js"), lines.len())
}

/// One payload, and the names of the fields that are found in it.
fn milesight_file(stem: &str, uplinks: &[Ran], is_ts013: bool) -> NewExamples {
    let device = stem.strip_suffix("-decoder").unwrap_or(stem);
    let mut of_port = uplinks.iter().filter(|ran| ran.payload.port == MILESIGHT_PORT);
    let found = of_port.find_map(|ran| Some((&ran.payload.payload, ran.names(is_ts013)?)));
    let count = usize::from(found.is_some());
    let (bytes, names) = found.map(|(payload, names)| (hex::encode(payload), names)).unwrap_or_default();
    let object = |id: &str| json!({"id": id, "name": id, "value": "", "access_mode": "R"});
    let objects: Vec<Value> = names.into_iter().map(object).collect();
    let content = json!({"version": "1.0.0", "bytes": bytes, "object": objects});
    let text = format!("{}\n", to_json(&format!("{content:#}")));
    made(format!("{device}-codec.json"), text, &format!("{device}-decoder.js"), count)
}

/// The text of a file, and the number of examples in it: YAML can have most of them, and a text that reads as another one
/// is not written.
fn yaml_of(examples: Vec<Value>, root: impl Fn(&[Value]) -> Value) -> (String, usize) {
    let text = |examples: &[Value]| {
        let value = root(examples);
        let text = format!("{}\n", yaml_text::block(&value, 0));
        let is_same = yaml::parse(&text).is_ok_and(|read| differences(&value, &read.value(), false).is_empty());
        is_same.then_some(text)
    };
    if let Some(text) = text(&examples) {
        return (text, examples.len());
    }
    let stated: Vec<Value> = examples.into_iter().filter(|example| text(slice::from_ref(example)).is_some()).collect();
    text(&stated).map_or((String::new(), 0), |text| (text, stated.len()))
}

fn made(file: String, text: String, script: &str, count: usize) -> NewExamples {
    NewExamples { file, text, script: script.to_owned(), count, left: 0, cut: 0 }
}
