//! `airlock demo`.

use std::{
    fs,
    io::{BufRead, BufReader},
    process::{Command, Stdio},
};

use rustix::process::{Pid, Signal, kill_process};

use crate::harness::{airlock, complaint, inherit_environment, printed, run};

/// The command line is in the PATH, as it is once installed.
#[test]
fn the_commands_that_it_prints_are_short_and_work() {
    let dir = tempfile::tempdir().unwrap();
    let binary = std::path::Path::new(env!("CARGO_BIN_EXE_airlock"));
    let path = format!("{}:{}", binary.parent().unwrap().display(), std::env::var_os("PATH").unwrap().display());
    let profile = dir.path().join(".config/airlock/demo.toml");
    // Of a demo that was killed.
    fs::create_dir_all(profile.parent().unwrap()).unwrap();
    fs::write(&profile, "# Written by a command, for as long as it runs.\ndata_dir = \"/nowhere/at/all\"\n").unwrap();
    let mut demo = airlock(dir.path());
    let mut demo = demo.arg("demo").env("PATH", &path).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(demo.stdout.take().unwrap()).lines().map_while(Result::ok);
    assert!(lines.any(|line| line.starts_with("Uplinks continue")));
    let commands: Vec<_> = lines.by_ref().skip(1).take_while(|line| !line.trim().is_empty()).collect();
    assert_eq!(commands.len(), 6, "{commands:?}");
    for command in &commands[..4] {
        assert!(command.len() <= 80 && command.contains("airlock --profile demo "), "{command}");
        let mut shell = Command::new("sh");
        shell.args(["-c", command]).current_dir(dir.path());
        inherit_environment(&mut shell, &airlock(dir.path()));
        printed(&run(shell.env("PATH", &path), ""));
    }
    assert!(commands[5].len() <= 80, "{}", commands[5]);
    kill_process(Pid::from_child(&demo), Signal::TERM).unwrap();
    assert!(lines.any(|line| line.starts_with("Stopped")) && demo.wait().unwrap().success());
    assert!(!profile.exists());
}

#[test]
fn shows_the_requested_number_of_uplinks() {
    let dir = tempfile::tempdir().unwrap();
    // No directory for profiles can be made.
    fs::write(dir.path().join(".config"), "").unwrap();
    let out = printed(&run(airlock(dir.path()).args(["demo", "--count", "6"]), ""));
    let uplinks: Vec<_> = out.lines().filter(|line| line.contains(" fuel")).collect();
    assert_eq!(uplinks.len(), 6, "{out}");
    for device in ["cold-room", "greenhouse", "water-meter"] {
        assert_eq!(uplinks.iter().filter(|line| line.contains(device)).count(), 2, "{out}");
    }
    assert!(out.contains("dew_point") && out.contains("6 uplinks arrived"), "{out}");
}

#[test]
fn runs_a_decoder_of_the_user() {
    let dir = tempfile::tempdir().unwrap();
    let decoder = dir.path().join("mine.js");
    fs::write(&decoder, "function decodeUplink(input) { return { data: { sum: input.bytes[0] + input.fPort } } }")
        .unwrap();
    let arguments = ["demo", "--count", "2", "--payload", "0a ff", "--port", "5", "--decoder"];
    let out = printed(&run(airlock(dir.path()).args(arguments).arg(&decoder), ""));
    assert_eq!(out.matches(r#"{"sum":15}"#).count(), 2, "{out}");
}

#[test]
fn plays_a_chirpstack_server_and_says_how_to_use_ones_own() {
    let dir = tempfile::tempdir().unwrap();
    let binary = std::path::Path::new(env!("CARGO_BIN_EXE_airlock"));
    let path = format!("{}:{}", binary.parent().unwrap().display(), std::env::var_os("PATH").unwrap().display());
    let out = printed(&run(airlock(dir.path()).env("PATH", path).args(["demo", "--chirpstack", "--count", "8"]), ""));
    let uplinks: Vec<_> = out.lines().filter(|line| line.contains(" µs, ") && line.ends_with(" fuel")).collect();
    assert_eq!(uplinks.len(), 8, "{out}");
    for (device, member) in
        [("Greenhouse", "temperature"), ("Tank", "level"), ("Water meter", "litres"), ("Front door", "openings")]
    {
        let of_device = uplinks.iter().filter(|line| line.contains(device) && line.contains(member));
        assert_eq!(of_device.count(), 2, "{out}");
    }
    let (_, steps) = out.split_once("The same with your own ChirpStack").unwrap();
    assert!(steps.lines().all(|line| line.chars().count() <= 80), "{steps}");
    assert!(
        steps.contains("\n  airlock bridge chirpstack --shadow \\\n    --mqtt")
            && out.contains("8 uplinks were decoded"),
        "{out}"
    );
    let arguments = ["demo", "--chirpstack", "--decoder", "x.js", "--payload", "00"];
    let error = complaint(&run(airlock(dir.path()).args(arguments), ""));
    assert!(error.contains("cannot be used with"), "{error}");
}

#[test]
fn fails_when_the_decoder_fails() {
    let dir = tempfile::tempdir().unwrap();
    let decoder = dir.path().join("mine.js");
    fs::write(&decoder, "function Decoder(bytes) {\n  return bytes.no.such;\n}").unwrap();
    let arguments = ["demo", "--count", "2", "--payload", "00", "--decoder"];
    let output = run(airlock(dir.path()).args(arguments).arg(&decoder), "");
    let out = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(out.contains("error: Unable to decode payload fields") && out.contains("line 2"), "{out}");
    assert!(complaint(&output).contains("2 of 2 uplinks did not arrive with the right fields"));
}

#[test]
fn refuses_invalid_scripts_and_payloads() {
    let dir = tempfile::tempdir().unwrap();
    let decoder = dir.path().join("mine.js");
    fs::write(&decoder, "function Decoder(bytes) {\n  return {;\n}").unwrap();
    let mut command = airlock(dir.path());
    let error = complaint(&run(command.args(["demo", "--payload", "00", "--decoder"]).arg(&decoder), ""));
    assert!(error.contains("the decoder cannot be loaded (line 2, column 11)"), "{error}");
    let mut command = airlock(dir.path());
    let error = complaint(&run(command.args(["demo", "--payload", "0g", "--decoder"]).arg(&decoder), ""));
    assert!(error.contains("hexadecimal"), "{error}");
}
