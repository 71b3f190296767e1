//! Runs messages again and again, and keeps their times.

use std::time::{Duration, Instant};

use runtime::{Call, Engine, EntryPoint, Failure, Functions, Recording, Sandbox, Slot, Sources};

use super::{
    figures::{CodecBench, LineFuel, Loading, MessageBench},
    node::{self, Node},
    statistics::{Histogram, Summary},
};
use crate::{
    codec::{Codec, Example, Expected, Input, call::call, kind_name},
    report::{describe, microseconds, profile::Profile},
    text::surrogates::to_json,
};

/// Messages before those that count: a sandbox gets its own memory after some, and caches fill.
const WARM_UP_MAX: u32 = 50;
/// Maximum number of times that a codec is loaded, and maximum time for all of them.
const LOADS: usize = 15;
const LOADING_TIME_MAX: Duration = Duration::from_millis(500);
/// Time that a batch of messages should take, and minimum number of batches, if there are so many messages. A single
/// message is too short for a clock, and its result is yet to be dropped.
const BATCH: Duration = Duration::from_millis(1);
const BATCHES_MIN: u32 = 20;
/// Time for one message; those that take longer than others run less often.
const TIME_MAX: Duration = Duration::from_secs(5);

/// Settings of a measurement.
#[derive(Clone, Copy)]
pub struct Plan<'a> {
    /// Messages to run of each example.
    pub count: u32,
    /// Only examples whose description contains it, or whose number it is.
    pub example: Option<&'a str>,
    /// Counts the fuel of each line, if it is asked for: an engine from `Engine::profiling`.
    pub profiling: Option<&'a Engine>,
    /// Runs the same functions, if it is asked for. It runs one function of each message only.
    pub peer: Option<Node>,
}

/// Measures the examples of a codec, except those that are not to be run or are to exceed a limit.
pub fn measure_codec(engine: &Engine, codec: &Codec, plan: Plan<'_>) -> CodecBench {
    let empty = CodecBench { id: codec.id.clone(), file: codec.script_file.clone(), ..CodecBench::default() };
    let messages = |functions: &Functions| {
        let examples = codec.examples.iter().enumerate().filter(|(index, example)| is_wanted(*index, example, plan));
        examples.map(|(_, example)| Unmeasured::of(functions, example)).collect()
    };
    measure(engine, empty, &codec.sources(), messages, plan)
}

/// Measures one message.
pub fn measure_message(engine: &Engine, id: &str, sources: &Sources, call: &Call, plan: Plan<'_>) -> CodecBench {
    let is_uplink = call.entry_point == EntryPoint::Uplink;
    let message = Unmeasured {
        bench: MessageBench {
            function: if is_uplink { "uplink" } else { "downlink-encode" }.to_owned(),
            port: call.port,
            input: match is_uplink {
                true => hex::encode(&call.payload),
                false => String::from_utf8_lossy(&call.payload).into_owned(),
            },
            ..MessageBench::default()
        },
        call: call.clone(),
        may_fail: false,
    };
    measure(engine, CodecBench { id: id.to_owned(), ..CodecBench::default() }, sources, |_| vec![message], plan)
}

fn is_wanted(index: usize, example: &Example, plan: Plan<'_>) -> bool {
    let is_named =
        |text: &str| example.description.contains(text) || text.parse().is_ok_and(|number: usize| number == index + 1);
    example.excluded.is_none() && !matches!(example.expected, Expected::Timeout) && plan.example.is_none_or(is_named)
}

/// A message before it is measured.
struct Unmeasured {
    bench: MessageBench,
    call: Call,
    /// True if its example expects a failure.
    may_fail: bool,
}

impl Unmeasured {
    fn of(functions: &Functions, example: &Example) -> Self {
        let input = match &example.input {
            Input::Bytes(bytes) => hex::encode(bytes),
            Input::Json(json) => to_json(json),
        };
        let bench = MessageBench {
            description: example.description.clone(),
            function: kind_name(example.function).to_owned(),
            port: example.port,
            input,
            ..MessageBench::default()
        };
        Self { bench, call: call(functions, example), may_fail: matches!(example.expected, Expected::Throws) }
    }
}

