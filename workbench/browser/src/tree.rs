//! What the page asks about the files that it has opened: their codecs, and what each returns for its examples.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    slice,
    sync::Arc,
};

use runtime::{Dialect, Engine, Function, Slot};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    codec::{Codec, Example, Input, compare::Rules},
    file::{Files as _, directory_of, normal},
    layout::{BadInput, Found, Layout, dir::Tree, find_in, read_tree, template},
    lint::Verdict,
    page_files::PageFiles,
    report::{CodecReport, ExampleOutcome, ExampleReport},
    run::{self, update::Updates},
};

/// The reason why nothing is made of a codec.
pub(crate) const UNREAD: &str = "the codec cannot be read from its files";

/// The codecs of the tree.
#[derive(Serialize)]
pub(crate) struct Listing {
    codecs: Vec<Listed>,
    problems: Vec<Problem>,
}

#[derive(Serialize)]
struct Listed {
    origin: Origin,
    /// None if it has no examples.
    layout: Option<&'static str>,
    examples: usize,
}

/// Where a codec is from.
#[derive(Clone, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Origin {
    id: String,
    script: Option<PathBuf>,
    /// The file with its first example.
    examples: Option<PathBuf>,
    /// The number of codecs before it that have all of this in common, as lines of JSON may.
    before: usize,
}

/// A file or line that cannot be read, or not as meant.
#[derive(Serialize)]
struct Problem {
    file: Option<String>,
    line: Option<u64>,
    reason: String,
}

/// A codec as the page shows it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Opened {
    text: String,
    /// True if the text is that of a file, which can be saved: it may be in a line of JSON, or made of several files.
    is_file: bool,
    dialect: Option<&'static str>,
    uplinks: Vec<Uplink>,
    /// What its first example of an encoder encodes.
    fields: Option<Value>,
    /// The files with its examples.
    files: BTreeSet<PathBuf>,
}

#[derive(Serialize)]
struct Uplink {
    port: u8,
    payload: String,
}

/// What came of the examples of a codec. Without it, `problems` say why there is none.
#[derive(Serialize)]
pub(crate) struct Tested {
    report: Option<Report>,
    /// Those of its directory.
    problems: Vec<Problem>,
}

/// What a table of codecs has of one; neither if it cannot be read.
#[derive(Serialize)]
pub(crate) struct Compared {
    report: Option<Report>,
    verdicts: Option<Vec<Verdict>>,
}

#[derive(Serialize)]
struct Report {
    /// The reason why the codec cannot be loaded.
    failure: Option<String>,
    examples: Vec<Outcome>,
}

#[derive(Serialize)]
struct Outcome {
    title: String,
    call: String,
    /// Passed, failed, shown or excluded.
    outcome: &'static str,
    /// What differs, or what was returned.
    lines: Vec<String>,
    fuel: u64,
    /// Line of the script that failed.
    line: Option<u32>,
    file: Option<PathBuf>,
    /// Line of the file.
    at: Option<usize>,
}

