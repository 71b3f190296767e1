//! Costs of lines and functions of a script, from a recording of its steps.

pub(crate) mod coverage;
pub(crate) mod flame;
pub(crate) mod listing;
pub(crate) mod speedscope;

use std::collections::BTreeMap;

use runtime::{Recording, Slot, Sources};
use serde::Serialize;

use coverage::{Coverage, Reached};

/// The cost of one or more messages, by line and by function.
#[derive(Debug, Serialize)]
pub struct Profile {
    /// Fuel that the messages are charged.
    pub fuel: u64,
    /// Fuel of the sandbox itself, such as for reading the payload and writing the result; a part of `fuel`.
    pub outside: u64,
    /// Each source with its lines.
    pub sources: Vec<SourceProfile>,
    /// The functions that ran, the most expensive one first.
    pub functions: Vec<FunctionProfile>,
    /// Chains of calls, each after its caller.
    #[serde(skip)]
    chains: Vec<Chain>,
}

/// A source with the cost of its lines.
#[derive(Debug, Serialize)]
pub struct SourceProfile {
    /// Name of the source: `decoder`, `converter`, `validator` or `encoder`.
    pub name: &'static str,
    /// Lines and branches that ran.
    pub coverage: Coverage,
    /// The lines, from 1.
    pub lines: Vec<LineProfile>,
}

/// A line with its cost.
#[derive(Debug, Serialize)]
pub struct LineProfile {
    /// Its number, from 1.
    pub line: u32,
    /// Its text.
    #[serde(skip)]
    pub text: String,
    /// The fuel that it used, with the built-in functions that it called.
    pub fuel: u64,
    /// Number of times that it ran; `None` for a line without code.
    pub runs: Option<u64>,
}

/// A function with its cost.
#[derive(Debug, Serialize)]
pub struct FunctionProfile {
    /// Its name, or `(anonymous)`.
    pub name: String,
    /// The source that it is in.
    pub source: &'static str,
    /// The line where it starts.
    pub line: u32,
    /// Number of calls.
    pub calls: u64,
    /// The fuel of its own lines.
    pub own: u64,
    /// The fuel of its own lines and of the functions that it called.
    pub total: u64,
}

/// A function, called by the one of another chain.
#[derive(Debug)]
struct Chain {
    caller: Option<usize>,
    /// In the recording, so that functions of the same name are told apart.
    function: usize,
    name: String,
    source: &'static str,
    line: u32,
    own: u64,
    total: u64,
}

impl Profile {
    /// The profile of `sources`, whose steps were recorded.
    pub fn new(recording: &Recording, sources: &Sources) -> Self {
        let chains = chains(recording);
        let used = Slot::ALL.into_iter().filter(|slot| !sources.text(*slot).is_empty());
        let sources = used.map(|slot| source(recording, slot, sources.text(slot)));
        let has_code = |source: &SourceProfile| source.lines.iter().any(|line| line.runs.is_some());
        Self {
            fuel: recording.fuel(),
            outside: recording.outside,
            sources: sources.filter(has_code).collect(),
            functions: functions(recording, &chains),
            chains,
        }
    }

    /// Returns the percentage of all fuel.
    fn percent(&self, fuel: u64) -> f64 {
        100.0 * fuel as f64 / self.fuel.max(1) as f64
    }
}

fn source(recording: &Recording, slot: Slot, text: &str) -> SourceProfile {
    let mut costs: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
    for function in recording.steps.functions().iter().filter(|function| function.slot == slot) {
        for index in function.steps.clone() {
            let (fuel, runs) = costs.entry(recording.steps.all()[index].line).or_default();
            *fuel += recording.costs[index].fuel;
            *runs = (*runs).max(recording.costs[index].runs);
        }
    }
    let line = |(text, line): (&str, u32)| {
        let cost = costs.get(&line);
        let fuel = cost.map_or(0, |(fuel, _)| *fuel);
        LineProfile { line, text: text.to_owned(), fuel, runs: cost.map(|(_, runs)| *runs) }
    };
    SourceProfile {
        name: slot.name(),
        coverage: Reached::of(recording, slot).coverage(),
        lines: text.lines().zip(1..).map(line).collect(),
    }
}

fn chains(recording: &Recording) -> Vec<Chain> {
    let functions = recording.steps.functions();
    let chain = |chain: &runtime::Chain| {
        let function = &functions[chain.function];
        let name = if function.name.is_empty() { "(anonymous)" } else { &function.name };
        Chain {
            caller: chain.caller,
            function: chain.function,
            name: name.to_owned(),
            source: function.slot.name(),
            line: function.line,
            own: chain.fuel,
            total: chain.fuel,
        }
    };
    let mut chains: Vec<Chain> = recording.chains.iter().map(chain).collect();
    // A caller comes before what it calls.
    for index in (0..chains.len()).rev() {
        if let Some(caller) = chains[index].caller {
            chains[caller].total += chains[index].total;
        }
    }
    chains
}

