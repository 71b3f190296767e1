//! Turns of tenants and of their owners, and the bounds of the queue.

use super::*;

const LONG: u64 = 50_000_000;
const SHORT: u64 = 20_000;

fn queue(workers: usize, waiting_max: usize, tenant_waiting_max: usize) -> Queue<u32> {
    Queue::new(QueueLimits { workers, waiting_max, tenant_waiting_max, short_fuel_max: 1_000_000 })
}

fn live(id: &str) -> Tenant {
    Tenant::alone(id, Priority::Live)
}

fn dry(id: &str) -> Tenant {
    Tenant { priority: Priority::DryRun, ..live(id) }
}

fn put(queue: &mut Queue<u32>, tenant: &Tenant, jobs: impl IntoIterator<Item = u32>) {
    jobs.into_iter().for_each(|job| queue.put(tenant, 0, job).unwrap());
}

/// Runs jobs on the only worker; `fuel` returns the fuel that a job uses.
fn run(queue: &mut Queue<u32>, times: usize, fuel: impl Fn(u32) -> u64) -> Vec<u32> {
    let mut ran = Vec::new();
    for _ in 0..times {
        let Some((ticket, job)) = queue.take(0) else { break };
        queue.done(ticket, Some(fuel(job)));
        ran.push(job);
    }
    ran
}

#[test]
fn jobs_of_one_tenant_run_in_order() {
    let mut queue = queue(1, 100, 100);
    put(&mut queue, &live("a"), 0..10);
    assert_eq!(run(&mut queue, 100, |_| SHORT), Vec::from_iter(0..10));
    assert_eq!(queue.len(), 0);
}

#[test]
fn endless_loops_of_one_tenant_delay_another_by_one_job() {
    let mut queue = queue(1, 1000, 500);
    put(&mut queue, &live("bad"), 0..100);
    assert_eq!(run(&mut queue, 1, |_| LONG), [0]);
    put(&mut queue, &live("good"), 1000..1050);
    assert_eq!(run(&mut queue, 50, |_| SHORT), Vec::from_iter(1000..1050));
    assert_eq!(run(&mut queue, 1, |_| LONG), [1]);
}

#[test]
fn the_tenants_of_one_owner_delay_another_by_one_job_and_leave_it_space() {
    let mut queue = queue(1, 100, 50);
    let of = |owner: &str, id: u32| Tenant { owner: owner.into(), ..live(&id.to_string()) };
    let accepted = (0..100).filter(|id| queue.put(&of("busy", *id), 0, *id).is_ok()).count();
    assert_eq!(accepted, 50);
    assert_eq!(run(&mut queue, 1, |_| LONG), [0]);
    put(&mut queue, &of("quiet", 0), 1000..1010);
    assert_eq!(run(&mut queue, 10, |_| SHORT), Vec::from_iter(1000..1010));
    assert_eq!(run(&mut queue, 2, |_| LONG), [1, 2]);
}

#[test]
fn tenants_share_fuel_rather_than_jobs() {
    let mut queue = queue(1, 10_000, 5_000);
    put(&mut queue, &live("cheap"), 0..4000);
    put(&mut queue, &live("expensive"), 10_000..10_400);
    let ran = run(&mut queue, 1000, |job| if job < 10_000 { 40_000 } else { 490_000 });
    let dear = ran.iter().filter(|job| **job >= 10_000).count();
    // With overhead a cheap job costs 50 000 and an expensive one 500 000.
    assert!((90..=92).contains(&dear), "{dear} of 1000");
}

#[test]
fn a_returning_tenant_has_no_credit_and_no_debt() {
    let mut queue = queue(1, 10_000, 5_000);
    put(&mut queue, &live("early"), 0..500);
    run(&mut queue, 400, |_| SHORT);
    put(&mut queue, &live("late"), 1000..1100);
    let late = run(&mut queue, 100, |_| SHORT).into_iter().filter(|job| *job >= 1000).count();
    assert!((49..=51).contains(&late), "{late} of 100");
    run(&mut queue, 500, |_| SHORT);

    put(&mut queue, &live("late"), 2000..2100);
    run(&mut queue, 100, |_| LONG);
    put(&mut queue, &live("late"), 3000..3100);
    put(&mut queue, &live("early"), 4000..4100);
    let late = run(&mut queue, 100, |_| SHORT).into_iter().filter(|job| *job < 4000).count();
    assert!((45..=55).contains(&late), "fuel used while it was alone counts against it: {late} of 100");
}

#[test]
fn one_worker_is_reserved_for_short_jobs() {
    let mut queue = queue(3, 1000, 500);
    for tenant in ["bad", "worse", "worst"] {
        put(&mut queue, &live(tenant), 0..1);
    }
    run(&mut queue, 3, |_| LONG);
    for tenant in ["bad", "worse", "worst"] {
        put(&mut queue, &live(tenant), 0..10);
    }
    let first = queue.take(0).unwrap();
    let second = queue.take(1).unwrap();
    assert!(queue.take(2).is_none() && !queue.has_turn());
    put(&mut queue, &live("good"), 7..8);
    assert!(queue.has_turn());
    let (short, job) = queue.take(2).unwrap();
    assert_eq!(job, 7);
    queue.done(short, Some(SHORT));
    queue.done(first.0, Some(LONG));
    assert!(queue.take(0).is_some() && queue.take(2).is_none());
    queue.done(second.0, Some(LONG));
}