/// Files that now expect what a codec returns.
#[derive(Serialize)]
pub(crate) struct Updated {
    files: Vec<NewText>,
    /// The number of expectations that were replaced.
    examples: usize,
    /// Why others were not, each with their number.
    left: Vec<(&'static str, usize)>,
    problems: Vec<Problem>,
}

/// A file, and its text from now on.
#[derive(Serialize)]
pub(crate) struct NewText {
    pub(crate) path: PathBuf,
    pub(crate) text: String,
}

/// The codecs of all files.
pub(crate) fn list(engine: &Arc<Engine>) -> Listing {
    let mut found = Found::nothing();
    read_tree(Tree { files: &PageFiles, root: Path::new("."), engine }, &mut found);
    found.count_more();
    let Found { codecs, problems, .. } = found;
    let listed = codecs.iter().zip(origins(&codecs)).map(|(codec, origin)| {
        let name = origin.examples.as_ref().and_then(|file| file.file_name()?.to_str());
        Listed { layout: name.and_then(Layout::of).map(title), examples: codec.examples.len(), origin }
    });
    Listing { codecs: listed.collect(), problems: problems.iter().map(Problem::of).collect() }
}

/// A codec with its payloads.
pub(crate) fn open(engine: &Arc<Engine>, origin: &Origin) -> Result<Opened, String> {
    let (codec, problems) = find(engine, origin);
    let Some(codec) = codec else {
        let reasons: Vec<String> = problems.iter().map(BadInput::describe).collect();
        return Err(format!("{} is not there any more; {}", origin.id, reasons.join("; ")));
    };
    let own = codec.script_file.as_deref().map(|file| PageFiles.read_script_within(Path::new("."), file));
    let is_file = own.is_some_and(|text| text.is_ok_and(|text| text == codec.script));
    let encoder =
        engine.load(&codec.sources(), engine.limits()).ok().and_then(|functions| functions.dialect(Slot::Encoder));
    let encoded = codec.examples.iter().find(|example| example.function == Function::Encoder);
    let places = codec.examples.iter().filter_map(|example| example.place.as_ref());
    Ok(Opened {
        is_file,
        dialect: codec.dialect.map(Dialect::name),
        uplinks: codec.examples.iter().filter_map(Uplink::of).collect(),
        fields: encoded.and_then(|example| example.fields(encoder == Some(Dialect::Ts013)).cloned()),
        files: places.map(|place| normal(&place.file)).collect(),
        text: codec.script,
    })
}

/// Runs the examples of a codec, whose text may be another one than that of its file.
pub(crate) fn test(engine: &Arc<Engine>, origin: &Origin, text: Option<String>) -> Tested {
    let (report, problems) = report(engine, origin, text);
    Tested { report: report.as_ref().map(Report::of), problems: problems.iter().map(Problem::of).collect() }
}

/// Runs the examples of codecs of one directory, which is read once, and judges each.
pub(crate) fn compare(
    engine: &Arc<Engine>,
    origins: &[Origin],
    judge: impl Fn(&Codec) -> Vec<Verdict>,
) -> Vec<Compared> {
    let Some(first) = origins.first() else { return Vec::new() };
    let codecs = directory(engine, first).codecs;
    let places = places(&codecs, origins);
    let found = places.into_iter().map(|place| place.and_then(|place| codecs.get(place)));
    let compared = found.map(|codec| {
        let report = codec.map(|codec| run::codec::run(engine, &mut engine.sandbox(), codec, Rules::default()));
        Compared { report: report.as_ref().map(Report::of), verdicts: codec.map(&judge) }
    });
    compared.collect()
}

/// Puts what a codec returns in place of what its examples expect.
pub(crate) fn update(engine: &Arc<Engine>, origin: &Origin, text: Option<String>) -> Updated {
    let mut updates = Updates::default();
    if let (Some(report), _) = report(engine, origin, text) {
        updates.add(&report);
    }
    let mut files = Vec::new();
    let written = updates.apply(
        |file| PageFiles.text(file),
        |file, text| {
            files.push(NewText { path: normal(file), text: text.to_owned() });
            Ok(())
        },
    );
    let problems = written.problems.iter().map(Problem::of).collect();
    Updated { files, examples: written.examples, left: written.reasons, problems }
}

fn title(layout: Layout) -> &'static str {
    match layout {
        Layout::Own => "Airlock",
        Layout::DeviceRepository => "The Things Network's device repository",
        Layout::DeviceProfile => "ChirpStack's device profiles",
        Layout::Package => "TS013 package",
        Layout::Milesight => "Milesight",
        Layout::Lines => "JSON lines",
    }
}

/// The file that tests the codecs of a repository in CI.
pub(crate) fn ci_file() -> NewText {
    NewText { path: PathBuf::from(template::CI_FILE), text: template::CI.to_owned() }
}