fn measure(
    engine: &Engine,
    mut bench: CodecBench,
    sources: &Sources,
    messages: impl FnOnce(&Functions) -> Vec<Unmeasured>,
    plan: Plan<'_>,
) -> CodecBench {
    let (functions, loading) = match load(engine, sources) {
        Ok(loaded) => loaded,
        Err(failure) => {
            bench.failure = Some(describe(&failure, sources));
            return bench;
        }
    };
    let messages = messages(&functions);
    bench.loading = Some(loading);
    if let Some(profiling) = plan.profiling {
        bench.lines = lines(profiling, sources, &messages).unwrap_or_default();
    }
    let calls: Vec<_> = messages.iter().map(|message| node::NodeCall::of(&functions, &message.call)).collect();
    let mut sandbox = engine.sandbox();
    let measured = messages.into_iter().map(|message| measure_one(&mut sandbox, &functions, sources, message, plan));
    bench.messages = measured.collect();
    if let Some(peer) = plan.peer {
        let script = sources.text(if sources.decoder.is_empty() { Slot::Encoder } else { Slot::Decoder });
        let peers = peer.measure(script, &calls);
        bench.messages.iter_mut().zip(peers).for_each(|(message, peer)| message.peer = Some(peer));
    }
    bench
}

fn load(engine: &Engine, sources: &Sources) -> Result<(Functions, Loading), Failure> {
    let begin = Instant::now();
    let mut functions = engine.load_uncached(sources, engine.limits())?;
    let mut times = vec![microseconds(begin.elapsed())];
    while times.len() < LOADS && begin.elapsed() < LOADING_TIME_MAX {
        let start = Instant::now();
        functions = engine.load_uncached(sources, engine.limits())?;
        times.push(microseconds(start.elapsed()));
    }
    let (fuel, idle_bytes) = (functions.load_fuel(), functions.idle_bytes());
    Ok((functions, Loading { time: Summary::of(&mut times), fuel, idle_bytes, change: None }))
}

fn measure_one(
    sandbox: &mut Sandbox,
    functions: &Functions,
    sources: &Sources,
    message: Unmeasured,
    plan: Plan<'_>,
) -> MessageBench {
    let Unmeasured { mut bench, call, may_fail } = message;
    let first = sandbox.call(functions, &call);
    bench.fuel = first.fuel;
    bench.fuel_max = functions.limits().fuel;
    bench.first_microseconds = microseconds(first.elapsed);
    bench.failure = first.result.err().filter(|_| !may_fail).map(|failure| describe(&failure, sources));
    let (mut spent, mut shortest) = (first.elapsed, first.elapsed);
    for _ in 0..plan.count.min(WARM_UP_MAX) {
        if spent < TIME_MAX / 4 {
            let elapsed = sandbox.call(functions, &call).elapsed;
            (spent, shortest) = (spent + elapsed, shortest.min(elapsed));
        }
    }
    let (mut batches, mut singles, mut left) = (Vec::new(), Vec::new(), plan.count);
    while left > 0 && spent <= TIME_MAX {
        let count = batch(shortest, plan.count).min(left);
        let start = Instant::now();
        singles.extend((0..count).map(|_| microseconds(sandbox.call(functions, &call).elapsed)));
        let elapsed = start.elapsed();
        batches.push(microseconds(elapsed) / f64::from(count));
        (spent, left) = (spent + elapsed, left - count);
    }
    let mut histogram = Histogram::default();
    singles.iter().for_each(|time| histogram.add(*time));
    MessageBench { time: Summary::of(&mut batches), single: Summary::of(&mut singles), histogram, ..bench }
}

/// Returns the number of messages in a batch, if each takes about `time` and there are `count` of them.
fn batch(time: Duration, count: u32) -> u32 {
    let fitting = BATCH.as_nanos() / time.as_nanos().max(1);
    u32::try_from(fitting).unwrap_or(u32::MAX).clamp(1, (count / BATCHES_MIN).max(1))
}

/// The fuel of each line that ran, over all messages.
fn lines(engine: &Engine, sources: &Sources, messages: &[Unmeasured]) -> Result<Vec<LineFuel>, Failure> {
    let functions = engine.load_uncached(sources, engine.limits())?;
    let mut sandbox = engine.sandbox();
    let steps = sandbox.steps(&functions)?;
    let mut recording = Some(Recording::new(&steps));
    for message in messages {
        let Some(so_far) = recording else { break };
        recording = sandbox.call_recorded(&functions, &message.call, so_far).1;
    }
    let Some(recording) = recording else { return Ok(Vec::new()) };
    let mut lines: Vec<LineFuel> = Vec::new();
    for source in Profile::new(&recording, sources).sources {
        for line in source.lines.into_iter().filter(|line| line.fuel > 0) {
            // A single file is there once for its decoders and once for its encoders.
            match lines.iter_mut().find(|other| other.line == line.line && other.text == line.text) {
                Some(other) => other.fuel += line.fuel,
                None => lines.push(LineFuel { line: line.line, text: line.text, fuel: line.fuel }),
            }
        }
    }
    Ok(lines)
}
