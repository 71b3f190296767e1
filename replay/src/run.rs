//! Reads a source, runs its uplinks on all processors, and takes their results in order.

mod output;

use std::{
    sync::{
        Arc,
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    thread,
};

use runtime::{Engine, Sandbox};

pub use self::output::{OutputFormat, OutputRow, ParquetOutput};
use crate::{
    Batch, Codecs, Error, Filter, RecordedUplink, Report, Updates, UplinkSource,
    check::{Defaults, check},
    report::Place,
    revisions::Revisions,
};

/// Maximum number of batches that wait for each thread, and of its results that wait to be taken.
const BATCHES_MAX: usize = 2;

/// Settings of a replay.
pub struct Replay<'a> {
    /// The engine that runs functions.
    pub engine: &'a Arc<Engine>,
    /// The codecs to run.
    pub codecs: &'a Codecs,
    /// The uplinks that are wanted.
    pub filter: Filter,
    /// Inputs of functions where an uplink has none of its own.
    pub defaults: &'a Defaults,
    /// Number of threads that run functions.
    pub jobs: usize,
    /// Format of the uplinks, if they are written.
    pub output: Option<OutputFormat>,
    /// Writes a statement of SQL for each row that changed, if that is wanted.
    pub updates: Option<Updates>,
}

/// Results of a batch.
#[derive(Debug)]
pub struct Done {
    /// Its part of the report.
    pub report: Report,
    /// A line of JSON for each uplink, if that was wanted.
    pub lines: Vec<u8>,
    /// A row for each uplink, if that was wanted.
    pub rows: Vec<OutputRow>,
    /// Statements of SQL, if they were wanted.
    pub sql: Vec<u8>,
}

impl Replay<'_> {
    /// Reads `source` to its end. `each` gets the results of its batches, in their order; its error ends the replay.
    pub fn run<E: From<Error>>(
        &self,
        mut source: Box<dyn UplinkSource>,
        mut each: impl FnMut(Done) -> Result<(), E>,
    ) -> Result<(), E> {
        let (unit, revisions) = (source.unit(), &Revisions::default());
        thread::scope(|scope| {
            let (mut batches, mut results) = (Vec::new(), Vec::new());
            for _ in 0..self.jobs.max(1) {
                let (batch, waiting) = sync_channel(BATCHES_MAX);
                let (result, finished) = sync_channel(BATCHES_MAX);
                scope.spawn(move || self.work((unit, revisions), &waiting, &result));
                batches.push(batch);
                results.push(finished);
            }
            let reading = scope.spawn(move || deal(source.as_mut(), revisions, &batches));
            // The first thread without a result has had the last batch.
            let taken = results.iter().cycle().map_while(|result| result.recv().ok()).try_for_each(&mut each);
            drop(results);
            let read = reading.join().map_err(|_| Error::Panicked)?;
            taken.and_then(|()| read.map_err(E::from))
        })
    }

    fn work(
        &self,
        (unit, revisions): (&'static str, &Revisions),
        batches: &Receiver<Batch>,
        results: &SyncSender<Done>,
    ) {
        let mut sandbox = self.engine.sandbox();
        while let Ok(batch) = batches.recv() {
            if results.send(self.check_batch(&mut sandbox, (unit, revisions), batch)).is_err() {
                return;
            }
        }
    }

    fn check_batch(&self, sandbox: &mut Sandbox, (unit, revisions): (&'static str, &Revisions), batch: Batch) -> Done {
        let mut done = Done { report: Report::default(), lines: Vec::new(), rows: Vec::new(), sql: Vec::new() };
        batch.read(|number, found| {
            let place = Place { unit, number };
            match found {
                Ok(Some(uplink)) if !self.filter.matches(&uplink) => done.report.left_out += 1,
                Ok(Some(uplink)) if self.is_outdated(revisions, &uplink) => done.report.outdated += 1,
                Ok(Some(uplink)) => self.check_uplink(sandbox, place, &uplink, &mut done),
                Ok(None) => done.report.others += 1,
                Err(reason) => done.report.add_damage(place, &reason),
            }
        });
        done
    }

    /// Returns true if a newer revision counts in its place. Of originals alone, each counts.
    fn is_outdated(&self, revisions: &Revisions, uplink: &RecordedUplink) -> bool {
        !self.filter.originals_only && revisions.is_outdated(uplink)
    }

    fn check_uplink(&self, sandbox: &mut Sandbox, place: Place, uplink: &RecordedUplink, done: &mut Done) {
        if self.codecs.are_by_profile() {
            done.report.add_profile(&uplink.profile);
        }
        let Some(functions) = self.codecs.of(&uplink.profile) else {
            return done.report.add_without_codec(&uplink.profile);
        };
        let checked = check(sandbox, functions, uplink, self.defaults);
        match self.output {
            Some(OutputFormat::JsonLines) => output::write_line(&mut done.lines, uplink, &checked),
            Some(OutputFormat::Parquet) => done.rows.push(output::row(uplink, &checked)),
            None => {}
        }
        if let Some(updates) = &self.updates {
            done.report.updates.add(updates.write(&mut done.sql, uplink, &checked));
        }
        done.report.add(place, uplink, checked);
    }
}

/// Gives the batches of a source to the threads in turn, until it ends or nobody takes them any more.
fn deal(source: &mut dyn UplinkSource, revisions: &Revisions, batches: &[SyncSender<Batch>]) -> Result<(), Error> {
    for thread in batches.iter().cycle() {
        let Some(batch) = source.next()? else { break };
        revisions.add(batch.corrections())?;
        if thread.send(batch).is_err() {
            break;
        }
    }
    Ok(())
}
