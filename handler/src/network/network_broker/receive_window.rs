//! Deadline for answering an uplink: a device listens once or twice, a second or two after it has sent.
//!
//! A router keeps uplinks while it has lost its network broker, and forwards them late. What answers such an uplink
//! reaches no gateway in time, and nobody reports that. The times are those of two machines, whose clocks may differ
//! by a second: uplinks that were kept are later than that, and a downlink that comes a little late is better than
//! none.

use std::{ops::RangeInclusive, time::Duration};

use api::{
    broker::{DeduplicatedUplinkMessage, DownlinkOption},
    gateway::RxMetadata,
    trace::Trace,
};
use types::Timestamp;

/// The delays of LoRaWAN, and some more. Others were not counted by the gateway that received the uplink, as where it
/// has no clock.
const DELAYS: RangeInclusive<Duration> = Duration::from_millis(500)..=Duration::from_secs(16);
/// Maximum difference between the clocks of the router and the handler.
const CLOCKS_DIFFER_MAX: Duration = Duration::from_secs(1);

/// Returns the time when the device certainly stops listening for the answer for which the message has a template;
/// none if the message does not tell.
pub(super) fn answer_by(message: &DeduplicatedUplinkMessage) -> Option<Timestamp> {
    let option = message.response_template.as_ref()?.downlink_option.as_ref()?;
    let delay = delay(option, &message.gateway_metadata)?;
    Some(routed(message.trace.as_ref()?)?.plus(delay).plus(CLOCKS_DIFFER_MAX))
}

/// Returns the delay of the answer after the uplink, by the clock of the gateway.
fn delay(option: &DownlinkOption, receptions: &[RxMetadata]) -> Option<Duration> {
    let received = receptions.iter().find(|reception| reception.gateway_id == option.gateway_id)?.timestamp;
    // The clock counts microseconds, and starts again after 71 minutes.
    let micros = option.gateway_configuration.as_ref()?.timestamp.wrapping_sub(received);
    Some(Duration::from_micros(micros.into())).filter(|delay| DELAYS.contains(delay))
}

/// Returns the time when the last of the routers received the uplink; none if the trace does not have it.
fn routed(trace: &Trace) -> Option<Timestamp> {
    let (mut left, mut last) = (vec![trace], None);
    while let Some(step) = left.pop() {
        if step.service_name == "router" && step.event == "receive" {
            last = last.max(Some(step.time));
        }
        left.extend(&step.parents);
    }
    last.map(Timestamp::from_nanos)
}

#[cfg(test)]
mod tests {
    use api::{broker::DownlinkMessage, gateway::TxConfiguration};

    use super::*;

    const SECOND: i64 = 1_000_000_000;

    fn step(service_name: &str, event: &str, time_s: i64, parents: Vec<Trace>) -> Trace {
        let (service_name, event) = (service_name.to_owned(), event.to_owned());
        Trace { service_name, event, time: time_s * SECOND, parents, ..Trace::default() }
    }

    /// An uplink that two gateways received, at these times of their own clocks.
    fn message(received: [u32; 2], sends_at: u32) -> DeduplicatedUplinkMessage {
        let routed = |time_s| {
            let received = step("router", "receive", time_s, Vec::new());
            step("broker", "receive", 60, vec![step("router", "forward", 50, vec![received])])
        };
        let reception = |(gateway_id, timestamp): (&str, u32)| RxMetadata {
            gateway_id: gateway_id.to_owned(),
            timestamp,
            ..RxMetadata::default()
        };
        let option = DownlinkOption {
            gateway_id: "b".to_owned(),
            gateway_configuration: Some(TxConfiguration { timestamp: sends_at, ..TxConfiguration::default() }),
            ..DownlinkOption::default()
        };
        DeduplicatedUplinkMessage {
            gateway_metadata: ["a", "b"].into_iter().zip(received).map(reception).collect(),
            response_template: Some(DownlinkMessage { downlink_option: Some(option), ..DownlinkMessage::default() }),
            trace: Some(step("broker", "deduplicate", 61, vec![routed(10), routed(11)])),
            ..DeduplicatedUplinkMessage::default()
        }
    }

    // Conformance: An uplink that the network forwards too late gets no downlink
    #[test]
    fn an_answer_is_in_time_until_a_second_after_the_gateway_sends_it() {
        let at = |millis| Some(Timestamp::from_millis(millis));
        assert_eq!(answer_by(&message([7, 5_000_000], 6_000_000)), at(13_000));
        assert_eq!(
            answer_by(&message([7, u32::MAX], 1_999_999)),
            at(14_000),
            "the clock of the gateway has started again"
        );
    }

    // Conformance: An uplink that the network forwards too late gets no downlink
    #[test]
    fn a_message_that_does_not_say_when_it_was_received_has_no_deadline() {
        let whole = message([7, 5_000_000], 6_000_000);
        for lacking in [
            DeduplicatedUplinkMessage { trace: None, ..whole.clone() },
            DeduplicatedUplinkMessage { trace: Some(step("broker", "receive", 60, Vec::new())), ..whole.clone() },
            DeduplicatedUplinkMessage { gateway_metadata: Vec::new(), ..whole.clone() },
            DeduplicatedUplinkMessage { response_template: None, ..whole.clone() },
            message([7, 5_000_000], 4_000_000),
            // The gateway does not count.
            message([7, 0], 0),
        ] {
            assert_eq!(answer_by(&lacking), None);
        }
    }
}
