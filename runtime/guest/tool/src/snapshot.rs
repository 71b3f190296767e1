//! Runs the guest's initialization and keeps the heap it leaves.

use crate::stub;
use anyhow::{Result, anyhow, bail};
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use wasmtime::{Engine, Instance, Module, Store, Val};
use wasmtime_wizer::{InstanceState, SnapshotVal, ValType, Wizer};

/// The exported function that makes the guest ready.
pub(crate) const INITIALIZE: &str = "wizer-initialize";

/// The module with its memory as it is after initialization.
pub(crate) fn run(wasm: &[u8]) -> Result<Vec<u8>> {
    let mut wizer = Wizer::new();
    wizer.init_func(INITIALIZE);
    let (context, instrumented) = wizer.instrument(wasm).map_err(|error| anyhow!("failed to instrument: {error}"))?;
    let engine = Engine::default();
    let module = Module::new(&engine, instrumented).map_err(|error| anyhow!("failed to compile: {error}"))?;
    let mut store = Store::new(&engine, ());
    let instance = Instance::new(&mut store, &module, &[]).map_err(|error| anyhow!("failed to start: {error}"))?;
    let initialize = instance.get_typed_func::<(), ()>(&mut store, INITIALIZE).map_err(|error| anyhow!("{error}"))?;
    initialize.call(&mut store, ()).map_err(|error| anyhow!("the guest failed to initialize itself: {error:?}"))?;
    let mut state = State { store, instance };
    let snapshot = ready(wizer.snapshot(&context, &mut state))?;
    let snapshot = snapshot.map_err(|error| anyhow!("failed to take the snapshot: {error}"))?;
    without_passive_data(&snapshot)
}

/// The module without the empty passive segments that stand for data already in place: they are not of WebAssembly 1.0.
fn without_passive_data(wasm: &[u8]) -> Result<Vec<u8>> {
    let mut module = stub::parse(wasm)?;
    let passive: Vec<_> = module.data.iter().filter(|data| data.is_passive()).map(walrus::Data::id).collect();
    passive.into_iter().for_each(|data| module.data.delete(data));
    Ok(module.emit_wasm())
}

struct State {
    store: Store<()>,
    instance: Instance,
}

impl InstanceState for State {
    #[expect(clippy::panic, reason = "the trait asks for it, and this is a build tool")]
    async fn global_get(&mut self, name: &str, _: ValType) -> SnapshotVal {
        match self.instance.get_global(&mut self.store, name).map(|global| global.get(&mut self.store)) {
            Some(Val::I32(value)) => SnapshotVal::I32(value),
            Some(Val::I64(value)) => SnapshotVal::I64(value),
            other => panic!("the global `{name}` is {other:?}, which a snapshot cannot hold"),
        }
    }

    #[expect(clippy::panic, reason = "the trait asks for it, and this is a build tool")]
    async fn memory_contents(&mut self, name: &str, contents: impl FnOnce(&[u8]) + Send) {
        match self.instance.get_memory(&mut self.store, name) {
            Some(memory) => contents(memory.data(&self.store)),
            None => panic!("there is no memory `{name}`"),
        }
    }
}

/// The outcome of a future that never waits.
fn ready<T>(future: impl Future<Output = T>) -> Result<T> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => Ok(value),
        Poll::Pending => bail!("the snapshot waits for something"),
    }
}
