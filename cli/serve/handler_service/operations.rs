//! Operations of the handler's APIs, and services on the same stores: reports of networks, uplinks of network brokers,
//! deletions, candidates and silent devices.

use std::{sync::Arc, time::Instant};

use anyhow::Context as _;
use handler::{
    OneAtATime,
    access::{Access, RateLimiter},
    api::operations::Operations,
    application::Applications,
    device::{Addresses, Devices},
    downlink::{Downlinks, Outgoing},
    network::{NetworkEvents, join::Joins, network_broker::NetworkBrokers},
    payload::Payloads,
    silence::{self, SilenceWatch},
    status::Component,
    uplink::{LastHeardTimes, RunCounters, Uplinks},
};
use history::History;
use runtime::Pool;
use server::auth::Authenticator;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::message_outputs::MessageOutputs;
use crate::serve::{context::Context, history::write_limits};

/// Puts the operations of this process together, and stores the limits of its functions.
pub(super) async fn operations(
    context: &Context,
    pool: &Arc<Pool>,
    (authenticator, network_brokers): (Arc<Authenticator>, Arc<NetworkBrokers>),
    outputs: &MessageOutputs,
) -> anyhow::Result<Operations> {
    let (output, history) = (&outputs.recorded, &outputs.history);
    let payloads =
        Arc::new(Payloads::new(pool.clone(), &context.settings.handler)?.with_owners(context.owners.clone()));
    let sealer = context.sealer().await?;
    let applications = Applications::new(context.store.clone(), sealer.clone())
        .with_version_bounds(context.settings.handler.version_bounds);
    store_limits(context, &applications, &payloads, history).await?;
    let devices = Devices::new(context.store.clone(), sealer, context.clock.clone());
    let access =
        Access::new(authenticator, RateLimiter::new(context.store.clone(), context.settings.handler.rate_limits));
    let uplinks = uplinks(context, (&applications, &devices, &payloads), outputs);
    let joins = Joins {
        access: access.clone(),
        applications: applications.clone(),
        devices: devices.clone(),
        network_brokers: network_brokers.clone(),
        output: output.clone(),
        last_heard: uplinks.last_heard.clone(),
        random: context.random.clone(),
        clock: context.clock.clone(),
    };
    let component =
        Component { id: context.settings.handler.id.clone(), started: context.clock.now(), traffic: Arc::default() };
    let downlinks = Arc::new(Downlinks {
        applications: applications.clone(),
        devices: devices.clone(),
        payloads: payloads.clone(),
        output: output.clone(),
        traffic: component.traffic.clone(),
        outgoing: Arc::new(Outgoing::new(context.store.clone(), output.clone(), context.clock.clone())),
        clock: context.clock.clone(),
    });
    Ok(Operations {
        access,
        applications,
        devices,
        payloads,
        uplinks: Arc::new(uplinks),
        downlinks,
        joins,
        network_brokers,
        announcer: None,
        addresses: Addresses::new(context.settings.handler.prefixes.clone(), context.random.clone()),
        component,
        output: output.clone(),
        history: history.clone(),
        corrections: one_at_a_time(context, "correction", Some(history.clone())),
        replays: one_at_a_time(context, "replay", None),
        webhook_tests: OneAtATime::default(),
        webhooks: outputs.queued.webhooks(),
        audit: context.audit.clone(),
        clock: context.clock.clone(),
    })
}

fn uplinks(
    context: &Context,
    (applications, devices, payloads): (&Applications, &Devices, &Arc<Payloads>),
    outputs: &MessageOutputs,
) -> Uplinks {
    Uplinks {
        applications: applications.clone(),
        devices: devices.clone(),
        payloads: payloads.clone(),
        output: outputs.unrecorded.clone(),
        history: (context.settings.history.bytes_max > 0).then(|| outputs.history.clone()),
        shows_version: context.settings.output.functions_version,
        trials: Default::default(),
        runs: Arc::new(RunCounters::new(context.clock.clone()).with_owners(context.owners.clone())),
        last_heard: Arc::new(LastHeardTimes::new(context.clock.clone()).with_owners(context.owners.clone())),
    }
}

/// Stores the limits of functions, and all that are known beside the files of history.
async fn store_limits(
    context: &Context,
    applications: &Applications,
    payloads: &Payloads,
    history: &Arc<History>,
) -> anyhow::Result<()> {
    let kept = applications.store_limits(payloads.all_limits(), context.clock.now()).await;
    kept.context("cannot store the limits of functions")?;
    let limits = applications.all_limits().await.context("cannot read the limits of functions")?;
    write_limits(history.clone(), limits);
    Ok(())
}

/// Work that all handlers on the same store do one at a time.
fn one_at_a_time(context: &Context, name: &'static str, history: Option<Arc<History>>) -> OneAtATime {
    match context.settings.store.redis {
        Some(_) => OneAtATime::among_handlers(context.store.clone(), context.clock.clone(), name, history),
        None => OneAtATime::default(),
    }
}

/// Completes deletions, judges candidates and notices silent devices until `stop`.
pub(super) fn background(
    context: &Context,
    operations: &Arc<Operations>,
    stop: &CancellationToken,
) -> Vec<JoinHandle<()>> {
    vec![
        tokio::spawn(complete_deletions(operations.clone(), stop.clone())),
        tokio::spawn(judge_candidates(operations.clone(), stop.clone())),
        tokio::spawn(silence_watch(context, operations).run(stop.clone())),
    ]
}

async fn complete_deletions(operations: Arc<Operations>, stop: CancellationToken) {
    _ = stop.run_until_cancelled(operations.complete_deletions()).await;
}

async fn judge_candidates(operations: Arc<Operations>, stop: CancellationToken) {
    operations.judge_candidates(&stop).await;
}

/// Notices silent devices, on the same stores as the operations.
fn silence_watch(context: &Context, operations: &Operations) -> SilenceWatch {
    let started = Instant::now();
    SilenceWatch::new(silence::Environment {
        applications: operations.applications.clone(),
        devices: operations.devices.clone(),
        store: context.store.clone(),
        last_heard: operations.uplinks.last_heard.clone(),
        output: operations.output.clone(),
        history: operations.uplinks.history.clone(),
        owners: context.owners.clone(),
        turns: one_at_a_time(context, "silence", None),
        is_shared: context.settings.store.redis.is_some(),
        clock: context.clock.clone(),
        monotonic: Arc::new(move || started.elapsed()),
    })
}

/// Takes what networks report, on the same stores as the operations.
pub(super) fn network_events(operations: &Operations) -> Arc<NetworkEvents> {
    Arc::new(NetworkEvents {
        devices: operations.devices.clone(),
        uplinks: operations.uplinks.clone(),
        outgoing: operations.downlinks.outgoing.clone(),
        output: operations.output.clone(),
        traffic: operations.component.traffic.clone(),
        clock: operations.clock.clone(),
    })
}
