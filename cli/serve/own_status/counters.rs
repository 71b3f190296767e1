//! The counters that operators see, out of the metrics of this process.

use std::{cmp::Reverse, collections::BTreeMap};

use console::{ApplicationLoad, Count, FunctionCounts, HistoryState, Queue, ServiceLoad};

use super::samples::Samples;

/// Maximum number of applications.
const APPLICATIONS_MAX: usize = 20;

const REQUESTS: &str = "airlock_requests_total";
const REQUESTS_RUNNING: &str = "airlock_requests_running";
const REQUESTS_WAITING: &str = "airlock_requests_waiting";
const REQUESTS_REFUSED: &str = "airlock_requests_refused_total";
const BUDGET_USED: &str = "airlock_budget_used";
const SANDBOX_WAITING: &str = "airlock_sandbox_waiting_messages";
const MQTT_QUEUED: &str = "airlock_mqtt_queued_messages";
const MQTT_QUEUED_BYTES: &str = "airlock_mqtt_queued_bytes";
const MQTT_DROPPED: &str = "airlock_mqtt_dropped_total";
const OUTPUT_QUEUED: &str = "airlock_output_queued_messages";
const OUTPUT_MESSAGES: &str = "airlock_output_messages_total";
const OUTPUT_CONNECTED: &str = "airlock_output_connected";
const APPLICATION_CLIENTS: &str = "airlock_mqtt_application_connections";
const APPLICATION_QUEUED: &str = "airlock_mqtt_application_queued_messages";
const APPLICATION_DELIVERED: &str = "airlock_mqtt_application_delivered_total";
const APPLICATION_DROPPED: &str = "airlock_mqtt_application_dropped_total";
const HISTORY_KEPT: &str = "airlock_history_kept";
const HISTORY_LOST: &str = "airlock_history_lost_records_total";
const HISTORY_DAMAGED: &str = "airlock_history_damaged_files";
const OUTCOMES: &str = "airlock_uplink_outcomes_total";
const SANDBOX_TIME: &str = "airlock_sandbox_seconds";
const SANDBOX_FUEL: &str = "airlock_sandbox_fuel";

/// The counters of networks, and of the external broker: what each counts, and the label that tells more.
const OF_NETWORKS: [(&str, &str, &str); 6] = [
    ("airlock_bridge_uplinks_total", "uplinks", "result"),
    ("airlock_bridge_events_total", "other events", "result"),
    ("airlock_bridge_retried_total", "attempts to hand events over that are repeated", ""),
    ("airlock_bridge_dropped_total", "messages dropped", "reason"),
    ("airlock_bridge_api_failures_total", "failed API calls", "kind"),
    ("airlock_bridge_webhook_refusals_total", "refused requests of webhooks", "status"),
];

/// The state of the process in numbers, for operators.
#[derive(Default)]
pub(super) struct Counters {
    pub(super) services: Vec<ServiceLoad>,
    pub(super) queues: Vec<Queue>,
    pub(super) applications: Vec<ApplicationLoad>,
    pub(super) history: HistoryState,
    pub(super) functions: FunctionCounts,
}

impl Counters {
    pub(super) fn of(samples: &Samples<'_>) -> Self {
        Self {
            services: services(samples),
            queues: queues(samples),
            applications: applications(samples),
            history: history(samples),
            functions: functions(samples),
        }
    }
}

fn services(samples: &Samples<'_>) -> Vec<ServiceLoad> {
    let running = samples.by(REQUESTS_RUNNING, "service");
    let (waiting, refused) = (samples.by(REQUESTS_WAITING, "service"), samples.by(REQUESTS_REFUSED, "service"));
    let mut failed: BTreeMap<&str, f64> = BTreeMap::new();
    for sample in samples.of(REQUESTS).filter(|sample| sample.label("status").starts_with('5')) {
        *failed.entry(sample.label("service")).or_default() += sample.value;
    }
    // Telemetry answers probes with 503 while another service fails.
    let services = running.into_iter().filter(|(name, _)| *name != "telemetry");
    let load = |(name, running): (&str, f64)| ServiceLoad {
        name: name.to_owned(),
        running: running as u64,
        waiting: count(&waiting, name),
        refused: count(&refused, name),
        failed: count(&failed, name),
    };
    services.map(load).collect()
}

fn queues(samples: &Samples<'_>) -> Vec<Queue> {
    let sum = |name| samples.sum(name).map(|sum| sum as u64);
    let mqtt = Queue {
        name: "MQTT clients".to_owned(),
        waiting: sum(MQTT_QUEUED).unwrap_or_default(),
        bytes: sum(MQTT_QUEUED_BYTES),
        lost: Some(sum(MQTT_DROPPED).unwrap_or_default()),
        is_connected: None,
    };
    let queue = |name: String, waiting: u64| Queue { name, waiting, ..Queue::default() };
    let budgets = samples.by(BUDGET_USED, "resource");
    let sandboxes = samples.by(SANDBOX_WAITING, "pool");
    let mut queues = vec![mqtt];
    queues.extend(sandboxes.into_iter().map(|(pool, waiting)| queue(format!("sandboxes ({pool})"), waiting as u64)));
    queues.push(queue("downlinks on their way to their queues".to_owned(), count(&budgets, "downlinks")));
    queues.push(queue("deliveries in flight".to_owned(), count(&budgets, "deliveries")));
    queues.extend(outputs(samples));
    queues
}

