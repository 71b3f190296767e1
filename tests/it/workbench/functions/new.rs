//! `airlock functions new`: what it writes passes its examples, and runs where its dialect does.

use crate::harness::{airlock, complaint, printed, run};

// Conformance: functions watch, new
#[test]
fn a_new_codec_of_each_dialect_passes_and_runs_on_its_networks() {
    let dir = tempfile::tempdir().unwrap();
    let functions = |arguments: &[&str]| run(airlock(dir.path()).arg("functions").args(arguments), "");
    for (dialect, targets) in [
        ("ts013", &["chirpstack-4.16", "chirpstack-4.17", "things-stack", "actility"][..]),
        ("v2", &["ttn-v2", "things-stack"]),
        ("chirpstack3", &["chirpstack-3"]),
    ] {
        let out = printed(&functions(&["new", dialect, "door", "--dir", dialect]));
        for file in ["door.js", "door.test.yaml"] {
            assert!(out.contains(&format!("wrote {dialect}/{file}\n")), "{out}");
        }
        let (ci, last) = match dialect {
            "ts013" => {
                ("wrote", "For CI, put your copy of Airlock in place of OWNER in ./.github/workflows/codecs.yml\n")
            }
            _ => ("kept", ""),
        };
        assert!(out.contains(&format!("{ci} ./.github/workflows/codecs.yml")) && out.ends_with(last), "{out}");
        let told = out.lines().find_map(|line| line.strip_prefix("Now run: airlock functions ")).unwrap();
        let words: Vec<&str> = told.split(' ').collect();
        let tested = printed(&functions(&words));
        assert!(tested.contains("codecs: 1, with failures: 0\n"), "{tested}");
        printed(&functions(&["test", dialect, "--coverage=85"]));
        let targets: Vec<&str> = targets.iter().flat_map(|target| ["--target", target]).collect();
        printed(&functions(&[&["lint", dialect], &targets[..]].concat()));
        let again = functions(&["new", dialect, "door", "--dir", dialect]);
        assert!(complaint(&again).contains("door.js exists: choose another name"), "{again:?}");
        assert_eq!(again.status.code(), Some(2));
    }
}
