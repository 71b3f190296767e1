//! Shell completion and manual pages.

use std::fs;

use super::CommandLine;
use crate::harness::printed;

// Conformance: completions, man, examples in the help
#[tokio::test(flavor = "multi_thread")]
async fn a_shell_completes_commands_and_ids() {
    let line = CommandLine::start().await;
    line.typed(&["devices", "register", "dev-1"]);
    let script = line.typed(&["completions", "bash"]);
    assert!(script.contains("COMPLETE=\"bash\"") && script.contains("airlock"), "{script}");
    fs::write(line.network.dir.path().join("completion.bash"), script).unwrap();
    let client = &line.network.stack.settings().client;
    let complete = |words: &str, index: usize| {
        // Bash's own way to ask a completion function.
        let shell = format!(
            "bash -c 'PATH=$(dirname ${{AIRLOCK%% *}}):$PATH; source completion.bash; COMP_WORDS=({words}); \
             COMP_CWORD={index}; COMP_TYPE=9; _clap_complete_airlock airlock ${{COMP_WORDS[COMP_CWORD]}}; echo \"<${{COMPREPLY[@]}}>\"'"
        );
        let settings = format!(
            "export AIRLOCK_DATA_DIR={} AIRLOCK_CLIENT__AUTH_SERVER={} AIRLOCK_CLIENT__DISCOVERY_ADDRESS={}; {shell}",
            line.network.dir.path().display(),
            client.auth_server,
            client.discovery_address
        );
        printed(&line.network.run_at_terminal(&settings, &[]))
    };
    let shown = complete("airlock subs", 1);
    assert!(shown.contains("<subscribe"), "{shown}");
    let shown = complete("airlock devices info d", 3);
    assert!(shown.contains("dev-1"), "{shown}");
    line.typed(&["applications", "add", "other-app", "Other", "--skip-select"]);
    line.typed(&["--handler-id", "handler", "applications", "select", "other-app"]);
    line.typed(&["applications", "register"]);
    let shown = complete("airlock devices info d", 3);
    assert!(!shown.contains("dev-1"), "{shown}");
    let shown = complete("airlock devices --app-id my-app info d", 5);
    assert!(shown.contains("dev-1"), "{shown}");
    let shown = complete("airlock --data /nowhere devices --app-id my-app info d", 7);
    assert!(!shown.contains("dev-1"), "{shown}");
    line.typed(&["applications", "select", "my-app"]);
    line.typed(&["webhooks", "set", "my-hook", "https://example.com/"]);
    let shown = complete("airlock webhooks failed m", 3);
    assert!(shown.contains("my-hook"), "{shown}");
    // The store's own are completed while its server runs.
    let register = ["account", "clients", "register", "dashboard", "--scope", "apps", "--public"];
    line.typed(&[&register[..], &["--redirect-uri", "https://example.com/"]].concat());
    for (words, id) in [
        ("airlock account users disable b", "bob"),
        ("airlock account clients reject d", "dashboard"),
        ("airlock account components revoke h", "handler"),
    ] {
        let shown = complete(words, 4);
        assert!(shown.contains(id), "{words}: {shown}");
    }
    let shown = complete("airlock --data /nowhere account users disable b", 6);
    assert!(!shown.contains("bob"), "{shown}");
    let shown = complete("airlock applications add m", 3);
    assert!(!shown.contains("my-app"), "{shown}");
    let shown = complete("airlock applications info m", 3);
    assert!(shown.contains("my-app"), "{shown}");
    line.network.stack.stop().await;
}

// Conformance: completions, man, examples in the help
#[tokio::test(flavor = "multi_thread")]
async fn every_command_has_a_manual_page() {
    let line = CommandLine::start().await;
    let dir = line.network.dir.path().join("man");
    line.typed(&["man", dir.to_str().unwrap()]);
    let page = fs::read_to_string(dir.join("airlock-applications-pf-set.1")).unwrap();
    assert!(page.contains("\\-\\-payload") && page.contains("Examples"), "{page}");
    line.network.stack.stop().await;
}
