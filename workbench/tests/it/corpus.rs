//! The corpus of real codecs in the directory that `AIRLOCK_CORPUS` names: a file of JSON lines for each dialect, each
//! with its script. It is other people's code, so it is not in this repository.

use std::{convert::Infallible, fs, path::PathBuf, sync::Arc};

use airlock_workbench::{self as workbench, Detail, Engines, Rules, Totals};
use runtime::{Engine, Limits, Settings};
use serde_json::{Value, json};

use crate::support::{Dir, counting_engine, engine};

const CORPUS: &str = "AIRLOCK_CORPUS";

/// The directory, and its records; none if it is not named.
fn corpus() -> Option<(PathBuf, Vec<Value>)> {
    let Some(dir) = std::env::var_os(CORPUS).map(PathBuf::from) else {
        eprintln!("skipped: set {CORPUS} to a directory of records to test real codecs");
        return None;
    };
    let files = fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().path());
    let files = files.filter(|file| file.extension().is_some_and(|extension| extension == "jsonl"));
    let lines = files.flat_map(|file| fs::read_to_string(file).unwrap().lines().map(str::to_owned).collect::<Vec<_>>());
    let records: Vec<Value> = lines.map(|line| serde_json::from_str(&line).unwrap()).collect();
    assert!(!records.is_empty(), "{} has no records", dir.display());
    Some((dir, records))
}

/// The totals of all codecs in a directory, and what is told of those that fail.
fn test(dir: PathBuf, engine: &Arc<Engine>, counting: Option<&Arc<Engine>>) -> (Totals, String) {
    let found = workbench::find(&[dir], None, engine);
    assert!(found.problems.is_empty(), "{:?}", found.problems);
    let mut failed = String::new();
    let engines = Engines { plain: engine, counting };
    let Ok(totals) = workbench::run_on(engines, &found.codecs, Rules::default(), 2, |report| {
        failed += &report.text(Detail::Quiet);
        Ok::<(), Infallible>(())
    });
    (totals, failed)
}

fn examples(record: &Value) -> &Vec<Value> {
    record["examples"].as_array().unwrap()
}

/// Returns true if the record says that no engine but its own returns this, or not always.
fn is_excluded(example: &Value) -> bool {
    let depends_on = |what: &str| example["env"].as_array().is_some_and(|env| env.contains(&json!(what)));
    let differs = example["quickjs"] == "differs" && example["outcome"] != "timeout";
    let is_unsound =
        example["oracle_ok"] == false && example["oracle"].is_null() && example["oracle_outcome"].is_null();
    depends_on("now") || depends_on("random") || differs || is_unsound
}

// Conformance: functions test, on all codecs of the corpus and within two thirds of each limit
#[test]
fn every_example_is_as_the_corpus_states() {
    let Some((dir, records)) = corpus() else { return };
    let (totals, failed) = test(dir, &engine(), Some(&counting_engine()));
    let all: Vec<&Value> = records.iter().flat_map(examples).collect();
    let excluded = all.iter().filter(|example| is_excluded(example)).count();
    assert_eq!(
        (totals.codecs, totals.examples, totals.failed, totals.codecs_failed),
        (records.len(), all.len(), 0, 0),
        "{failed}"
    );
    assert_eq!((totals.excluded.values().sum::<usize>(), totals.passed), (excluded, all.len() - excluded));
    let coverage = totals.coverage.unwrap();
    println!("{} codecs, {} examples; {coverage}", totals.codecs, totals.examples);
    // Vendors have examples for some of what their codecs can read, never for all of it or for none.
    assert_eq!(coverage.uncounted, 0, "{coverage}");
    assert!((25.0..75.0).contains(&coverage.lines_percent), "{coverage}");
    assert!((10.0..75.0).contains(&coverage.branches_percent), "{coverage}");
}

/// Tests examples that Node.js does not confirm, without what Node.js returns. A normalizer may return one measurement
/// where a list of one is stated, so that is not wrong here.
// Conformance: functions test, on all codecs of the corpus and within two thirds of each limit
#[test]
fn every_example_fails_that_the_corpus_says_is_wrong() {
    let Some((_, records)) = corpus() else { return };
    let is_wrong = |example: &Value| {
        example["oracle_ok"] == false && example["quickjs"].is_null() && example["kind"] != "uplink-normalize"
    };
    let mut lines = String::new();
    let mut count = 0;
    for mut record in records {
        let examples = record["examples"].as_array_mut().unwrap();
        examples.retain(is_wrong);
        for example in examples.iter_mut().filter_map(Value::as_object_mut) {
            example.retain(|member, _| !member.starts_with("oracle"));
        }
        if !examples.is_empty() {
            count += examples.len();
            lines += &format!("{record}\n");
        }
    }
    let dir = Dir::new(&[("wrong.jsonl", &lines)]);
    let (totals, _) = test(dir.path(), &engine(), None);
    assert!(count > 0, "the corpus has no such example");
    assert_eq!((totals.examples, totals.failed, totals.passed), (count, count, 0));
}

/// The default of each limit leaves half as much again to the most demanding codec.
// Conformance: functions test, on all codecs of the corpus and within two thirds of each limit
#[test]
fn every_codec_runs_within_two_thirds_of_the_limits() {
    let Some((dir, _)) = corpus() else { return };
    let all = Limits::default();
    let limits = Limits {
        source_bytes_max: all.source_bytes_max * 2 / 3,
        fuel: all.fuel * 2 / 3,
        load_fuel: all.load_fuel * 2 / 3,
        memory_bytes_max: all.memory_bytes_max * 2 / 3,
        heap_bytes_max: all.heap_bytes_max * 2 / 3,
        kept_bytes_max: all.kept_bytes_max * 2 / 3,
        fields_bytes_max: all.fields_bytes_max * 2 / 3,
        fields_depth_max: all.fields_depth_max * 2 / 3,
        fields_keys_max: all.fields_keys_max * 2 / 3,
        ..all
    };
    let engine = Arc::new(Engine::new(&Settings { limits, ..Settings::default() }).unwrap());
    let (totals, failed) = test(dir, &engine, None);
    assert_eq!((totals.failed, totals.codecs_not_loaded), (0, 0), "{failed}");
}
