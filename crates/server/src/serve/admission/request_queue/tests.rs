//! Which requests run, wait and are refused.

use std::time::Duration;

use super::*;

const LIMITS: Limits = Limits {
    starting_max: 1,
    running_max: 100,
    tenant_running_max: 100,
    shared_running_max: 100,
    shared_cost_max: u64::MAX,
    waiting_max: 10_000,
    tenant_waiting_max: 10_000,
    waiting_timeout: Duration::from_secs(10),
};

fn queue(limits: Limits) -> Arc<RequestQueue> {
    Arc::new(RequestQueue::with("test", limits))
}

/// A request of a tenant that is an owner of its own.
fn enqueue(queue: &Arc<RequestQueue>, tenant: &str) -> Result<WaitingRequest, Refusal> {
    queue.enqueue(&tenant.into(), &Tenant::new(tenant))
}

fn put(queue: &Arc<RequestQueue>, tenant: &str, count: usize) -> Vec<WaitingRequest> {
    (0..count).map(|_| enqueue(queue, tenant).unwrap()).collect()
}

/// The permits of those that have their turn; the others keep waiting.
fn admitted(waiting: &mut Vec<WaitingRequest>) -> Vec<Permit> {
    let mut permits = Vec::new();
    waiting.retain_mut(|waiting| match waiting.turn.try_recv() {
        Ok(permit) => {
            permits.push(permit);
            false
        }
        Err(_) => true,
    });
    permits
}

/// Finishes one request after the other while both tenants wait; returns how many each had.
fn turns(costs: [u64; 2], count: usize) -> [usize; 2] {
    let queue = queue(LIMITS);
    let mut waiting = ["a", "b"].map(|tenant| put(&queue, tenant, count));
    let mut turns = [0; 2];
    for _ in 0..count {
        for (number, waiting) in waiting.iter_mut().enumerate() {
            for permit in admitted(waiting) {
                turns[number] += 1;
                permit.end(costs[number]);
            }
        }
    }
    turns
}

#[test]
fn a_single_request_overtakes_a_caller_with_thousands() {
    let queue = queue(LIMITS);
    let mut many = put(&queue, "many", 900);
    let first = admitted(&mut many).pop().unwrap();
    let mut one = put(&queue, "one", 1);
    assert!(admitted(&mut one).is_empty());
    first.end(1);
    assert_eq!((admitted(&mut one).len(), admitted(&mut many).len()), (1, 0));
}

#[test]
fn callers_share_costs_rather_than_requests() {
    let [cheap, costly] = turns([1, 10], 200);
    assert!(cheap >= 7 * costly && costly > 5, "{cheap} cheap requests, {costly} costly ones");
    let [left, right] = turns([5, 5], 200);
    assert!(left.abs_diff(right) <= 1, "{left} and {right}");
}

#[test]
fn one_caller_leaves_room_for_others_to_wait_and_to_run() {
    let limits = Limits { starting_max: 100, running_max: 8, tenant_running_max: 6, waiting_max: 8, ..LIMITS };
    let queue = queue(limits);
    let enqueue = |tenant: &str| enqueue(&queue, tenant);
    let mut accepted = Vec::new();
    let refusal = loop {
        match enqueue("a") {
            Ok(turn) => accepted.push(turn),
            Err(refusal) => break refusal,
        }
    };
    let running = admitted(&mut accepted);
    assert_eq!((refusal, running.len(), accepted.len()), (Refusal::TenantFull, 4, 4));
    let mut other = vec![enqueue("b").unwrap(), enqueue("b").unwrap()];
    assert_eq!(admitted(&mut other).len(), 2);
    let more: Vec<_> = (0..9).map(|tenant| enqueue(&format!("c{tenant}"))).collect();
    assert!(more.iter().any(Result::is_err), "the room is bounded");
}

#[test]
fn a_flood_runs_little_at_once_while_others_call() {
    let limits = Limits { starting_max: 100, shared_running_max: 5, ..LIMITS };
    let queue = queue(limits);
    let mut flood = put(&queue, "flood", 40);
    let alone = admitted(&mut flood);
    assert_eq!(alone.len(), 40);
    let mut other = put(&queue, "other", 1);
    assert_eq!(admitted(&mut other).len(), 1);
    let mut more = put(&queue, "flood", 40);
    let mut running = alone.into_iter();
    running.by_ref().take(35).for_each(|permit| permit.end(1));
    assert!(admitted(&mut more).is_empty(), "five still run");
    running.next().unwrap().end(1);
    assert_eq!(admitted(&mut more).len(), 1);
}

#[test]
fn costly_requests_of_one_owner_run_less_at_once_while_others_call() {
    let limits = Limits { starting_max: 100, shared_running_max: 8, shared_cost_max: 30, ..LIMITS };
    let queue = queue(limits);
    let running = |cost: u64| {
        let (mut other, mut many) = (put(&queue, "other", 1), put(&queue, "many", 1));
        admitted(&mut other).into_iter().chain(admitted(&mut many)).for_each(|permit| permit.end(cost));
        let mut many = put(&queue, "many", 20);
        admitted(&mut many).len()
    };
    assert_eq!([0, 10, 1000].map(running), [8, 3, 2]);
}

