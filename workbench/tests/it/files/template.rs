//! New codecs: their examples pass, and nothing is overwritten.

use std::fs;

use airlock_workbench::{CodecName, NewFile, write_new};
use runtime::Dialect;

use crate::support::{Dir, test};

// Conformance: functions watch, new
#[test]
fn the_examples_of_every_template_pass() {
    let dir = Dir::new(&[]);
    for dialect in Dialect::ALL {
        let name: CodecName = dialect.name().parse().unwrap();
        let files = write_new(&dir.path(), &dir.path(), dialect, &name).unwrap();
        assert!(matches!(files.as_slice(), [NewFile::Written(_), NewFile::Written(_), _]), "{files:?}");
        let script = fs::read_to_string(dir.path().join(format!("{}.js", dialect.name()))).unwrap();
        assert!(script.starts_with(&format!("// {}: ", dialect.name())) && !script.contains("NAME"), "{script}");
    }
    let (found, totals, text) = test(&[dir.path()]);
    assert!(found.problems.is_empty(), "{:?}", found.problems);
    assert_eq!((totals.codecs, totals.failed, totals.shown), (Dialect::ALL.len(), 0, 0), "{text}");
    assert!(totals.passed >= 12, "{text}");
}

// Conformance: functions watch, new
#[test]
fn nothing_is_overwritten() {
    let ci = ".github/workflows/codecs.yml";
    let dir = Dir::new(&[("door.test.yaml", "mine"), (ci, "mine too")]);
    let name: CodecName = "door".parse().unwrap();
    let error = write_new(&dir.path(), &dir.path(), Dialect::Ts013, &name).unwrap_err();
    assert!(error.to_string().contains("door.test.yaml exists"), "{error}");
    assert!(!dir.path().join("door.js").exists());

    fs::remove_file(dir.path().join("door.test.yaml")).unwrap();
    let files = write_new(&dir.path(), &dir.path(), Dialect::Ts013, &name).unwrap();
    assert_eq!(files[2], NewFile::Kept(dir.path().join(ci)));
    assert_eq!(fs::read_to_string(dir.path().join(ci)).unwrap(), "mine too");
}

#[test]
fn the_file_for_ci_is_where_github_reads_it() {
    let ci = ".github/workflows/codecs.yml";
    let name: CodecName = "door".parse().unwrap();
    for (repository, at) in [("a/.git/HEAD", "a"), ("a/b/.git", "a/b"), ("x/.git/HEAD", ""), ("a/b/c/d/.git/HEAD", "")]
    {
        let dir = Dir::new(&[(repository, "")]);
        let files = write_new(&dir.path().join("a/b/c"), &dir.path(), Dialect::V2, &name).unwrap();
        assert_eq!(files[2], NewFile::Written(dir.path().join(at).join(ci)), "{repository}");
    }
    let (dir, elsewhere) = (Dir::new(&[]), Dir::new(&[]));
    let files = write_new(&dir.path(), &elsewhere.path(), Dialect::V2, &name).unwrap();
    assert_eq!(files[2], NewFile::Written(dir.path().join(ci)));
}

#[test]
fn a_directory_that_is_a_file_is_named() {
    let dir = Dir::new(&[("plain", "")]);
    let error = write_new(&dir.path().join("plain"), &dir.path(), Dialect::V2, &"door".parse().unwrap()).unwrap_err();
    assert!(error.describe().contains("/plain: "), "{}", error.describe());
}
