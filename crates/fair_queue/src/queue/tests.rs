//! Whose entries come first.

use super::*;

fn queue() -> FairQueue<u32> {
    FairQueue::new(Costs { job: 1, slack: 0 })
}

/// Runs jobs one after the other; `cost` says what each used.
fn run(queue: &mut FairQueue<u32>, times: usize, cost: impl Fn(u32) -> u64) -> Vec<u32> {
    let mut ran = Vec::new();
    while ran.len() < times
        && let Some((turn, job)) = queue.pop(0, |_| true)
    {
        queue.done(turn, Some(cost(job)));
        ran.push(job);
    }
    ran
}

/// Asserts that a tenant whose jobs cost a tenth of another's runs ten times as many.
fn shares_costs(queue: &mut FairQueue<u32>) {
    let [cheap, costly] = ["cheap", "costly"].map(Arc::from);
    for job in 0..1000 {
        queue.push(&cheap, 0, job);
        queue.push(&costly, 0, 1000 + job);
    }
    let ran = run(queue, 440, |job| if job < 1000 { 10 } else { 100 });
    let of_cheap = ran.iter().filter(|job| **job < 1000).count();
    assert!((390..=410).contains(&of_cheap), "{of_cheap} of 440");
}

#[test]
fn a_tenant_with_cheap_jobs_gets_as_much_as_one_with_costly_jobs() {
    shares_costs(&mut queue());
}

#[test]
fn a_tenant_gets_as_much_as_it_weighs() {
    let (mut queue, [light, heavy]) = (queue(), ["light", "heavy"].map(Arc::from));
    for job in 0..1000 {
        queue.push(&light, 0, job);
        queue.push_weighted(&heavy, 4, 0, 1000 + job);
    }
    let of_light = run(&mut queue, 500, |_| 100).into_iter().filter(|job| *job < 1000).count();
    assert!((95..=105).contains(&of_light), "{of_light} of 500");
}

#[test]
fn a_known_cost_is_charged_before_the_job_runs() {
    let (mut queue, [cheap, costly]) = (queue(), ["cheap", "costly"].map(Arc::from));
    for job in 0..9 {
        queue.push_known(&costly, 1, 1000, 1000 + job);
        queue.push_known(&cheap, 1, 100, job);
    }
    // All of them run at once, so nothing was settled yet.
    let started: Vec<_> = std::iter::from_fn(|| queue.pop(0, |_| true)).take(10).collect();
    assert_eq!(started.iter().filter(|(_, job)| *job >= 1000).count(), 1);
    started.into_iter().for_each(|(turn, _)| queue.done(turn, None));
    assert!(queue.pop(0, |next| next.expected_cost < 100).is_none(), "what was not run is known as well");
}

#[test]
fn no_cost_makes_the_queue_unfair_for_ever() {
    let (mut queue, wrong) = (queue(), "wrong".into());
    for _ in 0..10 {
        queue.push(&wrong, 0, 0);
        run(&mut queue, 1, |_| u64::MAX);
    }
    shares_costs(&mut queue);
}

#[test]
fn a_tenant_at_its_limit_is_passed_over() {
    let (mut queue, [a, b]) = (queue(), ["a", "b"].map(Arc::from));
    for job in 0..3 {
        queue.push(&a, 0, job);
    }
    let first = queue.pop(0, |next| next.running < 1).unwrap();
    assert!(queue.pop(0, |next| next.running < 1).is_none());
    queue.push(&b, 0, 10);
    let (turn, job) = queue.pop(0, |next| next.running < 1).unwrap();
    assert_eq!((first.1, job), (0, 10));
    queue.done(turn, None);
    queue.done(first.0, Some(1));
    assert_eq!(run(&mut queue, 9, |_| 1), [1, 2]);
}

#[test]
fn a_removed_job_does_not_run() {
    let (mut queue, [a, b]) = (queue(), ["a", "b"].map(Arc::from));
    let numbers: Vec<u64> = (0..3).map(|job| queue.push(&a, 0, job)).collect();
    assert_eq!((queue.remove("a", numbers[1]), queue.remove("a", numbers[1]), queue.waiting("a")), (Some(1), None, 2));
    assert_eq!(run(&mut queue, 9, |_| 1), [0, 2]);
    assert_eq!(queue.remove("a", numbers[0]), None, "it ran");
    // A tenant whose only job is removed is idle, whether or not another one runs.
    let only = queue.push(&b, 0, 5);
    assert_eq!((queue.remove("b", only), queue.is_idle()), (Some(5), true));
    queue.push(&b, 0, 6);
    let (turn, _) = queue.pop(0, |_| true).unwrap();
    let next = queue.push(&b, 0, 7);
    assert_eq!(queue.remove("b", next), Some(7));
    queue.done(turn, Some(1));
    assert!(queue.is_idle() && queue.idle.len() == 2);
}

#[test]
fn idle_tenants_are_forgotten() {
    let mut queue = queue();
    for number in 0..50_000_u32 {
        queue.push(&number.to_string().into(), 0, number);
        assert_eq!(run(&mut queue, 1, |_| 1), [number]);
    }
    assert!(queue.tenants.len() < 20_000);
}