fn report(engine: &Arc<Engine>, origin: &Origin, text: Option<String>) -> (Option<CodecReport>, Vec<BadInput>) {
    let (codec, problems) = find(engine, origin);
    let report = codec.map(|codec| {
        let codec = Codec { script: text.unwrap_or_else(|| codec.script.clone()), ..codec };
        run::codec::run(engine, &mut engine.sandbox(), &codec, Rules::default())
    });
    (report, problems)
}

/// A codec of a directory that is read again, because its files may have changed.
pub(crate) fn find(engine: &Arc<Engine>, origin: &Origin) -> (Option<Codec>, Vec<BadInput>) {
    let Found { codecs, problems, .. } = directory(engine, origin);
    let place = places(&codecs, slice::from_ref(origin)).pop().flatten();
    (place.and_then(|place| codecs.into_iter().nth(place)), problems)
}

/// Reads the directory of a codec.
fn directory(engine: &Arc<Engine>, origin: &Origin) -> Found {
    let file = origin.examples.as_ref().or(origin.script.as_ref());
    let directory = file.map_or(Path::new(""), |file| directory_of(file));
    let directories = BTreeSet::from([normal(directory)]);
    let tree = Tree { files: &PageFiles, root: Path::new("."), engine };
    find_in(tree, &directories, BTreeSet::new(), None)
}

/// Where codecs of a directory are among those that it has now.
fn places(codecs: &[Codec], wanted: &[Origin]) -> Vec<Option<usize>> {
    let origins = origins(codecs);
    let place = |origin: &Origin| {
        let all = origins.iter().enumerate().filter(|(_, of)| of.id == origin.id && of.script == origin.script);
        // All examples may have been taken out of their file, and a codec before may be broken.
        let nearest = all.min_by_key(|(_, of)| (of.examples != origin.examples, of.before != origin.before));
        nearest.map(|(place, _)| place)
    };
    wanted.iter().map(place).collect()
}

fn origins(codecs: &[Codec]) -> Vec<Origin> {
    let mut counts = BTreeMap::new();
    let numbered = |codec: &Codec| {
        let origin = Origin::of(codec);
        let count: &mut usize = counts.entry(origin.clone()).or_default();
        let before = *count;
        *count += 1;
        Origin { before, ..origin }
    };
    codecs.iter().map(numbered).collect()
}

impl Origin {
    fn of(codec: &Codec) -> Self {
        let mut places = codec.examples.iter().filter_map(|example| example.place.as_ref());
        Self {
            id: codec.id.clone(),
            script: codec.script_file.as_deref().map(normal),
            examples: places.next().map(|place| normal(&place.file)),
            before: 0,
        }
    }
}

impl Problem {
    fn of(problem: &BadInput) -> Self {
        let (file, line) = problem.place().map(|(file, line)| (file.to_owned(), line)).unzip();
        Self { file, line, reason: problem.reason() }
    }
}

impl Uplink {
    fn of(example: &Example) -> Option<Self> {
        match &example.input {
            Input::Bytes(payload) if example.function == Function::Decoder => {
                Some(Self { port: example.port, payload: hex::encode(payload) })
            }
            _ => None,
        }
    }
}

impl Report {
    fn of(report: &CodecReport) -> Self {
        Self { failure: report.failure.clone(), examples: report.examples.iter().map(Outcome::of).collect() }
    }
}

impl Outcome {
    fn of(example: &ExampleReport) -> Self {
        let (outcome, lines) = match &example.outcome {
            ExampleOutcome::Passed => ("passed", Vec::new()),
            ExampleOutcome::Failed(mismatch) => ("failed", mismatch.lines()),
            ExampleOutcome::Shown { result } => ("shown", vec![format!("returned {result}, and nothing is expected")]),
            ExampleOutcome::Excluded { reason } => ("excluded", vec![format!("not run: {reason}")]),
        };
        Self {
            title: example.title(),
            call: example.call.clone(),
            outcome,
            lines,
            fuel: example.fuel,
            line: example.line,
            file: example.place.as_ref().map(|place| normal(&place.file)),
            at: example.place.as_ref().map(|place| place.line),
        }
    }
}
