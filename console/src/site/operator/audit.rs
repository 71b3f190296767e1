//! The page of the audit log: all lines that are kept, with a search.

use askama::Template;
use axum::extract::Query;

use super::entry::AuditEntry;
use crate::{
    Error,
    console::ConsoleAddress,
    form::drafts::Fields,
    site::{
        failure::{Failure, Problem},
        page::{Frame, Page},
        viewer::{Operator, Sent},
    },
    status::AuditTail,
};

/// Maximum length of a text that is searched, in characters.
const SEARCH_CHARS_MAX: usize = 200;

#[derive(Template)]
#[template(path = "audit.html")]
pub(in crate::site) struct Show {
    frame: Frame,
    search: String,
    /// True if it does not begin with the newest of all events.
    is_part: bool,
    /// The reason why nothing is shown.
    unconfirmed: Option<Problem>,
    /// None where only the console runs, and while the login cannot be confirmed.
    events: Option<Events>,
}

/// Events of the audit log, the newest first.
#[derive(Default)]
pub(super) struct Events {
    /// The path of the audit file; none if there is none, or it cannot be read.
    pub(super) path: Option<String>,
    /// The reason why it cannot be read.
    pub(super) problem: Option<String>,
    pub(super) entries: Vec<AuditEntry>,
    /// The place from which the next page goes on; none if all lines were looked at.
    pub(super) next: Option<String>,
}

pub(in crate::site) async fn show(
    Operator { console, frame, unconfirmed, .. }: Operator,
    Query(fields): Query<Fields>,
) -> Result<Page<Show>, Failure> {
    let sent = Sent(fields);
    let search: String = sent.value("search").trim().chars().take(SEARCH_CHARS_MAX).collect();
    let before = sent.value("before");
    let events = match (console.status(), &*console.place) {
        _ if unconfirmed.is_some() => None,
        (Some(source), _) => Some(Events::from(source.audit(&search, before).await)),
        (None, ConsoleAddress::Alone { .. }) => None,
        (None, ConsoleAddress::WithAccount { .. }) => return Err(Error::Starting.into()),
    };
    let is_part = !search.is_empty() || !before.is_empty();
    Ok(Page::new(Show { frame, search, is_part, unconfirmed, events }))
}

impl Show {
    /// Says that nothing was found; empty if something was, or if nothing can be.
    fn nothing(&self) -> &'static str {
        match &self.events {
            Some(Events { path: Some(_), entries, next, .. }) if self.is_part && entries.is_empty() => match next {
                Some(_) => "None of the events that were looked at so far matches.",
                None => "There are no such events.",
            },
            _ => "",
        }
    }
}

impl From<AuditTail> for Events {
    fn from(audit: AuditTail) -> Self {
        match audit {
            AuditTail::NoFile => Self::default(),
            AuditTail::Unreadable(reason) => Self { problem: Some(reason), ..Self::default() },
            AuditTail::Lines { path, lines, next } => {
                let entries = lines.iter().map(|line| AuditEntry::of(line)).collect();
                Self { path: Some(path), entries, next, problem: None }
            }
        }
    }
}
