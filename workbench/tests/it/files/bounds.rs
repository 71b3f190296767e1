//! Trees and files that hold other things than codecs, and what cannot be read in them.

use std::{
    ffi::OsStr,
    fs,
    os::unix::{ffi::OsStrExt as _, fs::symlink},
    path::{Path, PathBuf},
};

use airlock_workbench::{self as workbench, Found};
use rustix::fs::{CWD, Mode, mkfifoat};

use crate::support::{Dir, engine};

const SCRIPT: &str = "function decodeUplink() { return {} }";
const EXAMPLES: &str = "examples: [{bytes: 00, output: {}}]";

fn find(path: &Path) -> Found {
    workbench::find(&[path.to_owned()], None, &engine())
}

fn problems(found: &Found) -> Vec<String> {
    found.problems.iter().map(|problem| format!("{problem}: {}", problem.reason())).collect()
}

#[test]
fn other_files_of_a_tree_do_no_harm() {
    let dir = Dir::new(&[("a.js", SCRIPT), ("a.test.yaml", EXAMPLES), ("outside/x.yaml", "")]);
    let tree = dir.path();
    fs::write(tree.join("large.yaml"), "# ".repeat(3 << 20)).unwrap();
    fs::write(tree.join("latin.yaml"), b"name: \xe9").unwrap();
    mkfifoat(CWD, tree.join("pipe.yaml"), Mode::RUSR).unwrap();
    symlink("nowhere", tree.join("dangling.yaml")).unwrap();
    symlink("outside", tree.join("dir.yaml")).unwrap();
    symlink("/etc/hostname", tree.join("out.yaml")).unwrap();
    let found = find(&tree);
    assert_eq!((problems(&found), found.codecs.len()), (Vec::new(), 1));
    // These can only be codecs.
    fs::write(tree.join("latin-codec.yaml"), b"name: \xe9").unwrap();
    fs::write(tree.join("other.yaml"), b"uplinkDecoder:\n  fileName: \xe9").unwrap();
    let found = problems(&find(&tree));
    assert!(found.len() == 2 && found.iter().all(|problem| problem.contains("not UTF-8")), "{found:?}");
    let named = problems(&find(&tree.join("large.yaml")));
    assert!(named.len() == 1 && named[0].contains("it has more than"), "{named:?}");
}

#[test]
fn a_link_that_is_named_is_read() {
    let dir = Dir::new(&[("a.js", SCRIPT), ("a.test.yaml", EXAMPLES)]);
    symlink("a.test.yaml", dir.path().join("b.test.yaml")).unwrap();
    symlink("a.js", dir.path().join("b.js")).unwrap();
    for name in ["b.test.yaml", "b.js"] {
        let found = find(&dir.path().join(name));
        assert_eq!((problems(&found), found.codecs.len()), (Vec::new(), 1), "{name}");
    }
}

#[test]
fn what_is_not_walked_is_told() {
    let deep = |levels: usize| "d/".repeat(levels) + "a.js";
    let found = find(&Dir::new(&[(&deep(32), SCRIPT)]).path());
    assert_eq!((problems(&found), found.codecs.len()), (Vec::new(), 1));
    let found = problems(&find(&Dir::new(&[(&deep(32), "nothing()")]).path()));
    assert!(
        found.len() == 1 && found[0].starts_with("these files contain no codecs: `airlock functions new`"),
        "{found:?}"
    );
    let found = problems(&find(&Dir::new(&[(&deep(33), SCRIPT)]).path()));
    assert!(found.len() == 1 && found[0].contains("nested more than 32 deep"), "{found:?}");
    let dir = Dir::new(&[("a.js", SCRIPT), ("a.test.yaml", EXAMPLES)]);
    fs::write(dir.path().join(OsStr::from_bytes(b"b\xe9.test.yaml")), EXAMPLES).unwrap();
    fs::create_dir(dir.path().join(OsStr::from_bytes(b"d\xe9"))).unwrap();
    let found = problems(&find(&dir.path()));
    assert!(found.len() == 2 && found.iter().all(|problem| problem.contains("its name is not UTF-8")), "{found:?}");
    assert_eq!(problems(&find(&dir.path().join("a.js"))), [""; 0]);
}

#[test]
fn aliases_of_a_long_text_are_refused() {
    let text = format!("# {}\nexamples:\n- {{bytes: 00, output: &a [{}]}}\n", "x", "y".repeat(300_000));
    let dir = Dir::new(&[("a.js", SCRIPT), ("a.test.yaml", &(text + &"- {bytes: 00, output: *a}\n".repeat(100)))]);
    let found = problems(&find(&dir.path()));
    assert!(
        found.len() == 1 && found[0].contains("a.test.yaml, line 58: it has more than 16777216 bytes"),
        "{found:?}"
    );
}

#[test]
fn problems_have_a_bound() {
    let dir = Dir::new(&[("log.jsonl", &"x\n".repeat(100_000)), ("a.js", SCRIPT)]);
    let found = problems(&find(&dir.path().join("log.jsonl")));
    assert!(found.len() == 101 && found[100].contains("the rest is not read"), "{}", found.len());
    let text = format!("examples: [{}]", ["{bytes: zz}"; 1020].join(", "));
    fs::write(dir.path().join("a.test.yaml"), text).unwrap();
    let found = find(&dir.path().join("a.test.yaml"));
    assert_eq!(found.problems.last().unwrap().to_string(), "and 20 more");
    assert_eq!(
        (found.problems.len(), found.problems.iter().map(workbench::BadInput::count).sum::<usize>()),
        (1001, 1020)
    );
}

#[test]
fn devices_are_not_read() {
    for path in ["/dev/zero", "/dev/full"] {
        let found = problems(&find(&PathBuf::from(path)));
        assert!(found.len() == 1 && found[0].contains("neither a file nor a pipe"), "{found:?}");
    }
}
