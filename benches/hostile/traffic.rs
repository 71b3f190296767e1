//! A pool that is kept busy, and plain threads that do the same without one.

use std::{
    iter,
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

use crate::message::{ENDLESS, HONEST, asker, call, check, load};

/// Honest messages in flight, and those of endless loops: one message in ten.
const HONEST_TASKS: usize = 36;
const ENDLESS_TASKS: usize = 4;

/// A pool with functions of an honest application and of a hostile one, and one thread that keeps it busy.
pub(crate) struct Traffic {
    pub(crate) tokio: Runtime,
    pub(crate) pool: Arc<Pool>,
    pub(crate) honest: Functions,
    pub(crate) endless: Functions,
    workers: f64,
}

/// What was done in a while.
#[derive(Default)]
struct Done {
    honest: AtomicU64,
    /// Nanoseconds that workers spent on endless loops.
    endless_ns: AtomicU64,
}

impl Traffic {
    pub(crate) fn new(workers: usize) -> Self {
        let settings = Settings { workers, ..Settings::default() };
        let engine = Arc::new(Engine::new(&settings).unwrap());
        let (honest, endless) = (load(&engine, HONEST), load(&engine, ENDLESS));
        let tokio = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        Self { tokio, pool: Arc::new(Pool::start(engine).unwrap()), honest, endless, workers: workers as f64 }
    }

    /// Honest messages per second with nobody beside them.
    pub(crate) fn honest_alone(&self, time: Duration) -> f64 {
        self.run(time, 0).honest.load(Ordering::Relaxed) as f64 / time.as_secs_f64()
    }

    /// Honest messages per second beside endless loops, against what is left for them when the loops have had theirs.
    pub(crate) fn honest_beside_endless(&self, time: Duration) -> f64 {
        let alone = self.honest_alone(time);
        let done = self.run(time, ENDLESS_TASKS);
        let beside = done.honest.load(Ordering::Relaxed) as f64 / time.as_secs_f64();
        let taken = done.endless_ns.load(Ordering::Relaxed) as f64 / 1e9 / time.as_secs_f64();
        beside / (alone * (1.0 - taken / self.workers))
    }

    /// Keeps honest tasks and so many hostile ones busy for a while.
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
    let asker = asker("honest");
    while Instant::now() < end {
        check(&pool.call(&asker, functions.clone(), call()).await.unwrap());
        done.honest.fetch_add(u64::from(Instant::now() < end), Ordering::Relaxed);
    }
}

async fn hostile(pool: Arc<Pool>, functions: Functions, end: Instant, done: Arc<Done>) {
    let asker = asker("hostile");
    while Instant::now() < end {
        let report = pool.call(&asker, functions.clone(), call()).await.unwrap();
        assert!(report.result.is_err());
        let within = report.elapsed.saturating_sub(Instant::now().saturating_duration_since(end));
        done.endless_ns.fetch_add(within.as_nanos() as u64, Ordering::Relaxed);
    }
}

/// Honest messages per second of so many plain threads, each with a sandbox of its own.
pub(crate) fn in_threads(threads: usize, engine: &Arc<Engine>, functions: &Functions, time: Duration) -> f64 {
    rate_of_threads(threads, time, |end| {
        let (mut sandbox, message) = (engine.sandbox(), call());
        count(end, || check(&sandbox.call(functions, &message)))
    })
}

/// The same with QuickJS, which isolates nothing: what two processors are worth on this machine just now.
pub(crate) fn peers_in_threads(threads: usize, time: Duration) -> f64 {
    rate_of_threads(threads, time, |end| {
        Context::full(&Peer::new().unwrap()).unwrap().with(|ctx| {
            ctx.eval::<(), _>(HONEST).unwrap();
            let decoder: Function<'_> = ctx.globals().get("Decoder").unwrap();
            count(end, || drop(decoder.call::<_, rquickjs::Value<'_>>((call().payload, 1)).unwrap()))
        })
    })
}

fn rate_of_threads(threads: usize, time: Duration, work: impl Fn(Instant) -> u64 + Sync) -> f64 {
    let end = Instant::now() + time;
    let done: u64 = thread::scope(|scope| {
        let running: Vec<_> = (0..threads).map(|_| scope.spawn(|| work(end))).collect();
        running.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    done as f64 / time.as_secs_f64()
}

fn count(end: Instant, mut once: impl FnMut()) -> u64 {
    iter::from_fn(|| (Instant::now() < end).then(&mut once)).count() as u64
}
