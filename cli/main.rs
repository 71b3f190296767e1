//! The one binary: reads what was typed, does it, and says how it went.

use std::{io::Write, process::ExitCode};

use airlock::{args::Args, exit};
use clap::Parser;

fn main() -> ExitCode {
    match airlock::run(Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            if let Some(text) = exit::text(&error) {
                // Nobody is left to be told when standard error is closed.
                _ = writeln!(std::io::stderr(), "error: {text}");
            }
            exit::code(&error)
        }
    }
}
