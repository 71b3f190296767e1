//! Generates the messages and services of `proto/`, without needing `protoc`.

use std::{
    env,
    error::Error,
    fs,
    path::{Path, PathBuf},
};

use prost::Message as _;

/// The files of `proto/`; what they import is found from there.
const FILES: &[&str] = &[
    "device.proto",
    "discovery.proto",
    "downlink.proto",
    "history.proto",
    "networkserver.proto",
    "uplink.proto",
    "version.proto",
];

/// The part of ChirpStack's API that we call. Its package has the name of one of ours, so it is generated elsewhere.
const CHIRPSTACK: &str = "chirpstack/api.proto";

/// ChirpStack's events, which are protocol buffers in its Redis stream, and JSON over MQTT.
const CHIRPSTACK_EVENTS: &str = "chirpstack/integration.proto";

/// Messages that hold keys: their `Debug` is written by hand, in `src/debug.rs`.
const SECRET: &[&str] = &[".handler.Application", ".lorawan.Device", ".lorawan.ActivationMetadata"];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=proto");
    let descriptors = protox::compile(FILES, ["proto"])?;
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or("OUT_DIR is not set: build with cargo")?);
    fs::write(out.join("descriptors.bin"), descriptors.encode_to_vec())?;
    tonic_prost_build::configure().btree_map(".").skip_debug(SECRET).compile_fds(descriptors)?;
    let chirpstack = out.join("chirpstack");
    fs::create_dir_all(&chirpstack)?;
    let descriptors = protox::compile([CHIRPSTACK], ["proto"])?;
    tonic_prost_build::configure()
        .btree_map(".")
        .skip_debug([".api.Device"])
        .out_dir(&chirpstack)
        .compile_fds(descriptors)?;
    chirpstack_events(&chirpstack)
}

/// Generates messages with the JSON that ChirpStack's own have: it writes what is zero in events, but not in what they
/// say about gateways.
fn chirpstack_events(out: &Path) -> Result<(), Box<dyn Error>> {
    let descriptors = protox::compile([CHIRPSTACK_EVENTS], ["proto"])?;
    let bytes = descriptors.encode_to_vec();
    tonic_prost_build::configure()
        .btree_map(".")
        .skip_debug([".chirpstack.gw.KeyEnvelope"])
        .compile_well_known_types(true)
        .extern_path(".google.protobuf", "::pbjson_types")
        .out_dir(out)
        .compile_fds(descriptors)?;
    let json = || {
        let mut json = pbjson_build::Builder::new();
        json.btree_map(["."]).ignore_unknown_fields().extern_path(".google.protobuf", "::pbjson_types").out_dir(out);
        json
    };
    json().register_descriptors(&bytes)?.emit_fields().build(&[".chirpstack.integration"])?;
    json().register_descriptors(&bytes)?.build(&[".chirpstack.gw"])?;
    Ok(())
}
