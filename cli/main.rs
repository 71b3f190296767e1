//! The `airlock` program.

use std::process::ExitCode;

fn main() -> ExitCode {
    airlock::run()
}
