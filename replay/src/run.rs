//! Reads a source, runs its uplinks on all processors, and takes what comes of them in their order.

mod output;

use std::{
    sync::{
        Arc,
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    thread,
};

use runtime::{Engine, Functions, Sandbox};
use types::Timestamp;

use crate::{Batch, Error, Filter, Report, Source, Updates, check::check, report::Place};

/// How many batches wait for each thread, and how many of its results wait to be taken.
const BATCHES_MAX: usize = 2;

/// What runs, and on what.
pub struct Replay<'a> {
    /// Where functions run.
    pub engine: &'a Arc<Engine>,
    /// The codec.
    pub functions: &'a Functions,
    /// Which uplinks are wanted.
    pub filter: Filter,
    /// The time that uplinks without one see.
    pub now: Timestamp,
    /// How many threads run functions.
    pub jobs: usize,
    /// Whether a line is written for each uplink.
    pub writes_lines: bool,
    /// What writes a statement of SQL for each row that changed, if that is wanted.
    pub updates: Option<Updates>,
}

/// What came of a batch.
#[derive(Debug)]
pub struct Done {
    /// Its part of the report.
    pub report: Report,
    /// A line of JSON for each uplink, if that was wanted.
    pub lines: Vec<u8>,
    /// Statements of SQL, if they were wanted.
    pub sql: Vec<u8>,
}

impl Replay<'_> {
    /// Reads `source` to its end. `each` gets what came of its batches, in their order; its error ends the replay.
    pub fn run<E: From<Error>>(
        &self,
        mut source: Box<dyn Source>,
        mut each: impl FnMut(Done) -> Result<(), E>,
    ) -> Result<(), E> {
        let unit = source.unit();
        thread::scope(|scope| {
            let (mut batches, mut results) = (Vec::new(), Vec::new());
            for _ in 0..self.jobs.max(1) {
                let (batch, waiting) = sync_channel(BATCHES_MAX);
                let (result, finished) = sync_channel(BATCHES_MAX);
                scope.spawn(move || self.work(unit, &waiting, &result));
                batches.push(batch);
                results.push(finished);
            }
            let reading = scope.spawn(move || deal(source.as_mut(), &batches));
            // The first thread without a result has had the last batch.
            let taken = results.iter().cycle().map_while(|result| result.recv().ok()).try_for_each(&mut each);
            drop(results);
            let read = reading.join().map_err(|_| Error::Panicked)?;
            taken.and_then(|()| read.map_err(E::from))
        })
    }

    fn work(&self, unit: &'static str, batches: &Receiver<Batch>, results: &SyncSender<Done>) {
        let mut sandbox = self.engine.sandbox();
        while let Ok(batch) = batches.recv() {
            if results.send(self.check_batch(&mut sandbox, unit, batch)).is_err() {
                return;
            }
        }
    }

    fn check_batch(&self, sandbox: &mut Sandbox, unit: &'static str, batch: Batch) -> Done {
        let (mut report, mut lines, mut sql) = (Report::default(), Vec::new(), Vec::new());
        batch.read(|number, found| {
            let place = Place { unit, number };
            match found {
                Ok(Some(uplink)) if self.filter.matches(&uplink) => {
                    let checked = check(sandbox, self.functions, &uplink, self.now);
                    if self.writes_lines {
                        output::write(&mut lines, &uplink, &checked);
                    }
                    if let Some(updates) = &self.updates {
                        report.updates.add(updates.write(&mut sql, &uplink, &checked));
                    }
                    report.add(place, &uplink, checked);
                }
                Ok(Some(_)) => report.left_out += 1,
                Ok(None) => report.others += 1,
                Err(reason) => report.add_damage(place, &reason),
            }
        });
        Done { report, lines, sql }
    }
}

/// Gives the batches of a source to the threads in turn, until it ends or nobody takes them any more.
fn deal(source: &mut dyn Source, batches: &[SyncSender<Batch>]) -> Result<(), Error> {
    for thread in batches.iter().cycle() {
        let Some(batch) = source.next()? else { break };
        if thread.send(batch).is_err() {
            break;
        }
    }
    Ok(())
}
