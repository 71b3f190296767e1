//! Codecs that run again after files were saved.

use std::{convert::Infallible, fs, sync::Arc};

use airlock_workbench::{self as workbench, Found, Rules, Watch};
use runtime::Engine;

use crate::support::{Dir, engine};

const SCRIPT: &str = "function decodeUplink(input) { return { data: { n: input.bytes[0] } }; }";
const EXAMPLES: &str = "examples:\n  - { port: 1, bytes: 01, output: { data: { n: 1 } } }\n";
const CODEC: &str = "uplinkDecoder:\n  fileName: ../shared.js\n  examples:\n    - description: one\n      \
                     input: { fPort: 1, bytes: [1] }\n      output: { data: { n: 1 } }\n";

fn repository() -> Dir {
    Dir::new(&[
        ("vendor/shared.js", SCRIPT),
        ("vendor/acme/meter-codec.yaml", CODEC),
        ("vendor/beta/meter-codec.yaml", CODEC),
        ("own/door.js", SCRIPT),
        ("own/door.test.yaml", EXAMPLES),
        ("own/lamp.js", SCRIPT),
        ("own/lamp.test.yaml", EXAMPLES),
        ("node_modules/other.js", SCRIPT),
    ])
}

/// Reads what was saved and runs it, as `functions watch` does; what still fails then, and what is not valid.
fn verdict(watch: &mut Watch, found: &Found, engine: &Arc<Engine>) -> (Vec<String>, Vec<String>) {
    let Ok(_) = workbench::run(engine, &found.codecs, Rules::default(), 1, |report| {
        watch.ran(report);
        Ok::<(), Infallible>(())
    });
    let name = |file: String| file.rsplit('/').next().unwrap_or_default().to_owned();
    (watch.failing().into_iter().map(str::to_owned).collect(), watch.not_valid().into_iter().map(name).collect())
}

fn verdict_again(watch: &mut Watch, engine: &Arc<Engine>) -> (Vec<String>, Vec<String>) {
    assert!(watch.has_changed());
    let found = watch.read(engine);
    verdict(watch, &found, engine)
}

fn pair(failing: &[&str], not_valid: &[&str]) -> (Vec<String>, Vec<String>) {
    let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    (owned(failing), owned(not_valid))
}

#[test]
fn a_codec_does_not_pass_for_another_of_its_id() {
    // The generic name of a directory is no part of the id.
    let wrong = EXAMPLES.replace("n: 1", "n: 2");
    let profile = "[{\"input\": {\"fPort\": 1, \"bytes\": [1]}, \"expected\": {\"data\": {\"n\": 1}}}]";
    let dir = Dir::new(&[
        ("codecs/door.js", SCRIPT),
        ("codecs/door.test.yaml", &wrong),
        ("codecs/test_decode_door.json", profile),
        ("drivers/door.js", SCRIPT),
        ("drivers/door.test.yaml", EXAMPLES),
    ]);
    let engine = engine();
    let (mut watch, found) = Watch::start(&[dir.path()], None, &engine);
    assert_eq!(ids(&found), ["door", "door", "door"]);
    assert_eq!(verdict(&mut watch, &found, &engine), pair(&["door"], &[]));
    dir.save("drivers/door.js", &format!("{SCRIPT}\n"));
    assert_eq!(verdict_again(&mut watch, &engine), pair(&["door"], &[]));
    dir.save("codecs/test_decode_door.json", &format!("{profile}\n"));
    assert_eq!(verdict_again(&mut watch, &engine), pair(&["door"], &[]));
    dir.save("drivers/door.test.yaml", &wrong);
    assert_eq!(verdict_again(&mut watch, &engine), pair(&["door", "door"], &[]));
    dir.save("codecs/door.test.yaml", EXAMPLES);
    assert_eq!(verdict_again(&mut watch, &engine), pair(&["door"], &[]));
    fs::remove_file(dir.path().join("drivers/door.test.yaml")).unwrap();
    assert_eq!(verdict_again(&mut watch, &engine), pair(&[], &[]));
}

#[test]
fn what_is_not_valid_stays_so_until_it_is_read_again() {
    let (dir, engine) = (repository(), engine());
    let (mut watch, _) = Watch::start(&[dir.path()], None, &engine);
    dir.save("own/door.test.yaml", "examples: [");
    assert_eq!(verdict_again(&mut watch, &engine), pair(&[], &["door.test.yaml"]));
    dir.save("vendor/acme/meter-codec.yaml", &format!("{CODEC}\n"));
    assert_eq!(verdict_again(&mut watch, &engine), pair(&[], &["door.test.yaml"]));
    dir.save("own/door.test.yaml", EXAMPLES);
    assert_eq!(verdict_again(&mut watch, &engine), pair(&[], &[]));
    // The script is in another directory than the files that name it.
    fs::remove_file(dir.path().join("vendor/shared.js")).unwrap();
    assert_eq!(verdict_again(&mut watch, &engine), pair(&[], &["shared.js"]));
    fs::write(dir.path().join("vendor/shared.js"), SCRIPT).unwrap();
    assert_eq!(again(&mut watch, &engine).unwrap().len(), 2);
    assert!(watch.not_valid().is_empty());
}

