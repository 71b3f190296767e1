//! Routing keys, as the handler of The Things Network v2 made them.

use types::AppId;

use crate::message::{OutputMessage, is_own_topic};

/// `<app_id>.devices.<dev_id>.up`, or `<app_id>.devices.<dev_id>.events.<event>`. An event keeps its slashes.
pub(super) fn key(app_id: &AppId, message: &OutputMessage) -> String {
    let event = &message.event;
    match &message.dev_id {
        Some(dev_id) if is_own_topic(event) => format!("{app_id}.devices.{dev_id}.{event}"),
        Some(dev_id) => format!("{app_id}.devices.{dev_id}.events.{event}"),
        None => format!("{app_id}.events.{event}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_those_of_v2() {
        let key = |dev_id: Option<&str>, event: &str| {
            let body = serde_json::value::to_raw_value(&1).unwrap();
            let (dev_id, event) = (dev_id.map(|dev_id| dev_id.parse().unwrap()), event.to_owned());
            let time = types::Timestamp::default();
            key(&"my-app".parse().unwrap(), &OutputMessage { dev_id, event, time, identity: 0, body })
        };
        assert_eq!(key(Some("dev-1"), "up"), "my-app.devices.dev-1.up");
        assert_eq!(key(Some("dev-1"), "activations"), "my-app.devices.dev-1.events.activations");
        assert_eq!(key(Some("dev-1"), "down/sent"), "my-app.devices.dev-1.events.down/sent");
        assert_eq!(key(Some("dev-1"), "up/errors"), "my-app.devices.dev-1.events.up/errors");
        assert_eq!(key(None, "dropped"), "my-app.events.dropped");
    }
}
