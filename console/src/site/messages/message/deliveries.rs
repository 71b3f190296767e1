//! The fate of a message at each output, as far as that is known: of what was delivered, handlers remember the newest.

use api::{
    history::Record,
    rest::handler::{Delivery, DeliveryState, Webhook},
};
use types::{Kind, Kinded};

use crate::{
    Result,
    site::{
        failure::{Problem, log},
        page::{Time, milliseconds, short},
        viewer::InApplication,
    },
};

/// The kind of receivers that belong to the application.
const WEBHOOK: &str = "webhook";

/// The receivers of such messages, each with what became of this one.
#[derive(Default)]
pub(super) struct Deliveries {
    pub(super) all: Vec<Row>,
    /// The reason why nothing is known.
    pub(super) problem: Option<Problem>,
}

/// The message at a receiver.
pub(super) struct Row {
    pub(super) label: String,
    /// The id of the webhook, if it is one.
    pub(super) webhook: String,
    /// The state in a word or two; empty if there is nothing to do about it.
    pub(super) state: &'static str,
    pub(super) is_bad: bool,
    pub(super) is_good: bool,
    /// When it was delivered or given up, or else since when nothing gets through.
    pub(super) time: Option<Time>,
    pub(super) text: String,
    /// When which attempts begin, if they pause after failures.
    pub(super) next: Option<(String, Time)>,
    /// Names it on the page of the webhook; empty if it is not there.
    pub(super) anchor: String,
    /// Names it among those that the webhook did not take; otherwise empty.
    pub(super) dead_letter: String,
    /// Names the receiver to those who send the message again.
    pub(super) to: String,
}

impl Deliveries {
    /// Asks what became of a message; nothing for what may not have been published.
    pub(super) async fn of(request: &InApplication, record: &Record) -> Self {
        if !record.corrects.is_empty() {
            return Self::default();
        }
        match find(request, record).await {
            Ok(all) => Self { all, problem: None },
            Err(error) if matches!(error.kind(), Kind::Denied | Kind::NotFound) => Self::default(),
            Err(error) => {
                log(&error);
                Self { all: Vec::new(), problem: Some(Problem::of(&error)) }
            }
        }
    }
}

async fn find(request: &InApplication, record: &Record) -> Result<Vec<Row>> {
    let Some(client) = request.console.deliveries(&request.access).await? else { return Ok(Vec::new()) };
    let deliveries = client.of(&record.id).await?;
    let waits = |delivery: &Delivery| delivery.kind == WEBHOOK && delivery.state == DeliveryState::Waiting;
    let webhooks = match request.console.webhooks(&request.access).await? {
        Some(client) if deliveries.iter().any(waits) => client.list().await?,
        _ => Vec::new(),
    };
    Ok(deliveries.into_iter().map(|delivery| Row::new(delivery, &webhooks)).collect())
}

impl Row {
    fn new(delivery: Delivery, webhooks: &[Webhook]) -> Self {
        let webhook = if delivery.kind == WEBHOOK { delivery.name.clone() } else { String::new() };
        let stopped = webhooks.iter().find(|known| known.id.as_str() == webhook);
        let stopped = stopped.and_then(|webhook| webhook.stopped.as_deref());
        let (state, is_bad, text) = match delivery.state {
            DeliveryState::Unkept => unkept(&delivery),
            DeliveryState::Waiting => waiting(&delivery, stopped),
            DeliveryState::Delivered => ("delivered", false, delivered(&delivery)),
            DeliveryState::GivenUp => ("not taken", true, given_up(&delivery)),
            DeliveryState::Settled => ("", false, settled(delivery.is_uncertain)),
        };
        let time = delivery
            .delivered_at
            .or(delivery.failed_at)
            .or_else(|| delivery.failing.as_ref().map(|failing| failing.since));
        let to = match delivery.kind.as_str() {
            "mqtt" | "broker" => "mqtt".to_owned(),
            WEBHOOK => format!("webhook:{webhook}"),
            _ => format!("output:{}", delivery.name),
        };
        Self {
            label: label(&delivery),
            anchor: anchor(&delivery),
            webhook,
            state,
            is_bad,
            is_good: delivery.state == DeliveryState::Delivered,
            time: time.map(|time| Time(time.as_nanos())),
            text,
            next: delivery
                .next_at
                .filter(|_| stopped.is_none())
                .map(|at| (next(delivery.attempts), Time(at.as_nanos()))),
            dead_letter: delivery.dead_letter,
            to,
        }
    }
}

