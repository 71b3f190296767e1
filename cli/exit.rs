//! What the exit code says about a failure: scripts can tell "no such thing" from "not allowed".

use std::{
    io::{self, ErrorKind},
    process::ExitCode,
};

use types::{Kind, Kinded};

use crate::{codec_check::BadInput, terminal::lines};

/// Something went wrong.
const FAILURE: u8 = 1;
/// What was typed, or a value in it, is not valid; clap uses the same.
const USAGE: u8 = 2;
/// There is no such thing.
const NOT_FOUND: u8 = 3;
/// Not logged in, or without the right.
const NOT_ALLOWED: u8 = 4;
/// Whoever read the output went away; shells say this of programs that a closed pipe ended.
const READER_GONE: u8 = 141;

/// The text of an error, if there is somebody to read it; what others wrote into it cannot steer the terminal.
pub fn text(error: &anyhow::Error) -> Option<String> {
    (!is_reader_gone(error)).then(|| lines(&format!("{error:#}")))
}

/// The exit code for an error.
pub fn code(error: &anyhow::Error) -> ExitCode {
    if is_reader_gone(error) {
        return ExitCode::from(READER_GONE);
    }
    if error.chain().any(|cause| cause.downcast_ref::<BadInput>().is_some()) {
        return ExitCode::from(USAGE);
    }
    ExitCode::from(error.chain().find_map(kind).map_or(FAILURE, of))
}

/// Whether our own writing met a closed pipe. What a client met on the network is an error of the client.
fn is_reader_gone(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == ErrorKind::BrokenPipe)
}

/// What kind of refusal it was, by a service or by the account service in this process.
fn kind(cause: &(dyn std::error::Error + 'static)) -> Option<Kind> {
    let by_service = cause.downcast_ref::<client::Error>().map(Kinded::kind);
    by_service.or_else(|| cause.downcast_ref::<account::Error>().map(Kinded::kind))
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
        assert_eq!(text(&error).as_deref(), Some("refused: 1 | a\u{fffd}[2Jb\n  | ^"));
    }

    #[test]
    fn only_a_closed_pipe_of_our_own_is_no_error() {
        let of_kind = |kind: ErrorKind| anyhow::Error::from(io::Error::from(kind)).context("cannot write");
        assert_eq!(text(&of_kind(ErrorKind::BrokenPipe)), None);
        assert_eq!(code(&of_kind(ErrorKind::BrokenPipe)), ExitCode::from(READER_GONE));
        assert!(text(&of_kind(ErrorKind::StorageFull)).is_some());
        let elsewhere =
            anyhow::Error::new(BadInput::File { file: "x".to_owned(), source: io::Error::from(ErrorKind::BrokenPipe) });
        assert!(text(&elsewhere).is_some());
    }
}
