//! `airlock devices …`, at a running network.

use store::{Batch, Commit, Key, Redis, RedisSettings, Store, StoreClock, Tag};
use testing::RedisProcess;

use super::CommandLine;
use crate::harness::{Network, complaint};

impl CommandLine {
    /// The value of a line of `devices info`; empty if there is none.
    fn device(&self, dev_id: &str, name: &str) -> String {
        let said = self.typed(&["devices", "info", dev_id]);
        let line = said.lines().find_map(|line| line.trim().strip_prefix(name)?.strip_prefix(": "));
        line.unwrap_or_default().to_owned()
    }
}

// Conformance: The discovery and handler clients: every call
// Conformance: devices: list, info, register, set, personalize, simulate, delete
#[tokio::test(flavor = "multi_thread")]
async fn updates_personalizes_and_deletes_a_device() {
    let line = CommandLine::start().await;
    let app_key = "2B7E151628AED2A6ABF7158809CF4F3C";
    line.typed(&["devices", "register", "dev-1", "0102030405060708", app_key, "-52.5,4.25,12"]);
    assert_eq!(line.device("dev-1", "Location"), "-52.5, 4.25, 12 m");
    line.typed(&[
        "devices",
        "set",
        "dev-1",
        "--description",
        "by the door",
        "--fcnt-up",
        "7",
        "--16-bit-fcnt",
        "--latitude",
        "52.5",
        "--attr-set",
        "floor:3",
        "--attr-set",
        "url:http://x",
        "--disable-fcnt-check",
    ]);
    assert!(line.refused(&["devices", "set", "dev-1", "--override"], "").1.contains("nothing to change"));
    let (code, error) = line.refused(&["devices", "set", "dev-1", "--latitude", "100"], "");
    assert!(code == 2 && error.contains("from -90 to 90"), "{error}");
    line.typed(&["devices", "set", "dev-1", "--attr-remove", "floor", "--fcnt-down", "-1"]);
    for (name, expected) in [
        ("Description", "by the door"),
        ("Location", "52.5, 4.25, 12 m"),
        ("FCntUp", "7"),
        ("Options", "FCntCheckDisabled, 16BitFCnt"),
        ("Attributes", "url: http://x"),
        ("AppKey", app_key),
    ] {
        assert_eq!(line.device("dev-1", name), expected, "{name}");
    }
    assert!(line.typed(&["devices", "info", "dev-1", "--format", "lsb"]).contains("{ 0x08, 0x07, 0x06"));

    let (_, error) = line.refused(&["devices", "set", "dev-1", "--dev-addr", "26000001"], "");
    assert!(error.contains("--override"), "{error}");
    line.typed(&["devices", "set", "dev-1", "--dev-addr", "26000001", "--override"]);
    assert_eq!(line.device("dev-1", "DevAddr"), "26000001");

    let said = line.typed(&["devices", "personalize", "dev-1", &"1F".repeat(16)]);
    assert!(said.contains(&"1F".repeat(16)) && said.contains("DevAddr: 26000"), "{said}");
    assert_eq!(line.device("dev-1", "NwkSKey"), "1F".repeat(16));
    assert_eq!(line.device("dev-1", "AppSKey").len(), 32);
    assert_eq!((line.device("dev-1", "AppKey"), line.device("dev-1", "FCntUp")), (String::new(), "0".to_owned()));

    assert!(line.refused(&["devices", "delete", "dev-1"], "").1.contains("use --yes"));
    line.typed(&["devices", "delete", "dev-1", "--yes"]);
    assert_eq!(line.refused(&["devices", "info", "dev-1"], "").0, 3);
    line.network.stack.stop().await;
}