/// The row of the message at a webhook. It has only the newest, so this may lead to the top of the page.
fn anchor(Delivery { kind, delivered_at, failed_at, dead_letter, .. }: &Delivery) -> String {
    if kind != WEBHOOK {
        return String::new();
    }
    if !dead_letter.is_empty() {
        return format!("letter-{dead_letter}");
    }
    delivered_at.or(*failed_at).map(|at| format!("delivery-{}", at.as_nanos())).unwrap_or_default()
}

fn label(Delivery { kind, name, .. }: &Delivery) -> String {
    match kind.as_str() {
        "mqtt" => "MQTT subscribers".to_owned(),
        "broker" => "The external MQTT broker".to_owned(),
        WEBHOOK => format!("Webhook {name}"),
        "amqp" => format!("AMQP {name}"),
        "redis" => format!("Redis {name}"),
        "kafka" => format!("Kafka {name}"),
        kind => format!("{kind} {name}"),
    }
}

/// Of what went to those who were there.
fn unkept(Delivery { kind, subscribers, .. }: &Delivery) -> (&'static str, bool, String) {
    match (kind.as_str(), subscribers.unwrap_or_default()) {
        ("broker", 0) => ("not connected", true, "Uplinks are refused until it is back.".to_owned()),
        ("broker", _) => {
            let text =
                "It is connected. An uplink that it does not confirm is refused, so that its network repeats it.";
            ("", false, text.to_owned())
        }
        (_, 0) => ("", false, "Nobody gets such messages now. What each of them has got is not kept.".to_owned()),
        (_, 1) => ("", false, "One gets such messages now. What each of them has got is not kept.".to_owned()),
        (_, count) => ("", false, format!("{count} get such messages now. What each of them has got is not kept.")),
    }
}

fn waiting(delivery: &Delivery, stopped: Option<&str>) -> (&'static str, bool, String) {
    let sent = match delivery.attempts {
        0 => String::new(),
        attempts => format!(" It was sent {}.", times(attempts)),
    };
    let state = if delivery.attempts > 0 { "being tried" } else { "waits" };
    match (stopped, &delivery.failing) {
        (Some(reason), _) => ("stopped", true, short(reason)),
        (None, None) => (state, false, format!("It waits for its turn.{sent}")),
        (None, Some(failing)) if failing.reason.is_empty() => {
            (state, true, format!("Nothing has got through since then. The log of the server says why.{sent}"))
        }
        (None, Some(failing)) => {
            let reason = short(&failing.reason);
            (state, true, format!("Nothing has got through since then, the last time: {reason}.{sent}"))
        }
    }
}

/// When the attempts that follow begin.
fn next(attempts: u32) -> String {
    match attempts {
        0 => "The next attempts at this receiver begin".to_owned(),
        attempts => format!("Attempt {} follows", attempts.saturating_add(1)),
    }
}

fn delivered(Delivery { status, duration_us, attempts, .. }: &Delivery) -> String {
    let status = status.map(|status| format!("status {status}, "));
    let duration = duration_us.map(|duration| format!("{}, ", milliseconds(duration)));
    format!("{}{}attempt {attempts}.", status.unwrap_or_default(), duration.unwrap_or_default())
}

fn given_up(Delivery { kind, dead_letter, attempts, reason, .. }: &Delivery) -> String {
    let attempts = if *attempts == 1 { "1 attempt".to_owned() } else { format!("{attempts} attempts") };
    match reason.is_empty() {
        true if kind == WEBHOOK && dead_letter.is_empty() => format!("after {attempts}. The answer was deleted."),
        true => format!("after {attempts}. The log of the server says why."),
        false => format!("after {attempts}: {}", short(reason)),
    }
}

/// Describes a message that neither waits nor was given up.
fn settled(is_uncertain: bool) -> String {
    let rest = match is_uncertain {
        true => " So many messages came after it that not all were looked at.",
        false => "",
    };
    format!(
        "No longer known: it was delivered, or dropped as one of the oldest of a full queue. Only the newest deliveries of \
         each receiver are remembered, and until the handler is restarted. A receiver that was set up later has not had \
         it.{rest}"
    )
}

