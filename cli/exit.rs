//! Exit codes and error texts: scripts can tell "no such thing" from "not allowed".

use std::{
    io::{self, ErrorKind},
    process::ExitCode,
};

use types::{Kind, Kinded};
use workbench::BadInput;

use crate::terminal::lines;

/// Any other failure.
const FAILURE: u8 = 1;
/// An argument, a setting or a value in a file is invalid; clap uses the same code.
const USAGE: u8 = 2;
const NOT_FOUND: u8 = 3;
/// Not logged in, or without the right.
const NOT_ALLOWED: u8 = 4;
/// A service, broker, database or file that the command needs cannot be used for now.
const UNAVAILABLE: u8 = 5;
/// Ended with Ctrl-C; shells report programs killed by SIGINT like this.
const INTERRUPTED: u8 = 130;
/// The reader of our output is gone; shells report programs killed by SIGPIPE like this.
const BROKEN_PIPE: u8 = 141;

/// Rows of a file that cannot be used, which have been reported.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BadRows {
    /// They were found before anything was done.
    #[error("{} cannot be used, so nothing was changed", rows(*.0))]
    Found(usize),
    /// A service refused them.
    #[error("{} cannot be used; all others are imported", rows(*.0))]
    Refused(usize),
    /// A service would refuse them, as far as a dry run can tell.
    #[error("{} would be refused; without --dry-run, all others are imported", rows(*.0))]
    WouldBeRefused(usize),
}

/// Nobody is logged in to the server, or the login has ended.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct NotLoggedIn(pub(crate) String);

/// The command was ended with Ctrl-C before all was done.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Interrupted(pub(crate) String);

/// A refusal by the command itself, with the kind that decides its exit code.
#[derive(Debug, thiserror::Error)]
#[error("{text}")]
pub(crate) struct CommandError {
    kind: Kind,
    text: String,
}

impl CommandError {
    /// An argument or an input that is not valid.
    pub(crate) fn invalid(text: impl Into<String>) -> Self {
        Self { kind: Kind::Invalid, text: text.into() }
    }

    /// Something that does not exist.
    pub(crate) fn not_found(text: impl Into<String>) -> Self {
        Self { kind: Kind::NotFound, text: text.into() }
    }

    /// A service that cannot be used for now.
    pub(crate) fn unavailable(text: impl Into<String>) -> Self {
        Self { kind: Kind::Unavailable, text: text.into() }
    }
}

impl Kinded for CommandError {
    fn kind(&self) -> Kind {
        self.kind
    }
}

fn rows(count: usize) -> String {
    format!("{count} {}", if count == 1 { "row" } else { "rows" })
}

/// The text of an error, without control characters; `None` when the reader of our output is gone.
pub(crate) fn text(error: &anyhow::Error) -> Option<String> {
    (!is_broken_pipe(error)).then(|| lines(&chain(error)))
}

/// The texts of an error and its causes. The causes of a client's error are those of libraries, for programmers.
pub(crate) fn chain(error: &anyhow::Error) -> String {
    let mut texts = Vec::new();
    for cause in error.chain() {
        texts.push(cause.to_string());
        if let Some(error) = cause.downcast_ref::<client::Error>() {
            texts.extend(error.reason());
            break;
        }
    }
    texts.join(": ")
}

pub(crate) fn code(error: &anyhow::Error) -> ExitCode {
    if is_broken_pipe(error) {
        return ExitCode::from(BROKEN_PIPE);
    }
    if error.chain().any(|cause| cause.is::<BadInput>() || cause.is::<BadRows>()) {
        return ExitCode::from(USAGE);
    }
    if error.is::<NotLoggedIn>() {
        return ExitCode::from(NOT_ALLOWED);
    }
    if error.is::<Interrupted>() {
        return ExitCode::from(INTERRUPTED);
    }
    ExitCode::from(error.chain().find_map(kind).map_or(FAILURE, code_of))
}

/// Returns true if we failed to write to a closed pipe. A broken network connection is a client's error instead.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == ErrorKind::BrokenPipe)
}

