//! Turns the compiled guest into `guest.wasm`. `build.sh` runs the steps in order.
#![allow(clippy::print_stdout, reason = "a command reports on standard output")]

mod call_graph;
mod charge;
mod check;
mod meter;
mod snapshot;
mod stub;

use anyhow::{Context, Result, bail};
use runtime::Engine;
use std::path::Path;
use std::{env, fs};

fn main() -> Result<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["stub", input, output] => step(input, output, stub::run),
        ["snapshot", input, output] => step(input, output, snapshot::run),
        ["meter", input, output] => step(input, output, meter::run),
        ["check", input] => {
            let report = check::run(&read(input)?).with_context(|| format!("{input} is not fit to be run"))?;
            println!("{report}");
            Ok(())
        }
        ["compile", input, output, counting] => {
            let [guest, counting_guest] = Engine::built_in_files(&read(input)?)?;
            write(output, &guest)?;
            write(counting, &counting_guest)
        }
        _ => bail!("expected `stub|snapshot|meter INPUT OUTPUT`, `check INPUT` or `compile INPUT OUTPUT COUNTING`"),
    }
}

fn step(input: &str, output: &str, run: fn(&[u8]) -> Result<Vec<u8>>) -> Result<()> {
    write(output, &run(&read(input)?)?)
}

fn write(path: &str, bytes: &[u8]) -> Result<()> {
    fs::write(path, bytes).with_context(|| format!("failed to write {path}"))
}

fn read(path: impl AsRef<Path>) -> Result<Vec<u8>> {
    let path = path.as_ref();
    fs::read(path).with_context(|| format!("failed to read {}", path.display()))
}
