//! Turns errors of PostgreSQL into texts for people.

use tokio_postgres::{Error as Cause, error::SqlState};
use types::Kind;

use super::Table;
use crate::Error;

/// Context of a query that failed.
pub(super) struct Fault<'a> {
    pub(super) server: &'a str,
    pub(super) table: &'a Table,
}

impl Fault<'_> {
    /// Returns the error of a table that cannot be read.
    pub(super) fn of_query(&self, cause: Cause) -> Error {
        let Self { server, table } = self;
        let (kind, text) = match cause.code() {
            Some(&SqlState::UNDEFINED_TABLE | &SqlState::INVALID_SCHEMA_NAME) => (
                Kind::NotFound,
                format!(
                    "{server} has no table `{table}`: ChirpStack's PostgreSQL integration creates `event_up`; use --table \
                     for another one"
                ),
            ),
            Some(&SqlState::UNDEFINED_COLUMN | &SqlState::UNDEFINED_FUNCTION | &SqlState::DATATYPE_MISMATCH) => {
                (Kind::Invalid, format!("the table `{table}` is not as ChirpStack 4 creates it: {}", message(&cause)))
            }
            Some(&SqlState::INSUFFICIENT_PRIVILEGE) => {
                (Kind::Denied, format!("this user may not read the table `{table}`: GRANT SELECT on it"))
            }
            Some(&SqlState::SYNTAX_ERROR | &SqlState::FEATURE_NOT_SUPPORTED) => (
                Kind::Unsupported,
                format!("{server} does not understand the query, is it PostgreSQL? {}", message(&cause)),
            ),
            Some(_) => (Kind::Internal, format!("{server} refuses the query: {}", message(&cause))),
            None => (Kind::Unavailable, format!("the connection to {server} was lost")),
        };
        Error::Postgres { kind, text, source: Some(cause) }
    }
}

/// Returns the error of a connection that cannot be made.
pub(super) fn while_connecting(server: &str, cause: Cause) -> Error {
    let (kind, text) = match cause.code() {
        Some(&SqlState::INVALID_PASSWORD) => (
            Kind::Unauthenticated,
            format!("{server} refuses the password: use PGPASSWORD or --password-file for the right one"),
        ),
        Some(&SqlState::INVALID_AUTHORIZATION_SPECIFICATION) => {
            (Kind::Unauthenticated, format!("{server} refuses this login: {}", message(&cause)))
        }
        Some(&SqlState::INVALID_CATALOG_NAME) => (Kind::NotFound, format!("{server} does not exist")),
        Some(_) => (Kind::Unavailable, format!("{server} refuses the connection: {}", message(&cause))),
        None if is_config(&cause) => {
            (Kind::Unauthenticated, format!("{server} wants a password: use PGPASSWORD or --password-file"))
        }
        None => {
            let reason = std::error::Error::source(&cause).map_or_else(|| cause.to_string(), ToString::to_string);
            // The text has all that the library says.
            let text = format!("cannot connect to {server}: {reason}");
            return Error::Postgres { kind: Kind::Unavailable, text, source: None };
        }
    };
    Error::Postgres { kind, text, source: Some(cause) }
}

/// Returns the error of a server that takes the connection and says nothing.
pub(super) fn silent(server: &str) -> Error {
    let text = format!("cannot connect to {server}: it does not answer, is it PostgreSQL?");
    Error::Postgres { kind: Kind::Unavailable, text, source: None }
}

/// Returns the error of a query that ended early, after `rows` rows.
pub(super) fn while_reading(server: &str, rows: u64, cause: Cause) -> Error {
    let text = match cause.code() {
        Some(_) => format!("{server} ended after {rows} rows: {}", message(&cause)),
        None => format!("the connection to {server} was lost after {rows} rows: run it again"),
    };
    Error::Postgres { kind: Kind::Unavailable, text, source: Some(cause) }
}

/// Returns true if the library lacks a setting, which is the password.
fn is_config(cause: &Cause) -> bool {
    cause.to_string().contains("invalid configuration")
}

/// Returns the server's own message, or else the library's.
fn message(cause: &Cause) -> String {
    cause.as_db_error().map_or_else(|| cause.to_string(), |error| error.message().to_owned())
}
