//! Commands on a running network, beyond those of the README.

mod applications;
mod device_files;
mod devices;
mod gateways;
mod load;
mod messages;
mod output;
mod settings;
mod shell;
mod transcripts;
mod unreadable_history;
mod users;
mod webhooks;

use crate::harness::{Network, PASSWORD, airlock, complaint, printed, run};

/// alice on a network of her own, with the application `my-app` selected; bob is registered too.
struct CommandLine {
    network: Network,
}

impl CommandLine {
    async fn start() -> Self {
        Self::on(Network::start().await)
    }

    fn on(network: Network) -> Self {
        let line = Self { network };
        for name in ["bob", "alice"] {
            let email = format!("{name}@example.com");
            line.run_with_input(&["user", "register", name, &email, "--password-stdin"], PASSWORD);
        }
        line.run_with_input(&["user", "login", "alice", "--password-stdin"], PASSWORD);
        line.typed(&["applications", "add", "my-app", "My application"]);
        line
    }

    fn typed(&self, arguments: &[&str]) -> String {
        self.run_with_input(arguments, "")
    }

    fn run_with_input(&self, arguments: &[&str], input: &str) -> String {
        printed(&self.network.type_command(arguments, input))
    }

    /// The exit code and error of a command that fails.
    fn refused(&self, arguments: &[&str], input: &str) -> (i32, String) {
        let output = self.network.type_command(arguments, input);
        (output.status.code().unwrap(), complaint(&output))
    }
}

/// Returns true if a word of the output is `username`. Three letters may well occur within a random key.
fn names_user(output: &str, username: &str) -> bool {
    output.split_whitespace().any(|word| word == username)
}

// Conformance: applications: add, list, info, select, config, register, unregister, delete
#[tokio::test(flavor = "multi_thread")]
async fn manages_applications_and_collaborators() {
    let line = CommandLine::start().await;
    let (code, error) = line.refused(&["applications", "select", "no-such-app"], "");
    assert!(code == 3 || code == 4, "{code} {error}");
    assert!(line.typed(&["applications", "select"]).contains("Selected application my-app"));
    let config = line.typed(&["applications", "config"]);
    let auth_server = &line.network.stack.settings().client.auth_server;
    for shown in ["AppID: my-app", "User: alice", &format!("Account service: {auth_server}")] {
        assert!(config.contains(shown), "{shown}: {config}");
    }
    let (_, error) = line.refused(&["applications", "select", "my-app", "0102030405060708"], "");
    assert!(error.contains("application my-app has no EUI 0102030405060708"), "{error}");
    line.typed(&["applications", "add", "other-app", "Another", "--app-eui", "0102030405060708", "--skip-select"]);
    let chosen = line.network.type_command(&["applications", "select"], "2\n");
    let asked = String::from_utf8_lossy(&chosen.stderr);
    assert!(asked.contains("other-app  Another") && asked.contains("(1 - 2) > "), "{asked}");
    assert_eq!(printed(&chosen), "Selected application other-app\n");
    line.typed(&["applications", "select", "other-app", "0102030405060708"]);
    line.typed(&["applications", "register"]);
    assert!(line.typed(&["devices", "register", "dev-1"]).contains("AppEUI: 0102030405060708"));

    line.typed(&["applications", "collaborators", "add", "my-app", "bob", "devices", "messages:up:r"]);
    let info = line.typed(&["applications", "info", "my-app"]);
    assert!(info.contains("messages:up:r, devices") && names_user(&info, "bob"), "{info}");
    let (code, error) = line.refused(&["applications", "collaborators", "add", "my-app", "bob", "everything"], "");
    assert!(code == 2 && error.contains("messages:down:w"), "{error}");
    line.typed(&["applications", "collaborators", "delete", "my-app", "bob"]);
    assert!(!names_user(&line.typed(&["applications", "info", "my-app"]), "bob"));

    assert!(line.refused(&["applications", "unregister"], "no\n").1.contains("cancelled"));
    assert!(line.typed(&["devices", "list"]).contains("dev-1"));
    line.run_with_input(&["applications", "unregister"], "yes\n");
    assert_eq!(line.refused(&["devices", "list"], "").0, 3);
    line.typed(&["applications", "delete", "--yes"]);
    assert!(line.refused(&["applications", "info"], "").1.contains("airlock applications select"));
    line.network.stack.stop().await;
}

