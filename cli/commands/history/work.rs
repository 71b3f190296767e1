//! Long work of a handler on stored messages: its reports are added up, it goes on after a lost connection, and it ends
//! with Ctrl-C.

use std::{
    io::{IsTerminal, Write, stderr},
    time::Duration,
};

use anyhow::{Context, anyhow};
use api::{
    discovery::Announcement,
    rest::handler::{DecodeReport, SendReport},
};
use client::history::Reports;
use serde::de::DeserializeOwned;
use tokio::{
    signal::unix::{SignalKind, signal},
    time::sleep,
};
use types::{AppId, Credential};

use crate::{
    command_context::CommandContext,
    exit::{CommandError, Interrupted},
    terminal::warn,
};

/// Maximum number of attempts without any report in between.
const ATTEMPTS_MAX: usize = 5;
const RETRY_WAIT: Duration = Duration::from_secs(3);

/// Work that a handler does.
pub(super) struct Work<'a> {
    pub(super) context: &'a CommandContext,
    pub(super) app_id: &'a AppId,
    /// The items of the work, such as `uplinks`.
    pub(super) noun: &'static str,
    /// Message after which it begins; empty for the first message.
    pub(super) after: String,
    /// True if the work can go on where it was interrupted.
    pub(super) is_resumable: bool,
}

/// A handler's report on its work since the report before.
pub(super) trait Report: DeserializeOwned {
    /// Where to go on, and why it ended too early; each is empty if there is nothing to say.
    fn next_and_error(&self) -> (&str, &str);
    /// Returns true if another attempt may go on.
    fn is_temporary(&self) -> bool;
}

/// The sum of all reports.
pub(super) trait Sum<R> {
    fn add(&mut self, report: R);
    fn examined(&self) -> u64;
    fn is_done(&self) -> bool;
}

/// An end of the reports before the last one.
struct EarlyEnd {
    reason: String,
    is_temporary: bool,
}

impl Work<'_> {
    /// Has the handler do all of it, and adds up its reports. `start` asks for the work after a message. An error, also
    /// for Ctrl-C, leaves the sum of the reports before it.
    pub(super) async fn finish<R: Report>(
        mut self,
        sum: &mut impl Sum<R>,
        start: impl AsyncFn(&Announcement, &Credential, &str) -> client::Result<Reports<R>>,
    ) -> anyhow::Result<()> {
        let mut interrupts = signal(SignalKind::interrupt()).context("cannot wait for Ctrl-C")?;
        tokio::select! {
            done = self.attempt(sum, start) => done,
            _ = interrupts.recv() => {
                self.clear_progress();
                Err(Interrupted(self.stopped(sum.examined(), "")).into())
            }
        }
    }

    /// Asks for the work until all of it is done, or cannot go on.
    async fn attempt<R: Report>(
        &mut self,
        sum: &mut impl Sum<R>,
        start: impl AsyncFn(&Announcement, &Credential, &str) -> client::Result<Reports<R>>,
    ) -> anyhow::Result<()> {
        let credential = self.context.credential_for(self.app_id).await?;
        let announcement = self.context.announcement().await?;
        let mut attempts = 1;
        loop {
            let before = sum.examined();
            let ended = match start(&announcement, &credential, &self.after).await {
                Ok(mut reports) => self.follow(&mut reports, sum).await,
                // A handler that restarts may be there again soon.
                Err(error) if before > 0 || attempts > 1 => Some(EarlyEnd::temporarily(&error)),
                Err(error) => return Err(error.into()),
            };
            let Some(EarlyEnd { reason, is_temporary }) = ended else { return Ok(()) };
            attempts = if sum.examined() > before { 1 } else { attempts + 1 };
            if !is_temporary || !self.is_resumable || attempts > ATTEMPTS_MAX {
                let text = self.stopped(sum.examined(), &format!(", because {reason}"));
                return Err(if is_temporary { CommandError::unavailable(text).into() } else { anyhow!(text) });
            }
            warn(format_args!("trying again: {reason}"))?;
            sleep(RETRY_WAIT).await;
        }
    }

    /// Adds up reports until the last one, and notes where to go on. Returns why they ended before that.
    async fn follow<R: Report>(&mut self, reports: &mut Reports<R>, sum: &mut impl Sum<R>) -> Option<EarlyEnd> {
        let ended = loop {
            if sum.is_done() {
                break None;
            }
            match reports.next().await {
                Ok(Some(report)) => {
                    let (next, error) = report.next_and_error();
                    if !error.is_empty() {
                        break Some(EarlyEnd { reason: error.to_owned(), is_temporary: report.is_temporary() });
                    }
                    if !next.is_empty() {
                        next.clone_into(&mut self.after);
                    }
                    sum.add(report);
                }
                Ok(None) => break Some(EarlyEnd::temporarily(&"the connection was lost")),
                Err(error) => break Some(EarlyEnd::temporarily(&error)),
            }
            if self.shows_progress() {
                // With standard error closed, there is nobody to tell.
                _ = write!(stderr(), "\r{} {}", sum.examined(), self.noun);
            }
        };
        self.clear_progress();
        ended
    }

    fn shows_progress(&self) -> bool {
        self.context.output.is_table() && stderr().is_terminal()
    }

    fn clear_progress(&self) {
        if self.shows_progress() {
            _ = write!(stderr(), "\r\x1b[K");
        }
    }

    /// Describes how much was done, and how to go on if that is possible.
    fn stopped(&self, examined: u64, why: &str) -> String {
        let is_end = !self.is_resumable || self.after.is_empty();
        let after = if is_end { "" } else { &format!(": go on with --after {}", self.after) };
        format!("stopped after {examined} {}{why}{after}", self.noun)
    }
}

impl EarlyEnd {
    fn temporarily(reason: &impl ToString) -> Self {
        Self { reason: reason.to_string(), is_temporary: true }
    }
}

impl Report for DecodeReport {
    fn next_and_error(&self) -> (&str, &str) {
        (&self.next, &self.error)
    }

    fn is_temporary(&self) -> bool {
        self.temporary
    }
}

impl Report for SendReport {
    fn next_and_error(&self) -> (&str, &str) {
        (&self.next, &self.error)
    }

    fn is_temporary(&self) -> bool {
        self.temporary
    }
}
