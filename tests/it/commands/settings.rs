//! Services that were moved by the settings, and the commands that follow them.

use std::{fs, process::Stdio};

use airlock::settings::TlsMode;

use crate::harness::{
    Network, PASSWORD, airlock, complaint, printed, run,
    server_process::{ServerProcess, serve},
};

/// The address is in a header of pages: nothing may stand there that means something else.
#[test]
fn a_server_of_tiles_that_is_none_is_refused_at_the_start() {
    let dir = tempfile::tempdir().unwrap();
    let attribution = "© OpenStreetMap contributors";
    for (url, attribution, said) in [
        ("ftp://tile.example.com/{z}/{x}/{y}.png", attribution, "must be a URL with http or https"),
        ("https://*.example.com/{z}/{x}/{y}.png", attribution, "must have the name of one host"),
        ("https://tile.example.com/{z}/{x}.png", attribution, "must have {z}, {x} and {y}"),
        ("https://tile.example.com/{z}/{x}/{y}.png", " ", "must be one line"),
        ("https://tile.example.com/{z}/{x}/{y}.png", "", "`console.map_tiles.attribution` is missing"),
    ] {
        let mut command = serve(dir.path());
        command.env("AIRLOCK_CONSOLE__MAP_TILES__URL", url);
        command.env("AIRLOCK_CONSOLE__MAP_TILES__ATTRIBUTION", attribution);
        let error = complaint(&run(&mut command, ""));
        assert!(error.contains("`console.map_tiles.") && error.contains(said), "{url}, {attribution}: {error}");
    }
}

/// Commands have no option but the data directory: the settings file in the current directory says the rest.
// Conformance: Commands follow the services of the same settings; an option wins
#[tokio::test(flavor = "multi_thread")]
async fn commands_follow_a_handler_with_another_id_and_without_tls() {
    let network = Network::with(|settings| {
        settings.handler.id = "ttn-handler-eu".parse().unwrap();
        settings.tls.mode = TlsMode::Off;
    })
    .await;
    let client = &network.stack.settings().client;
    let account = client.auth_server.strip_prefix("http://").unwrap();
    let text = format!(
        "listen.account = '{account}'\nlisten.discovery = '{}'\nhandler.id = 'ttn-handler-eu'\ntls.mode = 'off'\n",
        client.discovery_address
    );
    fs::write(network.dir.path().join("airlock.toml"), text).unwrap();
    let typed = |arguments: &[&str]| run(airlock(network.dir.path()).args(arguments), PASSWORD);
    printed(&typed(&["user", "register", "alice", "alice@example.com", "--password-stdin"]));
    printed(&typed(&["user", "login", "alice", "--password-stdin"]));
    printed(&typed(&["applications", "add", "my-app", "Mine"]));
    printed(&typed(&["devices", "register", "dev-1"]));
    assert!(printed(&typed(&["devices", "list"])).contains("dev-1"));
    let error = complaint(&typed(&["devices", "list", "--handler-id", "handler"]));
    assert!(error.contains("cannot find the handler `handler`"), "{error}");
    network.stack.stop().await;
}

// Conformance: Commands follow the services of the same settings; an option wins
#[test]
fn an_address_in_an_option_is_used_even_if_it_is_the_default() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("airlock.toml"), "listen.account = '127.0.0.1:9000'\n").unwrap();
    let shown = |options: &[&str]| {
        let config = printed(&run(airlock(dir.path()).args(options).args(["applications", "config"]), ""));
        config.lines().find_map(|line| Some(line.split_once("Account service: ")?.1.to_owned())).unwrap()
    };
    assert_eq!(shown(&[]), "http://127.0.0.1:9000");
    assert_eq!(shown(&["--auth-server", "http://127.0.0.1:8000"]), "http://127.0.0.1:8000");
}

// Conformance: Commands follow the services of the same settings; an option wins
#[test]
fn a_server_says_how_commands_find_it() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("my settings.toml"), "").unwrap();
    let mut process =
        ServerProcess::spawn(serve(dir.path()).args(["--config", "my settings.toml"]).stderr(Stdio::null()));
    let data = dir.path().display();
    let options = format!("airlock --config '{data}/my settings.toml' --data {data}");
    let steps = process.next_steps();
    for command in ["user register NAME EMAIL", "applications add APP-ID DESCRIPTION"] {
        assert!(steps.contains(&format!("{options} {command}")), "{steps}");
    }
    process.stop();
}
