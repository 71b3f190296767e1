//! What the page asks, and the answers.

use std::{convert::Infallible, slice, sync::Arc, time::Duration};

use runtime::{Engine, Limits};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{
    added::{self, Payload},
    codec::Codec,
    difference::difference,
    fuzz::{FuzzPlan, FuzzReport, fuzz},
    lint::{Verdict, finding::Finding, lint, target::Target},
    new_examples::{self, Typed},
    port::{Ported, port},
    submitted::Submitted,
    tree::{self, Origin},
};

/// The longest payload of a LoRaWAN message, in bytes.
const PAYLOAD_BYTES_MAX: usize = 242;
/// Somebody waits for the faults of a codec.
const FUZZ_TIME_MAX: Duration = Duration::from_secs(60);

/// A request of the page: a question, and the limits of its sandbox.
#[derive(Deserialize)]
struct Request {
    limits: Limits,
    question: Question,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
enum Question {
    /// The networks for which codecs are judged.
    Networks,
    /// The verdict on a codec for each of them.
    Lint(Submitted),
    /// The codec as another network takes it, and the proof.
    Port { codec: Submitted, target: String },
    /// The faults of a codec with as many random payloads.
    Fuzz { codec: Submitted, seed: u64, count: u32 },
    /// The codecs of the files that the page has opened.
    Codecs,
    /// One of them, with its payloads.
    OpenCodec(Origin),
    /// What came of its examples.
    TestCodec { origin: Origin, text: Option<String> },
    /// The verdict on it for each network.
    LintCodec(Origin),
    /// Both of several codecs in one directory.
    CompareCodecs(Vec<Origin>),
    /// The files of its examples, expecting what it returns.
    UpdateExamples { origin: Origin, text: Option<String> },
    /// The file of its examples, with payloads as further ones.
    AddExamples { origin: Origin, text: Option<String>, payloads: Vec<Payload> },
    /// A new file with payloads as examples of a codec that is typed.
    NewExamples(Typed),
    /// The file that tests codecs in CI.
    CiFile,
}

/// The reply to a request, as JSON: `answer`, or the reason why there is none as `problem`.
pub(crate) fn answer(request: &[u8]) -> Vec<u8> {
    let request = serde_json::from_slice::<Request>(request).map_err(|error| error.to_string());
    let reply = match request.and_then(Request::answer) {
        Ok(answer) => json!({ "answer": answer }),
        Err(problem) => json!({ "problem": problem }),
    };
    reply.to_string().into_bytes()
}

impl Request {
    fn answer(self) -> Result<Value, String> {
        let engine = Arc::new(Engine::new(self.limits));
        match self.question {
            Question::Networks => {
                written(&Target::ALL.map(|target| json!({"name": target.name(), "title": target.title()})))
            }
            Question::Lint(codec) => written(&verdicts(&engine, &codec.codec()?)),
            Question::Port { codec, target } => {
                let target = Target::from_name(&target).ok_or_else(|| format!("there is no network `{target}`"))?;
                let codec = codec.codec()?;
                written(&PortReply::new(&codec.script, port(&engine, slice::from_ref(&codec), target)))
            }
            Question::Fuzz { codec, seed, count } => written(&faults(&engine, &codec.codec()?, seed, count)),
            Question::Codecs => written(&tree::list(&engine)),
            Question::OpenCodec(origin) => written(&tree::open(&engine, &origin)?),
            Question::TestCodec { origin, text } => written(&tree::test(&engine, &origin, text)),
            Question::LintCodec(origin) => {
                let codec = tree::find(&engine, &origin).0.ok_or(tree::UNREAD)?;
                written(&verdicts(&engine, &codec))
            }
            Question::CompareCodecs(origins) => {
                written(&tree::compare(&engine, &origins, |codec| verdicts(&engine, codec)))
            }
            Question::UpdateExamples { origin, text } => written(&tree::update(&engine, &origin, text)),
            Question::AddExamples { origin, text, payloads } => written(&added::add(&engine, &origin, text, payloads)?),
            Question::NewExamples(typed) => written(&new_examples::write(&engine, typed)?),
            Question::CiFile => written(&tree::ci_file()),
        }
    }
}

fn written(answer: &impl Serialize) -> Result<Value, String> {
    serde_json::to_value(answer).map_err(|error| error.to_string())
}

fn verdicts(engine: &Arc<Engine>, codec: &Codec) -> Vec<Verdict> {
    let mut verdicts = Vec::new();
    let Ok(()) = lint(engine, slice::from_ref(codec), &Target::ALL, 1, |report| {
        verdicts.clone_from(&report.verdicts);
        Ok::<(), Infallible>(())
    });
    verdicts
}

fn faults(engine: &Arc<Engine>, codec: &Codec, seed: u64, count: u32) -> Option<FuzzReport> {
    let plan = FuzzPlan {
        seed,
        count,
        length_max: PAYLOAD_BYTES_MAX,
        ports: Vec::new(),
        time_ms: None,
        dialect: None,
        time_max: Some(FUZZ_TIME_MAX),
    };
    let mut faults = None;
    let Ok(()) = fuzz(engine, slice::from_ref(codec), &plan, 1, |_, report| {
        faults = Some(report);
        Ok::<(), Infallible>(())
    });
    faults
}

/// A codec as the network takes it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PortReply {
    /// Empty if there is none.
    text: String,
    /// What differs from the text before, as a unified diff.
    diff: String,
    is_sound: bool,
    changes: Vec<String>,
    obstacles: Vec<Finding>,
    differences: Vec<Finding>,
    examples: usize,
    compared: usize,
    agreed: usize,
}

impl PortReply {
    fn new(before: &str, ported: Ported) -> Self {
        let is_sound = ported.is_sound();
        let diff = if ported.text.is_empty() { String::new() } else { difference(before, &ported.text) };
        let Ported { text, changes, obstacles, examples, compared, agreed, differences } = ported;
        Self { text, diff, is_sound, changes, obstacles, differences, examples, compared, agreed }
    }
}