/// The kind of an error from a service, or from one that starts in this process.
fn kind(cause: &(dyn std::error::Error + 'static)) -> Option<Kind> {
    fn of<E: Kinded + 'static>(cause: &(dyn std::error::Error + 'static)) -> Option<Kind> {
        cause.downcast_ref::<E>().map(Kinded::kind)
    }
    let of_store = |cause: &(dyn std::error::Error + 'static)| match cause.downcast_ref::<store::Error>()? {
        store::Error::Invalid { .. } => Some(Kind::Invalid),
        store::Error::Unavailable { .. } => Some(Kind::Unavailable),
        _ => None,
    };
    let of_history = |cause: &(dyn std::error::Error + 'static)| match cause.downcast_ref::<history::Error>()? {
        history::Error::File { source, .. } if source.kind() == ErrorKind::NotFound => Some(Kind::NotFound),
        error => Some(error.kind()),
    };
    [
        of::<CommandError>,
        of::<client::Error>,
        of::<account::Error>,
        of::<server::Error>,
        of::<bridge::Error>,
        of::<replay::Error>,
        of_store,
        of_history,
    ]
    .into_iter()
    .find_map(|of| of(cause))
}

fn code_of(kind: Kind) -> u8 {
    match kind {
        Kind::Invalid => USAGE,
        Kind::NotFound => NOT_FOUND,
        Kind::Unauthenticated | Kind::Denied => NOT_ALLOWED,
        Kind::Unavailable | Kind::Timeout => UNAVAILABLE,
        _ => FAILURE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_texts_have_no_control_characters() {
        let error = anyhow::anyhow!("1 | a\u{1b}[2Jb\n  | ^").context("refused");
        assert_eq!(text(&error).as_deref(), Some("refused: 1 | a\u{fffd}[2Jb\n  | ^"));
    }

    #[test]
    fn work_that_was_interrupted_ends_as_shells_expect() {
        let error = anyhow::Error::from(Interrupted("stopped after 2 uplinks".to_owned()));
        assert_eq!((text(&error).as_deref(), code(&error)), (Some("stopped after 2 uplinks"), ExitCode::from(130)));
    }

    #[test]
    fn a_script_can_tell_what_failed_from_what_cannot_be_reached() {
        let of_kind = |kind| code(&anyhow::Error::new(CommandError { kind, text: String::new() }).context("failed"));
        for (kind, expected) in [
            (Kind::Invalid, USAGE),
            (Kind::NotFound, NOT_FOUND),
            (Kind::Denied, NOT_ALLOWED),
            (Kind::Unavailable, UNAVAILABLE),
            (Kind::Timeout, UNAVAILABLE),
            (Kind::Internal, FAILURE),
        ] {
            assert_eq!(of_kind(kind), ExitCode::from(expected), "{kind:?}");
        }
        assert_eq!(code(&anyhow::anyhow!("newly failing: 1 uplink")), ExitCode::from(FAILURE));
        let store = store::Error::Unavailable { what: "connect to Redis", source: None };
        assert_eq!(code(&anyhow::Error::new(store)), ExitCode::from(UNAVAILABLE));
        for (source, expected) in [(ErrorKind::NotFound, NOT_FOUND), (ErrorKind::PermissionDenied, UNAVAILABLE)] {
            let history = history::Error::File { what: "read", path: "history".into(), source: source.into() };
            assert_eq!(code(&anyhow::Error::new(history)), ExitCode::from(expected), "{source}");
        }
    }

    #[test]
    fn only_our_own_broken_pipe_is_silent() {
        let of_kind = |kind: ErrorKind| anyhow::Error::from(io::Error::from(kind)).context("cannot write");
        assert_eq!(text(&of_kind(ErrorKind::BrokenPipe)), None);
        assert_eq!(code(&of_kind(ErrorKind::BrokenPipe)), ExitCode::from(BROKEN_PIPE));
        assert!(text(&of_kind(ErrorKind::StorageFull)).is_some());
        let other =
            anyhow::Error::new(BadInput::File { file: "x".to_owned(), source: io::Error::from(ErrorKind::BrokenPipe) });
        assert!(text(&other).is_some());
    }
}