// Conformance: user: login with a code or a password, logout, register
#[tokio::test(flavor = "multi_thread")]
async fn a_new_password_is_typed_twice_at_a_terminal() {
    let line = CommandLine::start().await;
    for (again, expected) in [("another password", "the passwords differ"), (PASSWORD, "Registered user carol")] {
        let answers = [("Password: ", PASSWORD), ("again: ", again)];
        let output = line.network.type_at_terminal(&["user", "register", "carol", "carol@example.com"], &answers);
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(said.contains(expected) && output.status.success() == (again == PASSWORD), "{said}");
    }
    line.network.stack.stop().await;
}

// Conformance: user: login with a code or a password, logout, register
#[tokio::test(flavor = "multi_thread")]
async fn only_yes_at_a_terminal_confirms() {
    let line = CommandLine::start().await;
    line.typed(&["devices", "register", "dev-1"]);
    let typed = |answer: &str| {
        let question = [("Delete device dev-1 of application my-app? (yes/no) > ", answer)];
        line.network.type_at_terminal(&["devices", "delete", "dev-1"], &question)
    };
    for answer in ["no", "", "perhaps"] {
        let output = typed(answer);
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(!output.status.success() && said.contains("nothing was changed"), "{answer}: {said}");
        assert!(line.typed(&["devices", "list"]).contains("dev-1"));
    }
    assert!(printed(&typed("Yes")).contains("Deleted device dev-1"));
    line.network.stack.stop().await;
}

