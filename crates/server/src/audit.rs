//! The audit log: one line for each security-relevant event, with the log target `audit`.
//!
//! It covers logins, passwords, sessions, consents, codes, grants, clients, keys, rights, announcements and refused
//! attempts. With `telemetry.audit_file` the lines are also written to a file of their own. A change that must be in
//! that file starts with [`AuditLog::change`], which refuses it while the file cannot be written, and leaves a line
//! however it ends. Everything else that is recorded changes no rights, and goes on without the file. Refusals are counted
//! apart, so that no flood of them hides a login.

mod change;
mod file;
mod line;
mod sources;
mod tail;

use std::{
    fmt::Display,
    io,
    net::IpAddr,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use metrics::{counter, describe_counter, describe_gauge, gauge};
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;
use tracing::{Subscriber, level_filters::LevelFilter};
use tracing_subscriber::{Layer, filter::Targets, registry::LookupSpan};
use types::{Clock, Kind, Kinded};

pub use self::{
    change::Change,
    line::visible,
    tail::{AuditPlace, AuditQuery, FoundLines, find_lines},
};
use self::{
    file::AuditFile,
    line::escaped,
    sources::{Class, Classes, LeftOut},
};
use crate::{
    Error,
    rate_limit::{LocalRateLimiter, RateLimitExceeded, rate_limit_address},
    telemetry::{Health, TelemetrySettings},
};

/// The target of security events.
const TARGET: &str = "audit";
/// Interval at which left-out events are reported, and a file that could not be written is tried again.
const INTERVAL: Duration = Duration::from_secs(10);
const LEFT_OUT: &str = "airlock_audit_left_out_total";
const WRITABLE: &str = "airlock_audit_writable";

/// The audit log of a process. Cheap to clone.
#[derive(Clone)]
pub struct AuditLog(Arc<Shared>);

struct Shared {
    file: Option<Mutex<AuditFile>>,
    /// True if the last attempt to write the file failed.
    is_failing: AtomicBool,
    sources: Mutex<Classes>,
    /// The changes of each actor.
    limiter: LocalRateLimiter<String>,
    clock: Arc<dyn Clock>,
    /// Told about each change.
    changes: Notify,
}

/// Reasons for refusing a change that must be audited.
#[derive(Clone, Debug, thiserror::Error)]
pub enum AuditError {
    /// The file cannot be written.
    #[error(
        "the audit log cannot be written ({reason}), so nothing was changed: try again when the operator has made room \
         for it, or has made its file writable"
    )]
    Unwritable {
        /// The system's error.
        reason: String,
    },
    /// The caller makes so many changes that the older ones would soon be gone from the file.
    #[error("too many changes: try again in {} s", .0.wait_s)]
    TooManyChanges(RateLimitExceeded),
}

impl AuditLog {
    /// Opens the file that the settings name, if any.
    pub fn open(settings: &TelemetrySettings, clock: Arc<dyn Clock>) -> Result<Self, Error> {
        let open = |path: &Path| {
            AuditFile::open(path, settings.audit_file_bytes_max, settings.audit_files_max)
                .map_err(|source| Error::File { action: "write", path: path.to_owned(), source })
        };
        let file = settings.audit_file.as_deref().map(open).transpose()?;
        Ok(Self::new(file, settings, clock))
    }

    /// Without a file: events are only in the log.
    pub fn without_file(clock: Arc<dyn Clock>) -> Self {
        Self::new(None, &TelemetrySettings::default(), clock)
    }

    fn new(file: Option<AuditFile>, settings: &TelemetrySettings, clock: Arc<dyn Clock>) -> Self {
        let (file, is_failing) = (file.map(Mutex::new), AtomicBool::new(false));
        let sources = Mutex::new(Classes::new(settings.audit_events_per_minute));
        let limiter = LocalRateLimiter::new("changes", settings.audit_changes, clock.clone());
        Self(Arc::new(Shared { file, is_failing, sources, limiter, clock, changes: Notify::new() }))
    }

    /// Records an event of `actor` that is no change that must be audited.
    ///
    /// If an actor causes too many events in a minute, further ones are counted only.
    pub fn note(&self, event: &'static str, actor: &dyn Display, object: &dyn Display) {
        self.note_in((Class::Other, &actor.to_string()), event, actor, object);
    }

    /// Records a refusal to a known actor.
    pub fn note_refusal(&self, event: &'static str, actor: &dyn Display, object: &dyn Display) {
        self.note_in((Class::Refusal, &actor.to_string()), event, actor, object);
    }

    /// Records a refusal to an address. An IPv6 network counts as one source.
    pub fn note_from(&self, from: IpAddr, event: &'static str, object: &dyn Display) {
        self.note_in((Class::Refusal, &rate_limit_address(from)), event, &from, object);
    }

    /// Records a refusal to an `actor` that a request only claims: the refusals of `source` are counted together.
    pub fn note_of(&self, source: &str, event: &'static str, actor: &dyn Display, object: &dyn Display) {
        self.note_in((Class::Refusal, source), event, actor, object);
    }

    fn note_in(&self, (class, source): (Class, &str), event: &'static str, actor: &dyn Display, object: &dyn Display) {
        let admitted = self.0.sources.lock().admit(class, source, self.0.clock.now());
        match admitted {
            true => self.write(event, actor, object),
            false => counter!(LEFT_OUT).increment(1),
        }
    }

