//! Schemathesis: a stranger that reads the description of an API and sends what it allows, and what it does not.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;

/// Its version, from PyPI.
const VERSION: &str = "schemathesis==4.32.5";
/// What must hold for every answer.
const CHECKS: &str = "not_a_server_error,status_code_conformance,content_type_conformance,\
                      response_headers_conformance,response_schema_conformance,unsupported_method,ignored_auth";

/// The program, and where it is sent.
pub(crate) struct Schemathesis {
    program: PathBuf,
    /// The ids that stand for what is there, as its settings; made-up ones would only ever find nothing.
    pub(crate) parameters: &'static str,
    /// The address of the description.
    pub(crate) url: String,
    /// The value of the header `Authorization`.
    pub(crate) authorization: String,
}

impl Schemathesis {
    /// Takes the program from a virtual environment of its own; none when it cannot be had and nobody insists on it.
    pub(crate) fn install(parameters: &'static str, url: String, authorization: String) -> Option<Self> {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("schemathesis");
        let program = folder.join("bin/schemathesis");
        let made = program.exists()
            || runs(Command::new("python3").args(["-m", "venv"]).arg(&folder))
                && runs(Command::new(folder.join("bin/pip")).args(["install", "--quiet", VERSION]));
        if !made {
            let required = std::env::var_os("REQUIRE_SERVICES").is_some_and(|value| value == "1");
            assert!(!required, "schemathesis is missing: install python3-venv, and let pip reach PyPI");
            println!(
                "skipped: schemathesis is missing; install python3-venv to test the description of the API with it"
            );
        }
        made.then_some(Self { program, parameters, url, authorization })
    }

    /// Has it try all operations, these last: after them there is nothing left to try others on.
    pub(crate) async fn try_all(&self, last: &[&str]) {
        let answer = reqwest::get(&self.url).await.unwrap().json::<Value>().await.unwrap();
        // The description itself is no operation to it.
        let paths = answer["paths"].as_object().unwrap().iter().filter(|(path, _)| !path.ends_with("/openapi.json"));
        let operations = paths.map(|(_, path)| count(path)).sum::<usize>();
        let chosen = |option: &str| last.iter().map(|id| format!("--{option}-operation-id={id}")).collect();
        let (first, then) = (self.try_some(chosen("exclude")).await, self.try_some(chosen("include")).await);
        assert_eq!((first + then, then), (operations, last.len()));
    }

    /// Gives how many operations it tried.
    async fn try_some(&self, chosen: Vec<String>) -> usize {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("schemathesis.toml"), self.parameters).unwrap();
        let mut command = Command::new(&self.program);
        command.current_dir(folder.path()).args(["--no-color"]).arg("run").args(chosen).args(["--checks", CHECKS]);
        command.args(["--phases", "examples,coverage,fuzzing", "--max-examples", "10", "--seed", "1"]);
        command.arg("--header").arg(format!("Authorization: {}", self.authorization)).arg(&self.url);
        let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
        let tested = text.lines().find_map(|line| line.trim().strip_prefix("Tested: "));
        tested.unwrap_or_else(|| panic!("schemathesis does not say what it tested:\n{text}")).parse().unwrap()
    }
}

/// How many operations a path has.
fn count(path: &Value) -> usize {
    path.as_object().unwrap().keys().filter(|name| *name != "parameters").count()
}

fn runs(command: &mut Command) -> bool {
    command.output().is_ok_and(|output| output.status.success())
}
