//! Tests of what messages cost, and of comparing that with a baseline and with Node.js.

use airlock_workbench::{
    self as workbench, Bench, BenchFormat, Codec, CodecBench, Compared, Node, Peer, Plan, Threshold,
};
use runtime::{Engine, Settings};

use crate::support::{Dir, engine};

const SCRIPT: &str = "function decodeUplink(input) {
  if (input.bytes.length === 0) throw new Error('<empty>');
  var sum = 0;
  for (var i = 0; i < input.bytes.length; i++) sum += input.bytes[i];
  return { data: { sum: sum, port: input.fPort } };
}
function encodeDownlink(input) { return { fPort: 4, bytes: [input.data.minutes] }; }";

const EXAMPLES: &str = "examples:
  - { description: short, port: 1, bytes: 01, output: { data: { sum: 1, port: 1 } } }
  - { description: long, port: 2, bytes: 01020304050607, output: { data: { sum: 28, port: 2 } } }
  - { description: empty, port: 1, bytes: '', outcome: throws }
  - { description: minutes, function: downlink-encode, input: { data: { minutes: 5 } }, output: { fPort: 4, bytes: [5] } }
";

fn plan() -> Plan<'static> {
    Plan { count: 30, example: None, profiling: None, peer: None }
}

/// The codecs of a directory with `script`.
fn codecs(script: &str) -> Vec<Codec> {
    let dir = Dir::new(&[("sum.js", script), ("sum.test.yaml", EXAMPLES)]);
    let found = workbench::find(&[dir.path()], None, &engine());
    assert!(found.problems.is_empty(), "{:?}", found.problems);
    found.codecs
}

fn bench(script: &str, plan: Plan<'_>) -> CodecBench {
    workbench::measure_codec(&engine(), &codecs(script)[0], plan)
}

#[test]
fn fuel_is_that_of_a_test_and_times_are_in_order() {
    let codec = bench(SCRIPT, plan());
    assert_eq!((codec.id.as_str(), codec.failure.as_deref(), codec.messages.len()), ("sum", None, 4));
    let mut fuel = Vec::new();
    let Ok(_) = workbench::run(&engine(), &codecs(SCRIPT), Default::default(), 1, |report| {
        fuel.extend(report.examples.iter().map(|example| example.fuel));
        Ok::<(), std::convert::Infallible>(())
    });
    assert_eq!(codec.messages.iter().map(|message| message.fuel).collect::<Vec<_>>(), fuel);
    assert!(fuel[1] > fuel[0], "{fuel:?}");
    for message in &codec.messages {
        let time = message.time;
        assert_eq!((message.single.runs, message.failure.as_deref()), (30, None));
        for time in [time, message.single] {
            let order = [time.min, time.median_low, time.median, time.median_high, time.max];
            assert!(time.min > 0.0 && order.is_sorted() && time.p99 <= time.max, "{time:?}");
        }
        // A batch lasts at least as long as its messages.
        assert!(time.mean >= message.single.mean, "{message:?}");
    }
    let loading = codec.loading.unwrap();
    assert!(loading.fuel > 0 && loading.idle_bytes > 0 && loading.time.runs > 0, "{loading:?}");
}

#[test]
fn one_example_is_chosen_by_description_or_number() {
    for (example, description) in [("lon", "long"), ("2", "long"), ("4", "minutes")] {
        let codec = bench(SCRIPT, Plan { example: Some(example), ..plan() });
        let chosen: Vec<_> = codec.messages.iter().map(|message| message.description.as_str()).collect();
        assert_eq!(chosen, [description], "{example}");
    }
}

#[test]
fn what_fails_is_named() {
    let codec = bench("function decodeUplink(", plan());
    assert!(codec.failure.as_deref().unwrap().contains("line 1") && codec.messages.is_empty());
    let throwing = bench("function decodeUplink() { throw new Error('no'); }", Plan { example: Some("1"), ..plan() });
    let bench = Bench::new(&engine(), vec![codec, throwing]);
    assert_eq!(bench.failures().map(|(id, _)| id).collect::<Vec<_>>(), ["sum", "sum"]);
    let text = bench.text(BenchFormat::Human);
    assert!(text.contains("1  short fails:\n    the decoder failed") && text.contains("Error: no"), "{text}");
}