    /// Waits for a change, or returns at once if there was one since the last call. For one caller.
    pub async fn changed(&self) {
        self.0.changes.notified().await;
    }

    /// Adds the state of the file to the readiness checks and the metrics.
    pub fn report_to(&self, health: &Health) {
        describe_counter!(
            LEFT_OUT,
            "Security events that are not in the audit file: their source had too many, or the file could not be written"
        );
        if self.0.file.is_none() {
            return;
        }
        describe_gauge!(
            WRITABLE,
            "Whether the audit file can be written: 1 or 0. While it cannot, changes are refused"
        );
        // The result sets the metric.
        _ = self.check();
        let audit = self.clone();
        health.add("audit", move || {
            let checked = audit.check();
            async move { checked.map_err(|error| error.to_string()) }
        });
    }

    /// Reports the events that were left out, and writes the lines that wait for the file; runs until it is dropped.
    pub async fn run(self) {
        loop {
            tokio::time::sleep(INTERVAL).await;
            self.write_ended();
        }
    }

    /// Reports every event that was left out so far. For the end of the process.
    pub fn finish(&self) {
        let all = self.0.sources.lock().take_all();
        self.write_left_out(all);
        // The outcome is reported by the check itself.
        _ = self.check();
        self.write_lost();
    }

    /// Writes the events to the file, whatever the level of the log. Part of the process's subscriber.
    ///
    /// All line breaks in values are escaped, so none can forge an entry.
    pub fn layer<S: Subscriber + for<'a> LookupSpan<'a>>(&self) -> Option<impl Layer<S> + use<S>> {
        self.0.file.as_ref()?;
        let audit = self.clone();
        let lines = tracing_subscriber::fmt::layer().json().flatten_event(true).log_internal_errors(false);
        let lines = lines.with_writer(move || Lines(audit.clone()));
        Some(lines.with_filter(Targets::new().with_target(TARGET, LevelFilter::INFO)))
    }

    /// `actor` and `object` must be parsed values, so that clients cannot write text of their choice.
    fn write(&self, event: &'static str, actor: &dyn Display, object: &dyn Display) {
        tracing::info!(target: TARGET, event, %actor, %object);
        self.report_written();
    }

    /// Reports failures of the file's layer to write, if any.
    fn report_written(&self) {
        let failure = self.file().and_then(|file| file.failure());
        self.report(failure.as_deref());
    }

    /// Reports events left out in minutes that have passed, and tries a failing file again.
    fn write_ended(&self) {
        let ended = self.0.sources.lock().take_ended(self.0.clock.now());
        self.write_left_out(ended);
        // The outcome is reported by the check itself.
        _ = self.check();
        self.write_lost();
    }

    /// Reports the number of lines that the file lacks because too many waited for it.
    fn write_lost(&self) {
        let lost = self.file().map_or(0, |mut file| file.take_lost());
        if lost > 0 {
            counter!(LEFT_OUT).increment(lost);
            self.write("events left out", &"audit file", &format_args!("{lost} while the file could not be written"));
        }
    }

    fn write_left_out(&self, all: Vec<LeftOut>) {
        for LeftOut { source, count } in all {
            self.write("events left out", &source, &format_args!("{count} more of this source within a minute"));
        }
    }

    fn check(&self) -> Result<(), AuditError> {
        let Some(mut file) = self.file() else { return Ok(()) };
        let failure = file.check();
        drop(file);
        self.report(failure.as_deref());
        failure.map_or(Ok(()), |reason| Err(AuditError::Unwritable { reason }))
    }

    /// Sets the metric, and logs when the file begins or ceases to fail.
    fn report(&self, failure: Option<&str>) {
        if self.0.file.is_none() {
            return;
        }
        gauge!(WRITABLE).set(if failure.is_some() { 0.0 } else { 1.0 });
        let did_fail = self.0.is_failing.swap(failure.is_some(), Ordering::Relaxed);
        match failure {
            Some(reason) if !did_fail => tracing::error!(
                reason,
                "failed to write the audit file: changes are refused until it can be written; make room on its disk"
            ),
            None if did_fail => tracing::info!("the audit file can be written again"),
            _ => {}
        }
    }

    fn file(&self) -> Option<MutexGuard<'_, AuditFile>> {
        self.0.file.as_ref().map(|file| file.lock())
    }
}

impl std::fmt::Debug for AuditLog {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("AuditLog").field("has_file", &self.0.file.is_some()).finish_non_exhaustive()
    }
}

impl Kinded for AuditError {
    fn kind(&self) -> Kind {
        match self {
            Self::Unwritable { .. } => Kind::Unavailable,
            Self::TooManyChanges(_) => Kind::Exhausted,
        }
    }

    fn exceeded(&self) -> Option<&RateLimitExceeded> {
        if let Self::TooManyChanges(exceeded) = self { Some(exceeded) } else { None }
    }
}

/// Takes formatted lines, each in one write.
struct Lines(AuditLog);

impl io::Write for Lines {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if let Some(mut file) = self.0.file() {
            file.write(&escaped(line));
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
