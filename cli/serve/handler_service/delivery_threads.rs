//! The threads of deliveries. They have their own, because hundreds of receivers may answer at the same moment, and
//! messages on their way to the queues should not wait behind that.

use std::{io, thread};

use tokio::runtime::{Builder, Handle, Runtime};

/// Runs deliveries until it is dropped.
pub(in crate::serve) struct DeliveryThreads {
    handle: Handle,
    /// Always there, until the end.
    runtime: Option<Runtime>,
}

impl DeliveryThreads {
    /// One for every two processors.
    pub(super) fn start() -> io::Result<Self> {
        let processors = thread::available_parallelism().map_or(1, usize::from);
        let mut builder = Builder::new_multi_thread();
        let runtime = builder.worker_threads(processors.div_ceil(2)).thread_name("outputs").enable_all().build()?;
        Ok(Self { handle: runtime.handle().clone(), runtime: Some(runtime) })
    }

    pub(super) fn handle(&self) -> Handle {
        self.handle.clone()
    }
}

impl Drop for DeliveryThreads {
    fn drop(&mut self) {
        // Unlike a runtime's own end, this does not wait, which a task must not.
        self.runtime.take().into_iter().for_each(Runtime::shutdown_background);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn deliveries_run_in_threads_of_their_own_and_end_with_them() {
        let threads = DeliveryThreads::start().unwrap();
        let name = threads.handle().spawn(async { thread::current().name().map(str::to_owned) }).await.unwrap();
        assert_eq!(name.as_deref(), Some("outputs"));
        let endless = threads.handle().spawn(std::future::pending::<()>());
        drop(threads);
        assert!(endless.await.unwrap_err().is_cancelled());
    }
}