#[test]
fn a_file_that_is_watched_alone_is_not_valid_until_it_is() {
    let (dir, engine) = (repository(), engine());
    let file = dir.path().join("own/door.js");
    dir.save("own/door.test.yaml", "examples: [");
    let (mut watch, found) = Watch::start(&[file], None, &engine);
    assert_eq!(verdict(&mut watch, &found, &engine), pair(&[], &["door.test.yaml"]));
    dir.save("own/lamp.js", &format!("{SCRIPT}\n"));
    assert_eq!(verdict_again(&mut watch, &engine), pair(&[], &["door.test.yaml"]));
    dir.save("own/door.test.yaml", EXAMPLES);
    assert_eq!(verdict_again(&mut watch, &engine), pair(&[], &[]));
}

/// The ids that run again; none if nothing has changed.
fn again(watch: &mut Watch, engine: &Arc<Engine>) -> Option<Vec<String>> {
    watch.has_changed().then(|| ids(&watch.read(engine)))
}

fn ids(found: &Found) -> Vec<String> {
    let mut ids: Vec<String> = found.codecs.iter().map(|codec| codec.id.clone()).collect();
    ids.sort();
    ids
}

// Conformance: functions watch, new
#[test]
fn only_what_was_saved_runs_again() {
    let (dir, engine) = (repository(), engine());
    let root = dir.path();
    let (mut watch, found) = Watch::start(std::slice::from_ref(&root), None, &engine);
    assert_eq!(ids(&found).len(), 4, "{found:?}");
    assert_eq!(again(&mut watch, &engine), None);

    dir.save("own/door.js", &format!("{SCRIPT}\n"));
    assert_eq!(again(&mut watch, &engine).unwrap(), ["own/door"]);
    // In place, with the same length.
    fs::write(root.join("own/lamp.test.yaml"), EXAMPLES.replace("n: 1", "n: 2")).unwrap();
    assert_eq!(again(&mut watch, &engine).unwrap(), ["own/lamp"]);
    dir.save("vendor/shared.js", &format!("{SCRIPT}\n"));
    let shared = again(&mut watch, &engine).unwrap();
    assert!(shared.len() == 2 && shared[0].starts_with("acme") && shared[1].starts_with("beta"), "{shared:?}");
    dir.save("node_modules/other.js", "");
    fs::write(root.join("notes.txt"), "").unwrap();
    assert_eq!(again(&mut watch, &engine), None);
}

// Conformance: functions watch, new
#[test]
fn codecs_come_and_go() {
    let (dir, engine) = (repository(), engine());
    let root = dir.path();
    let (mut watch, _) = Watch::start(std::slice::from_ref(&root), None, &engine);
    fs::create_dir(root.join("more")).unwrap();
    fs::write(root.join("more/bell.js"), SCRIPT).unwrap();
    fs::write(root.join("more/bell.test.yaml"), EXAMPLES).unwrap();
    assert_eq!(again(&mut watch, &engine).unwrap(), ["more/bell"]);
    fs::remove_file(root.join("more/bell.test.yaml")).unwrap();
    assert_eq!(again(&mut watch, &engine).unwrap(), ["more/bell"], "a codec without examples");
    assert_eq!(again(&mut watch, &engine), None);
}

#[test]
fn a_file_that_is_not_valid_is_told_and_runs_again_once_it_is() {
    let (dir, engine) = (repository(), engine());
    let root = dir.path();
    let (mut watch, _) = Watch::start(std::slice::from_ref(&root), None, &engine);
    dir.save("own/door.test.yaml", "examples: [");
    assert!(watch.has_changed());
    let found = watch.read(&engine);
    assert_eq!((found.codecs.len(), found.problems.len()), (0, 1), "{found:?}");
    dir.save("own/door.test.yaml", EXAMPLES);
    assert_eq!(again(&mut watch, &engine).unwrap(), ["own/door"]);
}

#[test]
fn one_file_is_watched_with_the_examples_beside_it() {
    let (dir, engine) = (repository(), engine());
    let file = dir.path().join("own/door.js");
    let (mut watch, found) = Watch::start(&[file], None, &engine);
    assert_eq!(ids(&found).len(), 1);
    dir.save("own/door.test.yaml", &format!("{EXAMPLES}\n"));
    assert_eq!(again(&mut watch, &engine).unwrap().len(), 1);
    dir.save("own/lamp.js", &format!("{SCRIPT}\n"));
    assert_eq!(again(&mut watch, &engine).unwrap_or_default(), Vec::<String>::new());
}