#[test]
fn a_costly_caller_of_an_owner_waits_no_longer_than_its_cheap_ones() {
    let limits = Limits { starting_max: 100, shared_running_max: 8, shared_cost_max: 30, ..LIMITS };
    let (queue, owner) = (queue(limits), "owner".into());
    let run = |tenant: &str, cost| {
        let mut waiting = vec![queue.enqueue(&owner, &Tenant::new(tenant)).unwrap()];
        admitted(&mut waiting).into_iter().for_each(|permit| permit.end(cost));
    };
    run("costly", 1000);
    run("cheap", 1);
    admitted(&mut put(&queue, "other", 1)).into_iter().for_each(|permit| permit.end(1));
    let enqueue = |tenant: &str| queue.enqueue(&owner, &Tenant::new(tenant)).unwrap();
    let mut cheap: Vec<_> = (0..9).map(|_| enqueue("cheap")).collect();
    let mut costly = vec![enqueue("costly")];
    let mut rounds = 0;
    while admitted(&mut costly).is_empty() {
        let running = admitted(&mut cheap);
        assert!(!running.is_empty() && running.len() <= 2, "{} cheap ones run", running.len());
        running.into_iter().for_each(|permit| permit.end(600));
        rounds += 1;
    }
    assert!(rounds <= 3, "it waited for {rounds} rounds");
}

#[test]
fn the_callers_of_one_owner_share_its_room_and_its_turns() {
    let limits = Limits { starting_max: 100, shared_running_max: 4, waiting_max: 16, ..LIMITS };
    let (queue, owner) = (queue(limits), "owner".into());
    let mut other = vec![enqueue(&queue, "another").unwrap()];
    let others = admitted(&mut other);
    let enqueue_one = |number: usize| queue.enqueue(&owner, &Tenant::new(format!("caller-{number}")));
    let mut requests = vec![enqueue_one(0).unwrap()];
    assert_eq!((others.len(), admitted(&mut requests).len()), (1, 1), "two owners call");
    requests.extend((0..32).map_while(|number| enqueue_one(number).ok()));
    let running = admitted(&mut requests);
    assert_eq!((running.len(), requests.len()), (4, 8));
    other.push(enqueue(&queue, "other").unwrap());
    assert_eq!(admitted(&mut other).len(), 1);
    running.into_iter().for_each(|permit| permit.end(1));
    assert_eq!(admitted(&mut requests).len(), 4);
}

#[test]
fn a_network_has_the_room_of_several_callers() {
    let limits = Limits { starting_max: 100, running_max: 100, tenant_running_max: 2, ..LIMITS };
    let running = |weight| {
        let queue = queue(limits);
        let network = Tenant { weight, ..Tenant::new("network") };
        let mut waiting: Vec<_> = (0..50).map(|_| queue.enqueue(&"network".into(), &network).unwrap()).collect();
        admitted(&mut waiting).len()
    };
    assert_eq!([1, 8, 1000].map(running), [2, 16, 50]);
}

#[test]
fn a_full_room_is_not_the_fault_of_a_caller() {
    let queue = queue(Limits { running_max: 1, waiting_max: 1, ..LIMITS });
    let _running = put(&queue, "a", 1);
    let _waiting = put(&queue, "b", 1);
    assert_eq!(enqueue(&queue, "c").err(), Some(Refusal::Full));
}

#[test]
fn the_next_request_starts_as_soon_as_one_waits_for_something() {
    let queue = queue(LIMITS);
    let mut waiting = put(&queue, "a", 2);
    let mut first = admitted(&mut waiting).pop().unwrap();
    assert!(admitted(&mut waiting).is_empty());
    first.note_started();
    assert_eq!(admitted(&mut waiting).len(), 1);
}

#[test]
fn who_stops_waiting_makes_room() {
    for limits in [Limits { tenant_waiting_max: 5, ..LIMITS }, Limits { waiting_max: 5, ..LIMITS }] {
        let queue = queue(Limits { running_max: 1, ..limits });
        let _running = put(&queue, "a", 1);
        let mut waiting = Vec::new();
        while let Ok(another) = enqueue(&queue, "a") {
            waiting.push(another);
        }
        let count = waiting.len();
        drop(waiting);
        assert_eq!(put(&queue, "a", count).len(), count);
    }
}

#[test]
fn requests_whose_clients_have_gone_take_no_turn() {
    let queue = queue(Limits { running_max: 1, ..LIMITS });
    let mut waiting = put(&queue, "a", 10);
    let first = admitted(&mut waiting).pop().unwrap();
    let mut last = vec![waiting.pop().unwrap()];
    drop(waiting);
    first.end(1);
    let last = admitted(&mut last);
    assert_eq!(last.len(), 1);
    // One that is admitted and goes away before it knows gives its turn back, too.
    let unaware = put(&queue, "a", 1);
    drop(last);
    drop(unaware);
    let state = queue.lock();
    assert_eq!((state.running, state.starting, state.waiting_count), (0, 0, 0));
}
