//! Signals and draining.

use std::{future::pending, process, time::Duration};

use server::shutdown::{Drained, Shutdown};

#[cfg(unix)]
#[tokio::test]
async fn the_first_signal_requests_and_the_second_forces_shutdown() {
    let shutdown = Shutdown::on_signals().unwrap();
    let signal = |name: &str| {
        let killed = process::Command::new("kill").args([name, &process::id().to_string()]).status().unwrap();
        assert!(killed.success());
    };
    signal("-TERM");
    shutdown.requested.cancelled().await;
    assert!(!shutdown.forced.is_cancelled());
    signal("-INT");
    shutdown.forced.cancelled().await;
}

#[tokio::test(start_paused = true)]
async fn a_drain_ends_with_the_work_the_deadline_or_a_second_signal() {
    let shutdown = Shutdown::default();
    let limit = Duration::from_secs(20);
    assert_eq!(shutdown.drain(async {}, limit).await, Drained::Finished);
    assert_eq!(shutdown.drain(pending(), limit).await, Drained::TimedOut);
    shutdown.forced.cancel();
    assert_eq!(shutdown.drain(pending(), limit).await, Drained::Forced);
}