fn functions(recording: &Recording, chains: &[Chain]) -> Vec<FunctionProfile> {
    let mut functions: BTreeMap<usize, FunctionProfile> = BTreeMap::new();
    for (index, chain) in chains.iter().enumerate() {
        let function = functions.entry(chain.function).or_insert_with(|| FunctionProfile {
            name: chain.name.clone(),
            source: chain.source,
            line: chain.line,
            calls: recording.calls[chain.function],
            own: 0,
            total: 0,
        });
        function.own += chain.own;
        // A function that calls itself counts once, where it is outermost.
        let mut callers = std::iter::successors(chains[index].caller, |caller| chains[*caller].caller);
        if callers.all(|caller| chains[caller].function != chain.function) {
            function.total += chain.total;
        }
    }
    let mut functions: Vec<_> = functions.into_values().collect();
    functions.sort_by_key(|function| std::cmp::Reverse((function.own, function.total)));
    functions
}

#[cfg(test)]
mod tests {
    use runtime::{Call, Engine, EntryPoint, Settings};

    use super::*;

    /// The profile of a decoder for three bytes.
    fn profile(decoder: &str) -> Profile {
        let (recording, sources) = record(decoder, vec![1, 2, 3]);
        Profile::new(&recording, &sources)
    }

    /// Returns the lines and conditions that a decoder reaches for a payload.
    fn reached(decoder: &str, payload: Vec<u8>) -> Reached {
        Reached::of(&record(decoder, payload).0, Slot::Decoder)
    }

    fn record(decoder: &str, payload: Vec<u8>) -> (Recording, Sources) {
        let sources = Sources { decoder: decoder.to_owned(), ..Sources::default() };
        let engine = Engine::profiling(&Settings::default()).unwrap();
        let functions = engine.load(&sources, engine.limits()).unwrap();
        let mut sandbox = engine.sandbox();
        let steps = sandbox.steps(&functions).unwrap();
        let call = Call {
            entry_point: EntryPoint::Uplink,
            port: 1,
            time_ms: 0,
            seed: 1,
            payload,
            extra: String::new(),
            single_function: None,
        };
        let (outcome, recording) = sandbox.call_recorded(&functions, &call, Recording::new(&steps));
        outcome.result.unwrap();
        (recording.unwrap(), sources)
    }

    #[test]
    fn a_function_that_calls_itself_counts_once() {
        let profile = profile(
            "function f(n) { return n ? 1 + f(n - 1) : 0; }\nfunction Decoder(b) { return { n: f(b.length) }; }",
        );
        let [f, decoder] = &profile.functions[..] else { panic!("{:?}", profile.functions) };
        assert_eq!((&f.name[..], f.calls, &decoder.name[..], decoder.calls), ("f", 4, "Decoder", 1));
        assert_eq!(f.total, f.own);
        assert_eq!((decoder.total, profile.fuel), (decoder.own + f.total, decoder.total + profile.outside));
    }

    #[test]
    fn coverage_names_what_did_not_run() {
        let profile = profile(
            "function unused() {\n  return 1;\n}\nfunction Decoder(b) {\n  if (b[0] > 5 || b[1] > 5)\n    return {};\n\
               \x20 return { n: b[0] === 1 ? 1 : 2 };\n}",
        );
        let coverage = &profile.sources[0].coverage;
        assert_eq!(coverage.missed_lines, [2, 6]);
        assert_eq!(coverage.missed_branches, [5, 7]);
        assert_eq!((coverage.lines, coverage.lines_run), (4, 2));
        assert_eq!((coverage.branches, coverage.branches_run), (6, 3));
    }

    #[test]
    fn what_several_messages_reach_adds_up() {
        let script = "function Decoder(b) {\n  if (b[0] > 1) {\n    return { a: 1 };\n  }\n  return { b: 1 };\n}";
        let [low, high] = [1, 2].map(|first| reached(script, vec![first]));
        assert_eq!((low.coverage().missed_lines, low.coverage().missed_branches), (vec![3], vec![2]));
        assert_eq!((high.coverage().missed_lines, high.coverage().branches_run), (vec![5], 1));
        let mut both = low.clone();
        both.add(&high);
        let Coverage { lines, lines_run, branches, branches_run, .. } = both.coverage();
        assert_eq!((lines, lines_run, branches, branches_run), (3, 3, 2, 2));
        both.add(&low);
        assert_eq!(both.coverage().missed_branches, [0; 0]);
    }

    #[test]
    fn a_flame_graph_has_a_box_for_each_function() {
        let profile = profile("function size(b) { return b.length; }\nfunction Decoder(b) { return { n: size(b) }; }");
        let flame = profile.flame_graph();
        assert_eq!(flame.matches("<g>").count(), 4, "{flame}");
        assert!(flame.contains("size (decoder:1): ") && flame.contains("Decoder (decoder:2): "), "{flame}");
    }

    #[test]
    fn a_listing_leaves_out_what_is_far_from_all_that_ran() {
        let profile = profile(&format!("{}function Decoder(b) {{\n  return {{}};\n}}\n", "// far\n".repeat(50)));
        assert!(profile.listing(false).lines().count() < 15 && profile.listing(true).lines().count() > 50);
        assert!(profile.listing(false).contains('…'));
    }
}