// Conformance: applications pf, pf set
#[tokio::test(flavor = "multi_thread")]
async fn empty_input_removes_no_function() {
    let line = CommandLine::start().await;
    let decoder = "function Decoder(bytes) { return { n: bytes.length }; }";
    line.run_with_input(&["applications", "pf", "set", "decoder", "--skip-test"], decoder);
    for file in [&[][..], &["-"]] {
        let command = [&["applications", "pf", "set", "decoder"][..], file].concat();
        for input in ["", " \n"] {
            assert!(line.refused(&command, input).1.contains("standard input is empty"));
        }
    }
    assert!(line.typed(&["applications", "pf"]).contains("bytes.length"));
    let json = line.typed(&["applications", "pf", "--output", "json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(
        (&json["decoder"], &json["encoder"], &json["payload_format"]),
        (&decoder.into(), &"".into(), &"custom".into())
    );
    std::fs::write(line.network.dir.path().join("empty.js"), "").unwrap();
    line.typed(&["applications", "pf", "set", "decoder", "empty.js"]);
    assert!(line.typed(&["applications", "pf"]).contains("// no decoder"));
    line.network.stack.stop().await;
}

// Conformance: applications pf, pf set
#[tokio::test(flavor = "multi_thread")]
async fn offers_a_test_before_saving_a_function() {
    let line = CommandLine::start().await;
    let decoder = "function Decoder(b, p) { console.log(p); if (b[0]) throw new Error('no'); return { p: p }; }";
    std::fs::write(line.network.dir.path().join("decoder.js"), decoder).unwrap();
    let set = ["applications", "pf", "set", "decoder", "decoder.js"];
    let typed = |set: &[&str], answers: &[&str]| {
        let questions = ["(Y/n) > ", ": ", "[1]: "];
        let answers: Vec<_> = questions.into_iter().zip(answers.iter().copied()).collect();
        line.network.type_at_terminal(set, &answers)
    };
    let failed = typed(&set, &["y", "01", ""]);
    let said = String::from_utf8_lossy(&failed.stdout);
    assert!(!failed.status.success() && said.contains("nothing was changed") && said.contains("Error: no"), "{said}");
    assert!(line.typed(&["applications", "pf"]).contains("// no decoder"));
    let said = printed(&typed(&set, &["", "00", "7"]));
    for expected in ["Decoder: 7", r#"Fields: {"p":7}"#, "The message is valid", "Updated application my-app"] {
        assert!(said.contains(expected), "{expected}: {said}");
    }
    std::fs::write(line.network.dir.path().join("decoder.js"), "function Encoder(f) { return [f.led]; }").unwrap();
    let set = ["applications", "pf", "set", "encoder", "decoder.js"];
    let said = printed(&typed(&set, &["yes", "{\"led\": 17}", "1"]));
    let said = anstream::adapter::strip_str(&said).to_string();
    assert!(said.contains("Payload: 11"), "{said}");
    let said = printed(&typed(&set, &["n"]));
    assert!(said.contains("Updated") && !said.contains("Fields"), "{said}");
    assert!(!printed(&typed(&[&set[..], &["--skip-test"]].concat(), &[])).contains("test"));
    // What was typed before the question may be the next command.
    let said = printed(&line.network.type_at_terminal(&set, &[("", "airlock user")]));
    assert!(said.contains("Not tested") && said.contains("Updated"), "{said}");
    line.network.stack.stop().await;
}

// Conformance: applications pf, pf set
#[tokio::test(flavor = "multi_thread")]
async fn functions_are_tested_with_the_message_in_the_options() {
    let line = CommandLine::start().await;
    let decoder = "function Decoder(b, p) { if (b[0]) throw new Error('no'); return { p: p }; }";
    let set = ["applications", "pf", "set", "decoder"];
    let with = |options: &[&str]| line.network.type_command(&[&set[..], options].concat(), decoder);
    assert!(complaint(&with(&["--payload", "01"])).contains("nothing was changed"));
    assert!(line.typed(&["applications", "pf"]).contains("// no decoder"));
    let said = printed(&with(&["--payload", "00", "--port", "9"]));
    assert!(said.contains(r#"Fields: {"p":9}"#) && said.contains("Updated application my-app"), "{said}");
    let result = printed(&with(&["--payload", "00", "--output", "json"]));
    let result: serde_json::Value = serde_json::from_str(&result).unwrap();
    assert_eq!((&result["fields"]["p"], &result["valid"]), (&1.into(), &true.into()));
    let set = ["applications", "pf", "set", "encoder"];
    let (_, error) = line.refused(&[&set[..], &["--payload", "00"]].concat(), decoder);
    assert!(error.contains("an encoder is tested with --fields"), "{error}");
    let encoder = "function Encoder(f) { return [f.led]; }";
    let said = line.run_with_input(&[&set[..], &["--fields", "{\"led\": 17}"]].concat(), encoder);
    assert!(said.contains("Payload: 11"), "{said}");
    line.network.stack.stop().await;
}

// Conformance: Options of every command, config, version, selfupdate
#[test]
fn version_and_help_need_no_network() {
    let dir = tempfile::tempdir().unwrap();
    let typed = |arguments: &[&str]| printed(&run(airlock(dir.path()).args(arguments), ""));
    assert_eq!(typed(&["version"]), typed(&["--version"]));
    assert!(typed(&["selfupdate"]).contains("build them"));
    assert_eq!(typed(&["config"]), typed(&["config", "print"]));
    let options = ["--router-id", "a-router", "--mqtt-username", "my-app", "--mqtt-password", "issuer.hush"];
    let config = typed(&[&["config"][..], &options].concat());
    assert!(config.contains("a-router") && config.contains("my-app") && !config.contains("hush"), "{config}");
    let json = typed(&[&["config", "-o", "json"][..], &options].concat());
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&json["client"]["router_id"], &json["client"]["mqtt_password"]), (&"a-router".into(), &().into()));
    let help = typed(&["user", "login", "--help"]).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(help.contains("38 characters") && help.contains("airlock user login <code>"), "{help}");
}