// Conformance: devices register on-join
#[tokio::test(flavor = "multi_thread")]
async fn registers_a_template_for_joining_devices() {
    let line = CommandLine::start().await;
    let key = "2B7E151628AED2A6ABF7158809CF4F3C";
    let (code, error) = line.refused(&["devices", "register", "on-join", "a-prefix-of-20-chars"], "");
    assert!(code == 2 && error.contains("19 characters"), "{error}");
    line.typed(&["devices", "register", "on-join", "a-prefix-of-19-char", key]);
    assert_eq!(line.device("a-prefix-of-19-char", "AppKey"), key);
    assert_eq!(line.device("a-prefix-of-19-char", "DevEUI"), "");
    assert!(line.typed(&["devices", "list"]).contains("register on join"));

    // There is one template for each AppEUI. The next one uses the access key of the first.
    let (_, error) = line.refused(&["devices", "register", "on-join", "second"], "");
    assert!(error.contains("Registration template with AppEUI"), "{error}");
    line.typed(&["devices", "delete", "a-prefix-of-19-char", "--yes"]);
    line.typed(&["devices", "register", "on-join", "second"]);
    let info = line.typed(&["applications", "info"]);
    let keys: Vec<_> = info.lines().filter(|line| line.trim().starts_with("register-on-join")).collect();
    assert!(keys.len() == 1 && keys[0].trim().ends_with(" devices"), "{info}");
    line.typed(&["applications", "pf", "set", "cayennelpp"]);
    let printed = line.typed(&["applications", "key", "--name", "register-on-join"]);
    assert!(keys[0].contains(printed.trim()), "{info} {printed}");
    line.network.stack.stop().await;
}

// Conformance: devices: list, info, register, set, personalize, simulate, delete
#[tokio::test(flavor = "multi_thread")]
async fn simulating_an_uplink_shows_its_fields_or_the_failure() {
    let line = CommandLine::start().await;
    line.typed(&["devices", "register", "dev-1"]);
    let decoder = "function Decoder(bytes, port) {\n  console.log('port', port);\n  if (!bytes[0]) throw 'empty';\n  \
                   return {n: bytes[0]};\n}";
    line.run_with_input(&["applications", "pf", "set", "decoder", "--skip-test"], decoder);
    assert_eq!(line.device("dev-1", "Last Seen"), "never");
    let said = line.typed(&["devices", "simulate", "dev-1", "07", "--port", "3"]);
    assert_ne!(line.device("dev-1", "Last Seen"), "never");
    for shown in ["uplink of dev-1 sent", "Decoder: \"port\" 3", "Fields: {\"n\":7}", "The message is valid", " fuel, "]
    {
        assert!(said.contains(shown), "{shown}: {said}");
    }
    let json = line.network.type_command(&["devices", "simulate", "dev-1", "07", "--port", "3", "-o", "json"], "");
    assert_eq!(String::from_utf8_lossy(&json.stderr), "Simulated uplink of dev-1 sent\n");
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    let log = serde_json::json!([{"function": "Decoder", "fields": ["\"port\"", "3"]}]);
    assert_eq!((&json["fields"]["n"], &json["logs"]), (&7.into(), &log));
    let (code, error) = line.refused(&["devices", "simulate", "dev-1", "00"], "");
    assert!(code != 0 && error.contains("published without fields") && error.contains("line 3"), "{code} {error}");
    line.network.stack.stop().await;
}

// Conformance: devices move: one, several, all that match
#[tokio::test(flavor = "multi_thread")]
async fn a_device_that_moves_already_does_not_stop_the_others() {
    let Some(redis) = RedisProcess::start() else { return };
    let line = CommandLine::on(Network::on(&redis, |_| ()).await);
    let rows: String = (1..=20).map(|number| format!("dev-{number:02},00000000000000{number:02}\n")).collect();
    line.run_with_input(&["devices", "import", "-"], &format!("dev_id,dev_eui\n{rows}"));
    line.typed(&["applications", "add", "live", "Live"]);
    line.typed(&["applications", "register"]);
    // As a handler leaves a device that is killed while it moves.
    let settings = RedisSettings { urls: vec![redis.url()], ..RedisSettings::default() };
    let store = Redis::connect(&settings, StoreClock::new(|| 0)).await.unwrap();
    let leaving = Key::new(&Tag::application("my-app").unwrap(), "handler/leaving/dev-01").unwrap();
    assert_eq!(store.commit(Batch::new().put(leaving, "{}")).await.unwrap(), Commit::Done);

    let moves = ["devices", "move", "--match", "dev-", "--app-id", "my-app", "--to", "live", "--yes"];
    let output = line.network.type_command(&moves, "");
    let said = String::from_utf8_lossy(&output.stdout);
    let advice = "device my-app:dev-01 is moving from one application to another: try again in a moment";
    assert!(said.contains(advice) && said.contains("Moved 19 of 20 devices to application live"), "{said}");
    assert!(complaint(&output).contains("1 device was not moved"), "{output:?}");
    assert_eq!(output.status.code(), Some(1));
    line.network.stack.stop().await;
}