#[test]
fn a_baseline_judges_by_fuel_alone() {
    let dir = Dir::new(&[]);
    let file = dir.path().join("main.bench.json");
    Bench::new(&engine(), vec![bench(SCRIPT, plan())]).save(&file).unwrap();
    let baseline = Bench::read(&file).unwrap();
    let zero: Threshold = "0%".parse().unwrap();

    let mut same = Bench::new(&engine(), vec![bench(SCRIPT, plan())]);
    assert_eq!(same.compare(&baseline), Compared { known: 4, new: 0 });
    assert_eq!(same.risen(zero), 0);
    assert!(same.text(BenchFormat::Human).contains("same fuel"));

    // The loop does twice as much, and the source that is loaded is another.
    let mut slower = Bench::new(&engine(), vec![bench(&SCRIPT.replace("sum += ", "sum = 0 + sum + 0 + "), plan())]);
    slower.compare(&baseline);
    let risen = slower.codecs[0].messages[1].change.unwrap();
    assert!(risen.fuel_percent > 1.0 && risen.fuel_before == baseline.codecs[0].messages[1].fuel, "{risen:?}");
    assert!(slower.risen(zero) >= 2, "{:?}", slower.codecs[0].messages);
    assert_eq!(slower.risen("1000".parse().unwrap()), 0);
    assert!(slower.text(BenchFormat::Markdown).contains("% fuel |"));
}

#[test]
fn a_baseline_knows_messages_by_their_input() {
    let mut baseline = Bench::new(&engine(), vec![bench(SCRIPT, plan())]);
    baseline.codecs[0].messages[0].description = "renamed".to_owned();
    baseline.codecs[0].messages[1].input = "ff".to_owned();
    let mut bench = Bench::new(&engine(), vec![bench(SCRIPT, plan())]);
    assert_eq!(bench.compare(&baseline), Compared { known: 3, new: 1 });
}

/// Codecs that have their id in common, with other fuel each.
fn namesakes(files: &[(&str, u64)]) -> Bench {
    let codec = |(file, fuel): &(&str, u64)| {
        let mut codec = bench(SCRIPT, Plan { count: 1, example: Some("short"), ..plan() });
        (codec.file, codec.messages[0].fuel) = (Some(file.into()), *fuel);
        codec
    };
    Bench::new(&engine(), files.iter().map(codec).collect())
}

#[test]
fn codecs_of_one_id_are_compared_with_their_own_file() {
    let baseline = namesakes(&[("a/door.js", 100), ("b/door.js", 1000), ("b/door.js", 2000)]);
    for (files, risen) in [
        (&[("a/door.js", 200), ("b/door.js", 1000), ("b/door.js", 2000)][..], 1),
        (&[("a/door.js", 100), ("b/door.js", 2000), ("b/door.js", 2000)], 1),
        (&[("b/door.js", 1000), ("b/door.js", 2000), ("a/door.js", 100)], 0),
        (&[("c/door.js", 101)], 1),
    ] {
        let mut bench = namesakes(files);
        assert_eq!(bench.compare(&baseline), Compared { known: files.len(), new: 0 });
        assert_eq!(bench.risen("0.5%".parse().unwrap()), risen, "{files:?}");
    }
}

#[test]
fn a_message_is_found_in_every_layout_beside_its_script() {
    let mut baseline = namesakes(&[("door.js", 100), ("door.js", 100)]);
    baseline.codecs[1].messages[0].input = "ff".to_owned();
    let mut bench = namesakes(&[("door.js", 200)]);
    bench.compare(&baseline);
    assert_eq!(bench.risen("0%".parse().unwrap()), 1);
    // Those that differ only in what a baseline does not have, such as the time, are compared one by one.
    let twice = |first, second| {
        let mut bench = namesakes(&[("door.js", first)]);
        let mut other = namesakes(&[("door.js", second)]);
        bench.codecs[0].messages.append(&mut other.codecs[0].messages);
        bench
    };
    let mut bench = twice(1000, 100);
    bench.compare(&twice(1000, 100));
    assert_eq!(bench.risen("0%".parse().unwrap()), 0);
    bench.compare(&twice(900, 100));
    assert_eq!(bench.risen("0%".parse().unwrap()), 1);
}