/// The outputs that have a queue: webhooks together, and each of the operator's.
fn outputs(samples: &Samples<'_>) -> impl Iterator<Item = Queue> {
    let mut queues: BTreeMap<(&str, &str), Queue> = BTreeMap::new();
    for sample in [OUTPUT_QUEUED, OUTPUT_MESSAGES, OUTPUT_CONNECTED].into_iter().flat_map(|name| samples.of(name)) {
        let (kind, name) = (sample.label("output"), sample.label("name"));
        let new = || Queue { name: output(kind, name), lost: Some(0), ..Queue::default() };
        let queue = queues.entry((kind, name)).or_insert_with(new);
        match (sample.name, sample.label("result")) {
            (OUTPUT_QUEUED, _) => queue.waiting = sample.value as u64,
            (OUTPUT_CONNECTED, _) => queue.is_connected = Some(sample.value > 0.0),
            (_, "dead" | "dropped") => queue.lost = queue.lost.map(|lost| lost + sample.value as u64),
            _ => {}
        }
    }
    queues.into_values()
}

fn output(kind: &str, name: &str) -> String {
    match (kind, name) {
        ("webhook", _) => "webhooks".to_owned(),
        // Messages that are too large for every output.
        ("all", _) => "all outputs".to_owned(),
        _ => format!("{kind} {name}"),
    }
}

/// The applications with MQTT clients, or messages for some: those with the longest queues.
fn applications(samples: &Samples<'_>) -> Vec<ApplicationLoad> {
    let by_application = |name| samples.by(name, "application");
    let clients = by_application(APPLICATION_CLIENTS);
    let [waiting, delivered, lost] =
        [APPLICATION_QUEUED, APPLICATION_DELIVERED, APPLICATION_DROPPED].map(by_application);
    let load = |(name, clients): (&str, f64)| ApplicationLoad {
        name: if name == "_other" { "all others".to_owned() } else { name.to_owned() },
        clients: clients as u64,
        waiting: count(&waiting, name),
        delivered: count(&delivered, name),
        lost: count(&lost, name),
    };
    let mut all: Vec<_> = clients.into_iter().map(load).collect();
    all.sort_by_key(|application| Reverse((application.waiting, application.lost, application.delivered)));
    all.truncate(APPLICATIONS_MAX);
    all
}

fn history(samples: &Samples<'_>) -> HistoryState {
    let lost = samples.by(HISTORY_LOST, "reason").into_iter().filter(|(_, count)| *count > 0.0);
    let lost = lost.map(|(reason, count)| Count { what: reason.replace('_', " "), count: count as u64 });
    HistoryState {
        is_kept: samples.sum(HISTORY_KEPT).map(|kept| kept > 0.0),
        lost: lost.collect(),
        damaged_files: samples.sum(HISTORY_DAMAGED).unwrap_or_default() as u64,
    }
}

fn functions(samples: &Samples<'_>) -> FunctionCounts {
    let outcome = |(outcome, count): (&str, f64)| Count { what: outcome.replace('_', " "), count: count as u64 };
    FunctionCounts {
        outcomes: samples.by(OUTCOMES, "outcome").into_iter().map(outcome).collect(),
        mean_fuel: mean(samples, SANDBOX_FUEL).map(|fuel| fuel as u64),
        mean_time_us: mean(samples, SANDBOX_TIME).map(|seconds| (seconds * 1e6) as u64),
    }
}

/// The mean of a histogram; none if it is empty.
fn mean(samples: &Samples<'_>, name: &str) -> Option<f64> {
    let count = samples.sum(&format!("{name}_count")).filter(|count| *count > 0.0)?;
    Some(samples.sum(&format!("{name}_sum"))? / count)
}

/// Events and failures of all networks together, and of the external broker.
pub(super) fn network_counts(samples: &Samples<'_>) -> Vec<Count> {
    OF_NETWORKS.into_iter().flat_map(|counter| counts_by(samples, counter)).collect()
}

fn counts_by(samples: &Samples<'_>, (name, what, label): (&str, &str, &str)) -> Vec<Count> {
    let counts = samples.by(name, label).into_iter().map(|(value, count)| Count {
        what: if value.is_empty() { what.to_owned() } else { format!("{what}: {value}") },
        count: count as u64,
    });
    counts.collect()
}

