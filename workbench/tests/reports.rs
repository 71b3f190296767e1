//! What reports for programs say, and that these can read them.

mod support;

use std::convert::Infallible;

use airlock_workbench::{self as workbench, Detail, Format, Rules};
use support::{Dir, engine};

const SCRIPT: &str = "function decodeUplink() { return { n: '\\uffff\\ufffe\\u0000<' } }";

#[test]
fn tap_begins_with_its_version_even_if_nothing_was_found() {
    let dir = Dir::new(&[]);
    let engine = engine();
    let found = workbench::find(&[dir.path()], None, &engine);
    let Ok(totals) = workbench::run(&engine, &found.codecs, Rules::default(), 1, |_| Ok::<(), Infallible>(()));
    assert_eq!(Format::Tap.reporter(Detail::Normal).end(&totals, &[]), "TAP version 14\n1..0\n");
}

#[test]
fn reports_say_what_could_not_be_read_and_stay_well_formed() {
    let dir = Dir::new(&[("a.js", SCRIPT), ("a.test.yaml", "examples: [{bytes: 00, output: 1}, {bytes: zz}]")]);
    let engine = engine();
    let found = workbench::find(&[dir.path()], None, &engine);
    let report = |format: Format| {
        let mut reporter = format.reporter(Detail::Normal);
        let mut text = String::new();
        let Ok(totals) = workbench::run(&engine, &found.codecs, Rules::default(), 1, |report| {
            text += &reporter.codec(report);
            Ok::<(), Infallible>(())
        });
        text + &reporter.end(&totals, &found.problems)
    };
    let json = report(Format::Json);
    let last: serde_json::Value = serde_json::from_str(json.lines().last().unwrap()).unwrap();
    let file = dir.path().join("a.test.yaml").display().to_string();
    assert_eq!(
        (&last["failed"], &last["problems"][0]["file"], &last["problems"][0]["line"]),
        (&1.into(), &file.into(), &1.into())
    );
    assert!(last["problems"][0]["reason"].as_str().unwrap().starts_with("example 2: `bytes` not valid"), "{last}");
    let junit = report(Format::Junit);
    let is_xml = |character: char| matches!(character, '\n' | ' '..='\u{fffd}' | '\u{10000}'..);
    assert!(junit.contains("\u{fffd}") && junit.chars().all(is_xml), "{junit:?}");
}