fn times(attempts: u32) -> String {
    if attempts == 1 { "once".to_owned() } else { format!("{attempts} times") }
}

#[cfg(test)]
mod tests {
    use api::rest::handler::Failing;
    use types::Timestamp;

    use super::*;

    fn row(delivery: Delivery) -> Row {
        Row::new(delivery, &[])
    }

    fn of(kind: &str, state: DeliveryState) -> Delivery {
        Delivery { kind: kind.to_owned(), name: "one".to_owned(), state, ..Delivery::default() }
    }

    #[test]
    fn nothing_is_said_to_be_delivered_that_may_not_be() {
        let text = row(of("amqp", DeliveryState::Settled)).text;
        assert!(
            text.starts_with("No longer known: it was delivered, or dropped") && !text.contains("not all"),
            "{text}"
        );
        assert!(text.contains("set up later"), "{text}");
        let uncertain = Delivery { is_uncertain: true, ..of("amqp", DeliveryState::Settled) };
        assert!(row(uncertain).text.contains("not all were looked at"));
        let subscribers = Delivery { subscribers: Some(3), ..of("mqtt", DeliveryState::Unkept) };
        assert!(row(subscribers).text.starts_with("3 get such messages now"));
        assert!(row(of("mqtt", DeliveryState::Unkept)).text.starts_with("Nobody gets such messages now"));
    }

    #[test]
    fn what_fails_says_since_when_and_what_the_operator_alone_may_see_is_in_the_log() {
        let since = Timestamp::from_millis(1000);
        let failing = |reason: &str| Some(Failing { since, last: since, reason: reason.to_owned() });
        let waiting = Delivery { attempts: 2, failing: failing("500"), ..of("webhook", DeliveryState::Waiting) };
        let Row { state, is_bad, text, time, webhook, .. } = row(waiting);
        assert_eq!((state, is_bad, webhook.as_str()), ("being tried", true, "one"));
        assert_eq!(time.map(|time| time.0), Some(1_000_000_000));
        assert!(text.ends_with("the last time: 500. It was sent 2 times."), "{text}");
        let Row { text, to, label, webhook, .. } = row(Delivery { attempts: 1, ..of("kafka", DeliveryState::GivenUp) });
        assert_eq!((to.as_str(), label.as_str(), webhook.as_str()), ("output:one", "Kafka one", ""));
        assert_eq!(text, "after 1 attempt. The log of the server says why.");
        let away = Delivery { subscribers: Some(0), ..of("broker", DeliveryState::Unkept) };
        assert!(row(away).is_bad);
        let given_up = Delivery { dead_letter: "0001".to_owned(), ..of("webhook", DeliveryState::GivenUp) };
        assert_eq!(row(given_up).anchor, "letter-0001");
    }

    #[test]
    fn a_delivery_says_when_and_how_and_an_attempt_that_follows_says_when() {
        let at = Some(Timestamp::from_millis(1000));
        let delivery = Delivery {
            delivered_at: at,
            attempts: 2,
            status: Some(200),
            duration_us: Some(34_000),
            ..of("webhook", DeliveryState::Delivered)
        };
        let Row { state, is_good, text, time, anchor, .. } = row(delivery);
        assert_eq!((state, is_good, text.as_str()), ("delivered", true, "status 200, 34 ms, attempt 2."));
        assert_eq!((time.map(|time| time.0), anchor.as_str()), (Some(1_000_000_000), "delivery-1000000000"));
        let confirmed =
            Delivery { delivered_at: at, attempts: 1, duration_us: Some(340), ..of("amqp", DeliveryState::Delivered) };
        let confirmed = row(confirmed);
        assert_eq!((confirmed.text.as_str(), confirmed.anchor.as_str()), ("0.3 ms, attempt 1.", ""));
        for (attempts, expected) in [(0, "The next attempts at this receiver begin"), (2, "Attempt 3 follows")] {
            let waiting = row(Delivery { attempts, next_at: at, ..of("webhook", DeliveryState::Waiting) });
            assert_eq!(waiting.next.map(|(text, at)| (text, at.0)), Some((expected.to_owned(), 1_000_000_000)));
        }
        let deleted = row(Delivery { attempts: 1, ..of("webhook", DeliveryState::GivenUp) });
        assert_eq!(deleted.text, "after 1 attempt. The answer was deleted.");
    }
}
