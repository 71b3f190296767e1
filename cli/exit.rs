//! What the exit code says about a failure: scripts can tell "no such thing" from "not allowed".

use std::process::ExitCode;

use types::{Kind, Kinded};

use crate::{check::BadInput, terminal::lines};

/// Something went wrong.
const FAILURE: u8 = 1;
/// What was typed, or a value in it, is not valid; clap uses the same.
const USAGE: u8 = 2;
/// There is no such thing.
const NOT_FOUND: u8 = 3;
/// Not logged in, or without the right.
const NOT_ALLOWED: u8 = 4;

/// The text of an error; what others wrote into it cannot steer the terminal.
pub fn text(error: &anyhow::Error) -> String {
    lines(&format!("{error:#}"))
}

/// The exit code for an error.
pub fn code(error: &anyhow::Error) -> ExitCode {
    if error.chain().any(|cause| cause.downcast_ref::<BadInput>().is_some()) {
        return ExitCode::from(USAGE);
    }
    let refused = error.chain().find_map(|cause| cause.downcast_ref::<client::Error>());
    ExitCode::from(refused.map_or(FAILURE, |refused| of(refused.kind())))
}

fn of(kind: Kind) -> u8 {
    match kind {
        Kind::Invalid => USAGE,
        Kind::NotFound => NOT_FOUND,
        Kind::Unauthenticated | Kind::Denied => NOT_ALLOWED,
        _ => FAILURE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_wrote_into_an_error_is_inert_line_by_line() {
        let error = anyhow::anyhow!("1 | a\u{1b}[2Jb\n  | ^").context("refused");
        assert_eq!(text(&error), "refused: 1 | a\u{fffd}[2Jb\n  | ^");
    }
}
