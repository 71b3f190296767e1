//! Which codecs run again after what was saved.

mod support;

use std::{fs, sync::Arc};

use airlock_workbench::{Found, Watch};
use runtime::Engine;
use support::{Dir, engine};

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

/// The ids that run again; none if nothing has changed.
fn again(watch: &mut Watch, engine: &Arc<Engine>) -> Option<Vec<String>> {
    watch.has_changed().then(|| ids(&watch.read(engine)))
}

fn ids(found: &Found) -> Vec<String> {
    let mut ids: Vec<String> = found.codecs.iter().map(|codec| codec.id.clone()).collect();
    ids.sort();
    ids
}

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
    assert_eq!(again(&mut watch, &engine).unwrap(), Vec::<String>::new());
    assert!(watch.knows("own/door") && !watch.knows("more/bell"));
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
