//! A stranger reads the description of the API and sends what it allows, and what it does not.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use airlock_account::{Limits, Settings};
use serde_json::json;
use server::limit::Limit;

use crate::service::Service;

/// The version of the stranger from PyPI.
const VERSION: &str = "schemathesis==4.32.5";
/// What must hold for every answer.
const CHECKS: &str = "not_a_server_error,status_code_conformance,content_type_conformance,\
                      response_headers_conformance,response_schema_conformance,unsupported_method,ignored_auth";
/// Ids that stand for what is there; made-up ones would only ever find nothing.
const CONFIGURATION: &str = r#"
[parameters]
"path.app_id" = "my-app"
"path.gw_id" = "my-gateway"
"path.services" = "handlers"
"path.id" = "my-handler"
"#;
/// The operations after which there is nothing left to try others on.
const LAST: [&str; 3] = ["deleteApplication", "deleteGateway", "deleteComponent"];

/// The program in a virtual environment of its own; none when it cannot be had and nobody insists on it.
fn program() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("schemathesis");
    let program = folder.join("bin/schemathesis");
    let made = program.exists()
        || runs(Command::new("python3").args(["-m", "venv"]).arg(&folder))
            && runs(Command::new(folder.join("bin/pip")).args(["install", "--quiet", VERSION]));
    if !made {
        let required = std::env::var_os("REQUIRE_SERVICES").is_some_and(|value| value == "1");
        assert!(!required, "schemathesis is missing: install python3-venv, and let pip reach PyPI");
        println!("skipped: schemathesis is missing; install python3-venv to test the description of the API with it");
    }
    made.then_some(program)
}

fn runs(command: &mut Command) -> bool {
    command.output().is_ok_and(|output| output.status.success())
}

/// A service that does not mind how often strangers try, and a token for everything that is in it.
///
/// Its things have the ids that the description gives as examples.
async fn start() -> (Service, String) {
    let limit = Limit { burst: 1_000_000, per_hour: 1_000_000 };
    let limits = Limits { login: limit, user: limit, address: limit, registration: limit, mail: limit };
    let service = Service::start_with(Settings { limits, ..Settings::default() }).await;
    let alice = service.user("alice").await;
    service.application(&alice, "my-app").await;
    service.gateway(&alice, "my-gateway").await;
    service.handler(&alice, "my-handler").await;
    let client = json!({"name": "my-client", "uri": "app://callback", "scope": ["apps"]});
    assert_eq!(service.post("/api/v2/clients", &alice, client).await.status, 201);
    let general = ["profile", "apps", "gateways", "components", "clients"];
    let all = [&general[..], &["apps:my-app", "gateways:my-gateway", "components:my-handler"]].concat();
    let token = service.restrict(&alice, &all).await;
    (service, token)
}

/// Lets the stranger try some operations; gives how many it tried.
async fn try_operations(program: &Path, service: &Service, token: &str, chosen: &[String]) -> usize {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("schemathesis.toml"), CONFIGURATION).unwrap();
    let mut command = Command::new(program);
    command.current_dir(folder.path()).args(["--no-color"]).arg("run").args(chosen);
    command.args(["--checks", CHECKS, "--phases", "examples,coverage,fuzzing", "--max-examples", "10", "--seed", "1"]);
    command.arg("--header").arg(format!("Authorization: {token}")).arg(format!("{}/api/v2/openapi.json", service.base));
    let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    let tested = text.lines().find_map(|line| line.trim().strip_prefix("Tested: "));
    tested.unwrap_or_else(|| panic!("schemathesis does not say what it tested:\n{text}")).parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stranger_gets_the_answers_that_the_description_promises() {
    let Some(program) = program() else { return };
    let (service, token) = start().await;
    let document = service.get("/api/v2/openapi.json", "").await.json();
    let paths = document["paths"].as_object().unwrap();
    let operations = paths.values().map(|calls| calls.as_object().unwrap().len()).sum::<usize>();
    // What deletes the things that all others are about comes last.
    let last = |option: &str| LAST.iter().map(|id| format!("--{option}-operation-id={id}")).collect::<Vec<_>>();
    let first = try_operations(&program, &service, &token, &last("exclude")).await;
    let then = try_operations(&program, &service, &token, &last("include")).await;
    // The document itself is no operation to it.
    assert_eq!((first + then, then), (operations - 1, LAST.len()));
}
