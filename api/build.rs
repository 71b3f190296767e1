//! Generates the messages and services of `proto/`, without needing `protoc`.

use std::{env, error::Error, fs, path::PathBuf};

use prost::Message as _;

/// The files of `proto/`; what they import is found from there.
const FILES: &[&str] = &["discovery.proto", "networkserver.proto"];

/// The part of ChirpStack's API that we call. Its package has the name of one of ours, so it is generated elsewhere.
const CHIRPSTACK: &str = "chirpstack/api.proto";

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
        .out_dir(chirpstack)
        .compile_fds(descriptors)?;
    Ok(())
}