fn count(sums: &BTreeMap<&str, f64>, name: &str) -> u64 {
    sums.get(name).map_or(0, |sum| *sum as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counters(lines: &[&str]) -> Counters {
        Counters::of(&Samples::parse(&lines.join("\n")))
    }

    #[test]
    fn every_metric_is_documented() {
        let documented = include_str!("../../../docs/operating.md");
        let read = [
            REQUESTS,
            REQUESTS_RUNNING,
            REQUESTS_WAITING,
            REQUESTS_REFUSED,
            BUDGET_USED,
            SANDBOX_WAITING,
            MQTT_QUEUED,
            MQTT_QUEUED_BYTES,
            MQTT_DROPPED,
            OUTPUT_QUEUED,
            OUTPUT_MESSAGES,
            OUTPUT_CONNECTED,
            APPLICATION_CLIENTS,
            APPLICATION_QUEUED,
            APPLICATION_DELIVERED,
            APPLICATION_DROPPED,
            HISTORY_KEPT,
            HISTORY_LOST,
            HISTORY_DAMAGED,
            OUTCOMES,
            SANDBOX_TIME,
            SANDBOX_FUEL,
        ];
        for name in read.into_iter().chain(OF_NETWORKS.map(|(name, ..)| name)) {
            assert!(documented.contains(&format!("`{name}`")), "{name}");
        }
    }

    #[test]
    fn a_queue_has_what_waits_and_what_was_lost() {
        let queues = counters(&[
            r#"airlock_output_queued_messages{output="amqp",name="bus"} 3"#,
            r#"airlock_output_messages_total{output="amqp",name="bus",result="delivered"} 9"#,
            r#"airlock_output_messages_total{output="amqp",name="bus",result="dead"} 1"#,
            r#"airlock_output_messages_total{output="amqp",name="bus",result="dropped"} 2"#,
            r#"airlock_output_connected{output="amqp",name="bus"} 0"#,
            r#"airlock_output_queued_messages{output="webhook",name=""} 4"#,
            r#"airlock_budget_used{resource="downlinks"} 5"#,
            "airlock_mqtt_queued_bytes 700",
        ])
        .queues;
        let find = |name: &str| queues.iter().find(|queue| queue.name == name).unwrap();
        let bus = find("amqp bus");
        assert_eq!((bus.waiting, bus.lost, bus.is_connected), (3, Some(3), Some(false)));
        assert_eq!((find("webhooks").waiting, find("webhooks").is_connected), (4, None));
        assert_eq!(find("downlinks on their way to their queues").waiting, 5);
        assert_eq!((find("MQTT clients").waiting, find("MQTT clients").bytes), (0, Some(700)));
    }

    #[test]
    fn a_service_has_its_refusals_and_failures() {
        let services = counters(&[
            r#"airlock_requests_running{service="handler"} 2"#,
            r#"airlock_requests_refused_total{service="handler",reason="full"} 1"#,
            r#"airlock_requests_refused_total{service="handler",reason="body"} 1"#,
            r#"airlock_requests_total{service="handler",status="200"} 90"#,
            r#"airlock_requests_total{service="handler",status="503"} 7"#,
        ])
        .services;
        let [handler] = &*services else { panic!("{services:?}") };
        assert_eq!((handler.running, handler.waiting, handler.refused, handler.failed), (2, 0, 2, 7));
    }

    #[test]
    fn history_says_whether_it_keeps_records_and_what_it_lost_or_keeps_aside() {
        let history = counters(&[
            "airlock_history_kept 0",
            r#"airlock_history_lost_records_total{reason="full"} 3"#,
            r#"airlock_history_lost_records_total{reason="too_large"} 1"#,
            r#"airlock_history_lost_records_total{reason="slow"} 0"#,
            "airlock_history_damaged_files 2",
        ])
        .history;
        let lost: Vec<_> = history.lost.iter().map(|lost| (lost.what.as_str(), lost.count)).collect();
        assert_eq!((history.is_kept, &lost[..]), (Some(false), &[("full", 3), ("too large", 1)][..]));
        assert_eq!(history.damaged_files, 2);
        let none = counters(&[]).history;
        assert_eq!((none.is_kept, none.damaged_files), (None, 0));
    }

    #[test]
    fn functions_have_means_once_they_have_run() {
        let functions = counters(&[
            r#"airlock_uplink_outcomes_total{outcome="not_converted",version="live"} 1"#,
            r#"airlock_uplink_outcomes_total{outcome="not_converted",version="none"} 2"#,
            "airlock_sandbox_fuel_sum 3000",
            "airlock_sandbox_fuel_count 2",
            "airlock_sandbox_seconds_sum 0.0005",
            "airlock_sandbox_seconds_count 2",
        ])
        .functions;
        assert_eq!((functions.mean_fuel, functions.mean_time_us), (Some(1500), Some(250)));
        assert_eq!((functions.outcomes[0].what.as_str(), functions.outcomes[0].count), ("not converted", 3));
        assert_eq!(counters(&[]).functions.mean_fuel, None);
    }
}
