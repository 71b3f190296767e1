//! The entries of `[[bridge]]`: which of them exclude each other, and the settings beside them.

use std::path::Path;

use crate::harness::{airlock, complaint, printed, run, server_process::serve};

fn write(dir: &Path, sources: [&str; 2]) {
    let entry = |(number, source): (usize, &str)| {
        format!(
            "[[bridge]]\n{source}\n[[bridge.applications]]\napplication = '119e3472-d36a-4260-a167-b51f0bd2567{number}'\n\
             app_id = 'app-{number}'\n"
        )
    };
    let text: String = sources.into_iter().enumerate().map(entry).collect();
    std::fs::write(dir.join("airlock.toml"), text).unwrap();
}

/// Each would get a part of the other's events, and ignore it.
#[test]
fn entries_that_read_the_same_events_are_refused_however_their_addresses_are_written() {
    let dir = tempfile::tempdir().unwrap();
    for sources in [
        ["chirpstack.mqtt.url = 'mqtt://localhost:1'", "chirpstack.mqtt.url = 'mqtt://127.0.0.1:1'"],
        ["chirpstack.mqtt.url = 'mqtt://broker.invalid'", "chirpstack.mqtt.url = 'tcp://BROKER.invalid:1883/'"],
        ["chirpstack.redis.url = 'redis://localhost'", "chirpstack.redis.url = 'redis://127.0.0.1:6379'"],
    ] {
        write(dir.path(), sources);
        let error = complaint(&run(&mut serve(dir.path()), ""));
        assert!(error.contains("two entries of `bridge` read the same events"), "{sources:?}: {error}");
    }
    // These are two streams, and only then it matters that both lead to one application.
    let other = "chirpstack.redis = { url = 'redis://127.0.0.1', key_prefix = 'other:' }";
    write(dir.path(), ["chirpstack.redis.url = 'redis://localhost'", other]);
    let path = dir.path().join("airlock.toml");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replace("app-1", "app-0")).unwrap();
    let error = complaint(&run(&mut serve(dir.path()), ""));
    assert!(error.contains("`app-0` is in two entries of `bridge`"), "{error}");
}

/// The downlinks of the one would look for their devices in the other.
#[test]
fn two_applications_of_the_things_stack_cannot_be_one_here() {
    let dir = tempfile::tempdir().unwrap();
    let text = "[[bridge]]\nthings_stack.mqtt.url = 'mqtt://localhost:1'\nthings_stack.api.url = 'http://localhost:1'\n\
                things_stack.key = 'key'\n[[bridge.applications]]\napplication = 'app1@ttn'\napp_id = 'one'\n\
                [[bridge.applications]]\napplication = 'app2@ttn'\napp_id = 'one'\n";
    std::fs::write(dir.path().join("airlock.toml"), text).unwrap();
    let error = complaint(&run(&mut serve(dir.path()), ""));
    assert!(error.contains("has `one` for both `app1@ttn` and `app2@ttn`"), "{error}");
}

#[test]
fn a_variable_of_another_bridge_does_not_remove_them() {
    let dir = tempfile::tempdir().unwrap();
    let source = "chirpstack.mqtt.url = 'mqtt://localhost'";
    write(dir.path(), [source, source]);
    let mut command = airlock(dir.path());
    command.env("AIRLOCK_BRIDGE__CHIRPSTACK__MQTT__URL", "mqtt://elsewhere").args(["config", "print"]);
    let shown = printed(&run(&mut command, ""));
    assert!(shown.contains("mqtt://elsewhere") && shown.contains("app-0") && shown.contains("app-1"), "{shown}");
}
