//! A busy pool, and plain threads that do the same work.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use rquickjs::{Context, Function, Runtime as Peer};
use runtime::{Engine, Functions, Pool, Settings};
use tokio::{runtime::Runtime, task::JoinSet};

use crate::message::{ENDLESS, HONEST, call, check, load, tenant};

/// Honest messages in flight; a tenth as many endless loops are added.
const HONEST_TASKS: usize = 36;
const ENDLESS_TASKS: usize = 4;

/// A pool with functions of an honest and a hostile application, and a thread that keeps it busy.
pub(crate) struct Traffic {
    engine: Arc<Engine>,
    pub(crate) tokio: Runtime,
    pub(crate) pool: Arc<Pool>,
    pub(crate) honest: Functions,
    pub(crate) endless: Functions,
    workers: usize,
}

/// The work done in a round.
#[derive(Default)]
struct Done {
    honest: AtomicU64,
    /// Thousandths of endless loops; one that is still running at the end counts in part.
    endless: AtomicU64,
}

impl Traffic {
    pub(crate) fn new(workers: usize) -> Self {
        let settings = Settings { workers, ..Settings::default() };
        let engine = Arc::new(Engine::new(&settings).unwrap());
        let (honest, endless) = (load(&engine, HONEST), load(&engine, ENDLESS));
        let tokio = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let pool = Arc::new(Pool::start(engine.clone()).unwrap());
        Self { engine, tokio, pool, honest, endless, workers }
    }

    /// Honest messages per second without other load.
    pub(crate) fn honest_alone(&self, time: Duration) -> f64 {
        self.run(time, 0).honest.load(Ordering::Relaxed) as f64 / time.as_secs_f64()
    }

    /// Honest messages per second beside endless loops, relative to what the loops leave: each loop counts with its
    /// fuel.
    pub(crate) fn honest_beside_endless(&self, time: Duration) -> f64 {
        let alone = self.honest_alone(time);
        let done = self.run(time, ENDLESS_TASKS);
        let beside = done.honest.load(Ordering::Relaxed) as f64 / time.as_secs_f64();
        let endless = done.endless.load(Ordering::Relaxed) as f64 / 1000.0 / time.as_secs_f64();
        beside / (alone * (1.0 - endless / self.endless_in_threads(time)))
    }

    /// Endless loops per second on as many plain threads as there are workers.
    fn endless_in_threads(&self, time: Duration) -> f64 {
        rate_of_threads(self.workers, time, |end| {
            let (mut sandbox, message) = (self.engine.sandbox(), call());
            count(end, || assert!(sandbox.call(&self.endless, &message).result.is_err()))
        })
    }

    /// Keeps honest and hostile tasks busy for a while.
    fn run(&self, time: Duration, endless: usize) -> Arc<Done> {
        let (done, end) = (Arc::new(Done::default()), Instant::now() + time);
        self.tokio.block_on(async {
            let mut tasks = JoinSet::new();
            for _ in 0..HONEST_TASKS {
                tasks.spawn(honest(self.pool.clone(), self.honest.clone(), end, done.clone()));
            }
            for _ in 0..endless {
                tasks.spawn(hostile(self.pool.clone(), self.endless.clone(), end, done.clone()));
            }
            tasks.join_all().await;
        });
        done
    }
}

async fn honest(pool: Arc<Pool>, functions: Functions, end: Instant, done: Arc<Done>) {
    let tenant = tenant("honest");
    while Instant::now() < end {
        check(&pool.call(&tenant, functions.clone(), call()).await.unwrap());
        done.honest.fetch_add(u64::from(Instant::now() < end), Ordering::Relaxed);
    }
}

async fn hostile(pool: Arc<Pool>, functions: Functions, end: Instant, done: Arc<Done>) {
    let tenant = tenant("hostile");
    while Instant::now() < end {
        let report = pool.call(&tenant, functions.clone(), call()).await.unwrap();
        assert!(report.result.is_err());
        let within = report.elapsed.saturating_sub(Instant::now().saturating_duration_since(end));
        done.endless.fetch_add((1000.0 * within.div_duration_f64(report.elapsed)) as u64, Ordering::Relaxed);
    }
}

/// Honest messages per second on plain threads, each with a sandbox of its own.
pub(crate) fn in_threads(threads: usize, engine: &Arc<Engine>, functions: &Functions, time: Duration) -> f64 {
    rate_of_threads(threads, time, |end| {
        let (mut sandbox, message) = (engine.sandbox(), call());
        count(end, || check(&sandbox.call(functions, &message)))
    })
}

/// The same in native QuickJS without isolation, which shows what two processors achieve on this machine.
pub(crate) fn peers_in_threads(threads: usize, time: Duration) -> f64 {
    rate_of_threads(threads, time, |end| {
        Context::full(&Peer::new().unwrap()).unwrap().with(|ctx| {
            ctx.eval::<(), _>(HONEST).unwrap();
            let decoder: Function<'_> = ctx.globals().get("Decoder").unwrap();
            count(end, || drop(decoder.call::<_, rquickjs::Value<'_>>((call().payload, 1)).unwrap()))
        })
    })
}

fn rate_of_threads(threads: usize, time: Duration, work: impl Fn(Instant) -> f64 + Sync) -> f64 {
    let end = Instant::now() + time;
    let done: f64 = thread::scope(|scope| {
        let running: Vec<_> = (0..threads).map(|_| scope.spawn(|| work(end))).collect();
        running.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    done / time.as_secs_f64()
}

/// Returns the number of times that `once` completes until `end`, counting the last run in part.
fn count(end: Instant, mut once: impl FnMut()) -> f64 {
    let mut whole = 0.0;
    loop {
        let start = Instant::now();
        once();
        if Instant::now() >= end {
            return whole + end.saturating_duration_since(start).div_duration_f64(start.elapsed());
        }
        whole += 1.0;
    }
}