#[test]
fn a_tenant_with_fixed_functions_counts_as_fast_again() {
    let mut queue = queue(2, 1000, 500);
    put(&mut queue, &live("a"), 0..200);
    run(&mut queue, 1, |_| LONG);
    run(&mut queue, 60, |_| SHORT);
    let first = queue.take(0).unwrap();
    assert!(queue.take(1).is_some(), "its jobs are short again");
    queue.done(first.0, Some(SHORT));
}

#[test]
fn a_tenant_gets_every_worker_only_while_no_other_waits() {
    let mut queue = queue(3, 1000, 300);
    put(&mut queue, &live("a"), 0..10);
    let alone: Vec<_> = (0..3).map(|worker| queue.take(worker).unwrap()).collect();
    alone.into_iter().for_each(|(ticket, _)| queue.done(ticket, Some(SHORT)));
    // The other has used more and still gets the third worker.
    put(&mut queue, &live("b"), 100..101);
    run(&mut queue, 1, |_| 900_000);
    put(&mut queue, &live("b"), 101..102);
    let both: Vec<_> = (0..3).map(|worker| queue.take(worker).unwrap()).collect();
    assert_eq!(both.iter().map(|(_, job)| *job).collect::<Vec<_>>(), [3, 4, 101]);
    both.into_iter().for_each(|(ticket, _)| queue.done(ticket, Some(SHORT)));
}

#[test]
fn live_traffic_goes_first_but_does_not_starve_dry_runs() {
    let mut queue = queue(1, 10_000, 5_000);
    put(&mut queue, &dry("a"), 0..100);
    put(&mut queue, &live("b"), 1000..2000);
    let ran = run(&mut queue, 900, |_| SHORT);
    assert_eq!(ran[0], 1000);
    let dry_runs = ran.iter().filter(|job| **job < 1000).count();
    assert!((99..=101).contains(&dry_runs), "{dry_runs} of 900");
}

#[test]
fn dry_runs_that_are_known_to_be_short_take_every_worker() {
    let mut queue = queue(2, 100, 100);
    for job in 0..2 {
        queue.put_known(&dry("a"), SHORT, job).unwrap();
    }
    let both = [0, 1].map(|worker| queue.take(worker).unwrap());
    both.into_iter().for_each(|(ticket, _)| queue.done(ticket, Some(SHORT)));
}

#[test]
fn dry_runs_never_take_the_last_worker() {
    let mut queue = queue(2, 100, 100);
    put(&mut queue, &dry("a"), 0..2);
    put(&mut queue, &dry("b"), 0..2);
    let first = queue.take(0).unwrap();
    assert!(queue.take(1).is_none());
    put(&mut queue, &live("c"), 7..8);
    let (ticket, job) = queue.take(1).unwrap();
    assert_eq!(job, 7);
    queue.done(ticket, Some(SHORT));
    queue.done(first.0, Some(SHORT));
}

#[test]
fn the_queue_is_bounded_and_has_space_for_new_tenants() {
    let mut queue = queue(1, 64, 40);
    let mut accepted = Vec::new();
    for tenant in ["a", "b", "c", "d", "e", "f", "g"] {
        accepted.push((0..100).filter(|job| queue.put(&live(tenant), 0, *job).is_ok()).count());
    }
    assert_eq!(accepted, [32, 16, 8, 4, 2, 1, 1]);
    assert_eq!((queue.len(), queue.put(&live("h"), 0, 1)), (64, Err(Busy)));
    run(&mut queue, 10, |_| SHORT);
    assert_eq!(queue.put(&live("h"), 0, 1), Ok(()));

    let mut queue = self::queue(1, 64, 20);
    assert_eq!((0..100).filter(|job| queue.put(&live("a"), 0, *job).is_ok()).count(), 20);
}

#[test]
fn a_worker_prefers_functions_that_it_has_loaded() {
    let mut queue = queue(2, 100, 100);
    for (tenant, home) in [("a", 4), ("b", 5), ("c", 6), ("d", 7)] {
        queue.put(&live(tenant), home, home as u32).unwrap();
    }
    let order: Vec<_> = [1, 0, 1, 0].map(|worker| queue.take(worker).unwrap()).into();
    assert_eq!(order.iter().map(|(_, job)| *job).collect::<Vec<_>>(), [5, 4, 7, 6]);
    order.into_iter().for_each(|(ticket, _)| queue.done(ticket, Some(SHORT)));
    // Fairness comes first: a tenant that has used much more fuel waits, wherever its functions are loaded.
    put(&mut queue, &live("busy"), 9..10);
    let busy = queue.take(0).unwrap();
    put(&mut queue, &live("b"), 0..1);
    run(&mut queue, 1, |_| 5_000_000);
    queue.put(&live("b"), 1, 1).unwrap();
    queue.put(&live("a"), 0, 0).unwrap();
    queue.done(busy.0, Some(SHORT));
    let (ticket, job) = queue.take(1).unwrap();
    assert_eq!(job, 0);
    queue.done(ticket, Some(SHORT));
}

#[test]
fn what_runs_may_come_back_after_the_rest_was_forgotten() {
    let mut queue = queue(2, 10, 10);
    put(&mut queue, &dry("a"), 0..3);
    let (ticket, _) = queue.take(0).unwrap();
    queue.clear();
    assert!(queue.len() == 0 && queue.take(1).is_none());
    queue.done(ticket, Some(LONG));
    put(&mut queue, &dry("a"), 3..4);
    assert_eq!(run(&mut queue, 9, |_| SHORT), [3]);
}