#[test]
fn a_file_that_is_no_baseline_is_refused() {
    let dir = Dir::new(&[("bad.bench.json", "{\"codecs\": 1}")]);
    let error = Bench::read(&dir.path().join("bad.bench.json")).unwrap_err();
    assert!(error.to_string().contains("it is no baseline"), "{error}");
    assert!(Bench::read(&dir.path().join("none.bench.json")).is_err());
}

#[test]
fn a_page_has_plots_and_nothing_that_loads_or_runs() {
    let profiling = Engine::profiling(&Settings::default()).unwrap();
    let codec = bench(SCRIPT, Plan { profiling: Some(&profiling), ..plan() });
    let line = |number: u32| codec.lines.iter().find(|line| line.line == number).unwrap();
    assert!(line(4).text.contains("for (var i") && line(4).fuel > line(3).fuel, "{:?}", codec.lines);
    let page = Bench::new(&engine(), vec![codec]).text(BenchFormat::Html);
    for part in ["<h3>Time of messages</h3>", "<h3>Fuel of messages</h3>", "<h3>Fuel of lines</h3>", "&#60;empty&#62;"]
    {
        assert!(page.contains(part), "{part} in\n{page}");
    }
    assert_eq!(page.matches("<svg").count(), page.matches("</svg>").count());
    assert!(!page.contains("<script") && !page.contains("<empty>") && !page.contains("src="));
    let svg = page.matches("<svg").count();
    assert_eq!(page.matches("role=\"img\" aria-label=").count() + page.matches("aria-hidden=\"true\"").count(), svg);
}

/// Node.js, if it is installed; it must be where `REQUIRE_SERVICES` says that no test is skipped.
fn node(count: u32) -> Option<Node> {
    let node = Node { count };
    let is_required = std::env::var_os("REQUIRE_SERVICES").is_some_and(|value| value == "1");
    let is_there = node.check().is_ok();
    assert!(is_there || !is_required, "`node` is missing");
    is_there.then_some(node)
}

#[test]
fn node_runs_the_same_messages() {
    let Some(node) = node(20) else { return };
    let codec = bench(SCRIPT, Plan { peer: Some(node), ..plan() });
    let peers: Vec<_> = codec.messages.iter().map(|message| message.peer.as_ref().unwrap()).collect();
    for (index, peer) in peers.iter().enumerate() {
        match (index, peer) {
            (2, Peer::Failed(reason)) => assert!(reason.contains("<empty>"), "{reason}"),
            (0 | 1 | 3, Peer::Ran { warm, fresh }) => {
                assert!(warm.runs == 20 && fresh.runs > 0 && warm.min > 0.0, "{warm:?} {fresh:?}");
            }
            other => panic!("{other:?}"),
        }
    }
    let text = Bench::new(&engine(), vec![codec]).text(BenchFormat::Human);
    assert!(text.contains("Node, warm") && text.contains("3  empty fails in Node: Error: <empty>"), "{text}");
}

#[test]
fn node_loads_functions_of_every_dialect() {
    let Some(node) = node(2) else { return };
    for script in [
        "const Decoder = (bytes, port) => ({ first: bytes[0], port: port });",
        "function Decode(fPort, bytes, variables) { return { first: bytes[0] }; }",
        "module.exports = { decodeUplink: function (input) { return { data: input.recvTime.getTime() && {} }; } };",
    ] {
        let dir = Dir::new(&[("one.js", script), ("one.test.yaml", "examples:\n  - { port: 1, bytes: 01 }\n")]);
        let codecs = workbench::find(&[dir.path()], None, &engine()).codecs;
        let codec = workbench::measure_codec(&engine(), &codecs[0], Plan { peer: Some(node), ..plan() });
        let peer = codec.messages[0].peer.as_ref();
        assert!(matches!(peer, Some(Peer::Ran { .. })), "{script}: {peer:?}");
    }
}
