//! Ctrl-C ends long work on history: the command says what was done so far, and where to go on.

use std::{collections::BTreeSet, time::Duration};

use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use crate::harness::{MESSAGE_TIMEOUT, Network, Owner, PASSWORD, complaint, next, printed};

/// Number of uplinks, which take as many seconds at the slowest rate.
const UPLINKS: u8 = 20;
const OLD: &str = "function Decoder(bytes) { return { celsius: bytes[0] }; }";
/// Changes all but the first five, which are then not published and take no time.
const NEW: &str = "function Decoder(bytes) { return { celsius: bytes[0] < 5 ? bytes[0] : -1 }; }";

/// The report of a command that was interrupted.
struct Stopped {
    examined: u64,
    /// The id after which to go on.
    after: String,
    shown: String,
}

/// An owner with uplinks, who is logged in.
async fn owner(network: &Network) -> Owner {
    let owner = network.owner("hasty").await;
    owner.add_device("dev-1").await;
    owner.set_functions([OLD, "", ""]).await.unwrap();
    for byte in 0..UPLINKS {
        owner.simulate("dev-1", &[byte], 1).await.unwrap();
    }
    printed(&network.type_command(&["user", "login", "hasty", "--password-stdin"], PASSWORD));
    owner
}

/// Types Ctrl-C once the command has shown this progress.
fn interrupt(network: &Network, command: &str, progress: &str) -> Stopped {
    // Without `exec`, Ctrl-C could end the shell before the command.
    let output = network.run_at_terminal(&format!("exec $AIRLOCK {command}"), &[(progress, "\u{3}")]);
    let shown = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(130), "{shown}");
    let word_after = |text: &str| {
        let (_, rest) = shown.split_once(text).unwrap_or_else(|| panic!("no `{text}` in {shown}"));
        rest.split_whitespace().next().unwrap().to_owned()
    };
    let (examined, after) = (word_after("stopped after ").parse().unwrap(), word_after("go on with --after "));
    Stopped { examined, after, shown }
}

/// Runs a command, and returns its totals. The handler may notice only a little later that nobody reads its reports any
/// more.
async fn totals(network: &Network, arguments: &[&str]) -> Value {
    let arguments = [arguments, &["--output", "json"]].concat();
    let done = async {
        loop {
            let output = network.type_command(&arguments, "");
            if output.status.success() {
                return serde_json::from_slice(&output.stdout).unwrap();
            }
            assert!(complaint(&output).contains("is running already"), "{output:?}");
            sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(MESSAGE_TIMEOUT, done).await.expect("the handler ends what was interrupted")
}

// Conformance: Ctrl-C ends decoding and sending again with what was done so far
#[tokio::test(flavor = "multi_thread")]
async fn decoding_again_goes_on_where_it_was_interrupted() {
    let network = Network::start().await;
    let owner = owner(&network).await;
    owner.set_functions([NEW, "", ""]).await.unwrap();
    let decode = ["history", "decode", "--app-id", owner.app_id.as_str()];
    let command = [&decode[..], &["--write", "--publish", "--rate", "1"]].concat().join(" ");
    let Stopped { examined, after, shown } = interrupt(&network, &command, " uplinks");
    assert!(shown.contains(&format!("{examined} uplinks: 5 equal")), "{shown}");
    let rest = totals(&network, &[&decode[..], &["--write", "--after", &after]].concat()).await;
    assert_eq!(rest["examined"].as_u64(), Some(u64::from(UPLINKS) - examined), "{rest}");
    let all = totals(&network, &decode).await;
    assert_eq!((&all["equal"], &all["already_corrected"]), (&json!(5), &json!(UPLINKS - 5)), "{all}");
    network.stack.stop().await;
}

// Conformance: Ctrl-C ends decoding and sending again with what was done so far
#[tokio::test(flavor = "multi_thread")]
async fn sending_again_goes_on_where_it_was_interrupted() {
    let network = Network::start().await;
    let owner = owner(&network).await;
    let mut listener = owner.listen(&network).await;
    let replay = ["history", "replay", "--app-id", owner.app_id.as_str(), "--kind", "up"];
    let command = [&replay[..], &["--rate", "1"]].concat().join(" ");
    let Stopped { examined, after, shown } = interrupt(&network, &command, "\r1 messages");
    assert!(shown.contains(&format!(": {examined} sent")), "{shown}");
    let rest = totals(&network, &[&replay[..], &["--after", &after]].concat()).await;
    assert_eq!(rest["examined"].as_u64(), Some(u64::from(UPLINKS) - examined), "{rest}");
    let mut received = BTreeSet::new();
    while received.len() < usize::from(UPLINKS) {
        let (_, message) = next(&mut listener).await;
        received.insert(message["payload_raw"].as_str().unwrap().to_owned());
    }
    network.stack.stop().await;
}
