//! The frame of all attacks: the latency of a neighbour, and the resources of the server meanwhile.
//!
//! Each attack has a server of its own. The neighbour is there all the time; it is looked at for a while before the
//! attack, which gives the figures that the others are compared with, and during it. For the attacks that take
//! processor time, a busy neighbour is measured, too, who sends as much as the server takes. The attackers have a thread
//! of their own, but share the processors with the server.

use std::{
    pin::Pin,
    thread,
    time::{Duration, Instant},
};

use testing::{
    SmallDisk,
    load::{Load, Taken},
};
use tokio::time::sleep;

use crate::{
    machine,
    neighbour::{Neighbour, Served},
    resources::{Most, Watch},
    server_process::{DEVICE, ServerProcess},
    table::{Busy, Row},
};

/// Connections of the busy neighbour, each of which sends its next uplink when it has a response.
const BUSY: usize = 16;
/// Time of an attack before its neighbour is measured, unless it takes longer to build up.
const LEAD: Duration = Duration::from_millis(300);
/// Time of an attack after its neighbour was measured.
const TAIL: Duration = Duration::from_millis(300);
/// Time after an attack at which memory is read again.
const AFTER: Duration = Duration::from_secs(10);
/// Lets attackers send to this machine, and make many changes.
pub(crate) const LOOSE: &str = "output.delivery.allow_private_addresses = true\n\
                                telemetry.audit_changes = { burst = 1000000000, per_hour = 1000000000 }\n";

/// One attack on a server.
pub(crate) struct Attack {
    /// The row of the table of attacks in the issue.
    pub(crate) row: u8,
    /// The attack, in a few words.
    pub(crate) name: &'static str,
    /// Settings of the server besides the defaults.
    pub(crate) settings: &'static str,
    /// The size of the server's disk, if it is small.
    pub(crate) disk_bytes: Option<usize>,
    /// Command that runs the server, if any.
    pub(crate) command: &'static [&'static str],
    /// Time of the attack before the neighbour is measured.
    pub(crate) lead: Duration,
    /// True if a busy neighbour is measured, too.
    pub(crate) has_busy_neighbour: bool,
    /// Prepares what the attackers need.
    pub(crate) prepare: for<'a> fn(&'a ServerProcess) -> Pin<Box<dyn Future<Output = Attacker> + 'a>>,
}

/// Attacks until the given time; returns what was done, in a few words.
pub(crate) type Attacker = Box<dyn FnOnce(Instant) -> Pin<Box<dyn Future<Output = String>>> + Send>;

impl Attack {
    /// An attack on a server as it comes; others change a member.
    pub(crate) const fn new(
        row: u8,
        name: &'static str,
        prepare: for<'a> fn(&'a ServerProcess) -> Pin<Box<dyn Future<Output = Attacker> + 'a>>,
    ) -> Self {
        Self { row, name, settings: "", disk_bytes: None, command: &[], lead: LEAD, has_busy_neighbour: false, prepare }
    }

    /// Runs it for this time.
    pub(crate) async fn run(&self, time: Duration) -> Row {
        println!("\n## Row {}: {}\n", self.row, self.name);
        let disk = self.disk_bytes.and_then(SmallDisk::of_size);
        let temporary = std::env::temp_dir();
        let parent = disk.as_ref().map_or(temporary.as_path(), SmallDisk::path);
        let command = [machine::server_command(), self.command].concat();
        let server = ServerProcess::start_in(parent, &command, self.settings).await;
        let neighbour = Neighbour::start(&server).await;
        let attacker = (self.prepare)(&server).await;
        sleep(Duration::from_secs(1)).await;
        let watch = Watch::start(&server);
        let (memory_mb, disk_mb) = (watch.memory_mb().unwrap(), watch.disk_mb());
        let alone = self.measure(&server, &neighbour, time / 2).await;
        let cpu = server.cpu_time();
        let (beside, done) = self.beside(attacker, &server, &neighbour, time).await;
        let cpu = server.cpu_time() - cpu;
        sleep(AFTER).await;
        // What was due before has been sent by now, however late.
        let [alone, beside] = [alone, beside].map(|period| period.served(&neighbour));
        alone.print("alone");
        beside.print("beside the attack");
        println!("the server used {:.1} s of processor time", cpu.as_secs_f64());
        let after_mb = watch.memory_mb();
        let lost = neighbour.leave().await;
        let Most { memory_mb: peak_mb, disk_mb: most_disk_mb, descriptors } = watch.end();
        let row = Row {
            row: self.row,
            name: self.name,
            alone,
            beside,
            memory_mb,
            peak_mb,
            after_mb,
            disk_mb: most_disk_mb - disk_mb,
            descriptors,
            lost,
            done,
        };
        println!("{row}");
        row
    }

    /// Measures while the attack goes on; returns what the attackers did, too.
    async fn beside(
        &self,
        attacker: Attacker,
        server: &ServerProcess,
        neighbour: &Neighbour,
        time: Duration,
    ) -> (Period, String) {
        let busy = if self.has_busy_neighbour { time / 2 } else { Duration::ZERO };
        let end = Instant::now() + self.lead + time + busy + TAIL;
        let attacking = thread::spawn(move || {
            machine::yield_to_others();
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(attacker(end))
        });
        sleep(self.lead).await;
        let measured = self.measure(server, neighbour, time).await;
        let done = tokio::task::spawn_blocking(move || attacking.join().unwrap()).await.unwrap();
        (measured, done)
    }

    async fn measure(&self, server: &ServerProcess, neighbour: &Neighbour, time: Duration) -> Period {
        let from = Instant::now();
        sleep(time).await;
        let to = Instant::now();
        let mut busy = None;
        if self.has_busy_neighbour {
            let load = Load::new(server.handler, neighbour.application.uplink(DEVICE).as_slice(), BUSY);
            busy = Some(Busy::of(&in_thread(load, time / 2).await));
        }
        Period { from, to, busy }
    }
}

/// Boxes what attacks until a time.
pub(crate) fn attacker<F: Future<Output = String> + 'static>(
    attack: impl FnOnce(Instant) -> F + Send + 'static,
) -> Attacker {
    Box::new(move |end| Box::pin(attack(end)))
}

/// A time in which neighbours were measured.
struct Period {
    from: Instant,
    to: Instant,
    busy: Option<Busy>,
}

impl Period {
    fn served(self, neighbour: &Neighbour) -> Measured {
        Measured { steady: neighbour.served(self.from, self.to), busy: self.busy }
    }
}

/// Figures of the neighbours over a period.
pub(crate) struct Measured {
    pub(crate) steady: Served,
    pub(crate) busy: Option<Busy>,
}

impl Measured {
    fn print(&self, when: &str) {
        let Served { p50_ms, p99_ms, share, call_ms, refused } = &self.steady;
        println!(
            "{when}: uplinks p50 {p50_ms:.1} ms, p99 {p99_ms:.1} ms, {:.0}% delivered; other calls at most \
             {call_ms:.0} ms, {refused} refused",
            share * 100.0
        );
        if let Some(Busy { p99_ms, per_second }) = &self.busy {
            println!("{when}: a busy neighbour gets {per_second:.0} uplinks/s, p99 {p99_ms:.1} ms");
        }
    }
}

/// Runs a load in a thread of its own, so that nothing delays it.
async fn in_thread(load: Load, time: Duration) -> Taken {
    let run = move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(load.run_for(time))
    };
    tokio::task::spawn_blocking(run).await.unwrap()
}
