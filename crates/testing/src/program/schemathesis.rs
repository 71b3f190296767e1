//! Runs Schemathesis, which sends valid and invalid requests according to an OpenAPI document and checks the responses.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;

use crate::Python;

const PACKAGE: &str = "schemathesis==4.32.5";
/// Checks of every response.
const CHECKS: &str = "not_a_server_error,status_code_conformance,content_type_conformance,\
                      response_headers_conformance,response_schema_conformance,unsupported_method,ignored_auth";

/// The program, and the API that it tests.
pub struct Schemathesis {
    program: PathBuf,
    parameters: &'static str,
    url: String,
    authorization: String,
}

impl Schemathesis {
    /// Installs the program into `dir`; `None` when that fails and the test is skipped.
    ///
    /// `parameters` is its settings file, with the ids of things that exist: made-up ones would only ever get "not
    /// found". `url` is the address of the description, `authorization` the value of that header.
    pub fn install(dir: &Path, parameters: &'static str, url: String, authorization: String) -> Option<Self> {
        let program = Python::install(&dir.join("schemathesis"), &[PACKAGE])?.program("schemathesis");
        Some(Self { program, parameters, url, authorization })
    }

    /// Tests every operation, those with the ids `last` at the end: they delete what the others need.
    pub async fn test_all(&self, last: &[&str]) {
        let response = reqwest::get(&self.url).await.unwrap().json::<Value>().await.unwrap();
        // The description does not list itself as an operation to the program, and the settings leave out others.
        let is_tested = |path: &str| {
            !path.ends_with("/openapi.json") && !self.parameters.contains(&format!("include-path = \"{path}\""))
        };
        let paths = response["paths"].as_object().unwrap().iter().filter(|(path, _)| is_tested(path));
        let operations = paths.map(|(_, path)| count(path)).sum::<usize>();
        let chosen = |option: &str| last.iter().map(|id| format!("--{option}-operation-id={id}")).collect();
        let (first, then) = (self.test(chosen("exclude")).await, self.test(chosen("include")).await);
        assert_eq!((first + then, then), (operations, last.len()));
    }

    /// Returns the number of tested operations.
    async fn test(&self, chosen: Vec<String>) -> usize {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("schemathesis.toml"), self.parameters).unwrap();
        let mut command = Command::new(&self.program);
        command.current_dir(dir.path()).args(["--no-color"]).arg("run").args(chosen).args(["--checks", CHECKS]);
        command.args(["--phases", "examples,coverage,fuzzing", "--max-examples", "10", "--seed", "1"]);
        command.arg("--header").arg(format!("Authorization: {}", self.authorization)).arg(&self.url);
        let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
        let tested = text.lines().find_map(|line| line.trim().strip_prefix("Tested: "));
        tested.unwrap_or_else(|| panic!("schemathesis does not say what it tested:\n{text}")).parse().unwrap()
    }
}

/// Returns the number of operations of a path.
fn count(path: &Value) -> usize {
    path.as_object().unwrap().keys().filter(|name| *name != "parameters").count()
}
