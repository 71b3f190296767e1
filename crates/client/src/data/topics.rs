//! Topics to listen to, named as in the data clients of The Things Network v2.

use types::{DevId, Kind};

use super::message::DeviceEventName;
use crate::{Error, Result};

/// The topic of events about messages that the broker has dropped, below the application.
pub(super) const DROPPED: &str = "events/dropped";

/// Messages that a listener hears, as MQTT filters below the application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topics {
    filters: Vec<String>,
}

impl Topics {
    /// Uplinks of all devices.
    pub fn uplinks() -> Self {
        Self { filters: vec!["devices/+/up".to_owned()] }
    }

    /// Uplinks of one device.
    pub fn uplinks_of(dev_id: &DevId) -> Self {
        Self { filters: vec![format!("devices/{dev_id}/up")] }
    }

    /// The messages of an event: `uplink` (alias `message`), `activation` or `activations`, or `event` (alias `device`).
    ///
    /// `dev_id` is the id of a device, or `+` for all devices. `names` are fields of uplinks, or the events of devices
    /// that are listed at [`DeviceEventName`]; several mean any of them, none means all.
    pub fn new(event: &str, dev_id: &str, names: &[&str]) -> Result<Self> {
        if dev_id != "+" {
            dev_id.parse::<DevId>().map_err(|error| invalid(error.to_string()))?;
        }
        let levels = match event {
            "uplink" | "message" => uplinks(names)?,
            "activation" | "activations" if names.is_empty() => vec!["events/activations".to_owned()],
            "activation" | "activations" => {
                return Err(invalid("activations have no further names: listen to `event`".to_owned()));
            }
            "event" | "events" | "device" => events(names)?,
            _ => return Err(invalid(format!("`{event}` is not an event: must be uplink, activation or event"))),
        };
        Ok(Self { filters: levels.into_iter().map(|levels| format!("devices/{dev_id}/{levels}")).collect() })
    }

    /// The messages of both.
    pub fn and(mut self, other: Self) -> Self {
        self.filters.extend(other.filters);
        self
    }

    /// Also tells a stream with [`Error::Missed`] how many messages the broker has dropped because the client received
    /// too slowly.
    pub fn with_dropped(mut self) -> Self {
        self.filters.push(DROPPED.to_owned());
        self
    }

    pub(super) fn filters(&self) -> &[String] {
        &self.filters
    }

    /// Returns true if one of the filters matches this topic, which is relative to the application.
    pub(super) fn matches(&self, topic: &str) -> bool {
        self.filters.iter().any(|filter| covers(filter, topic))
    }
}

fn uplinks(fields: &[&str]) -> Result<Vec<String>> {
    if let Some(field) = fields.iter().find(|field| field.is_empty() || field.contains(['+', '#', '\0'])) {
        return Err(invalid(format!("field `{field}` not valid: must be a name, or a path such as `gps/latitude`")));
    }
    Ok(if fields.is_empty() {
        vec!["up".to_owned()]
    } else {
        fields.iter().map(|field| format!("up/{field}")).collect()
    })
}

fn events(names: &[&str]) -> Result<Vec<String>> {
    if names.is_empty() {
        return Ok(vec!["events/#".to_owned()]);
    }
    let names = names.iter().map(|name| name.parse::<DeviceEventName>().map_err(invalid));
    names.map(|name| name.map(|name| format!("events/{}", name.as_str()))).collect()
}

/// Returns true if the filter `wide` matches each topic that `narrow`, a filter or a topic, matches.
pub(super) fn covers(wide: &str, narrow: &str) -> bool {
    let mut others = narrow.split('/');
    for level in wide.split('/') {
        match (level, others.next()) {
            ("#", _) => return true,
            (_, None | Some("#")) => return false,
            ("+", Some(_)) => {}
            (level, Some(other)) if level == other => {}
            _ => return false,
        }
    }
    others.next().is_none()
}

pub(super) fn invalid(message: String) -> Error {
    Error::Refused { kind: Kind::Invalid, message, retry_after: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Conformance: The names, aliases and filters of its events
    #[test]
    fn every_name_and_alias_has_its_filters() {
        for (event, dev_id, names, expected) in [
            ("uplink", "+", &[][..], &["devices/+/up"][..]),
            ("message", "dev-1", &[], &["devices/dev-1/up"]),
            ("uplink", "+", &["gps/latitude"], &["devices/+/up/gps/latitude"]),
            ("activation", "+", &[], &["devices/+/events/activations"]),
            ("activations", "dev-1", &[], &["devices/dev-1/events/activations"]),
            ("event", "+", &[], &["devices/+/events/#"]),
            ("device", "+", &["downlink/sent"], &["devices/+/events/down/sent"]),
            ("event", "+", &["delete", "up/errors"], &["devices/+/events/delete", "devices/+/events/up/errors"]),
        ] {
            assert_eq!(Topics::new(event, dev_id, names).unwrap().filters(), expected, "{event}");
        }
    }

    #[test]
    fn refuses_other_words_and_says_which_there_are() {
        for (event, dev_id, names, reason) in [
            ("uplinks", "+", &[][..], "must be uplink, activation or event"),
            ("uplink", "", &[], "DevID not valid"),
            ("uplink", "#", &[], "DevID not valid"),
            ("uplink", "+", &["#"], "must be a name"),
            ("activation", "+", &["errors"], "listen to `event`"),
            ("event", "+", &["sent"], "must be one of activations, activations/errors"),
        ] {
            let error = Topics::new(event, dev_id, names).unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
        }
    }

    #[test]
    fn a_filter_covers_what_it_matches() {
        for (wide, narrow, expected) in [
            ("a/+/up", "a/b/up", true),
            ("a/b/up", "a/+/up", false),
            ("a/+/up", "a/b/up/c", false),
            ("a/+/events/#", "a/b/events/down/sent", true),
            ("a/+/events/down", "a/+/events/#", false),
            ("a/b/up/c", "a/b/up", false),
        ] {
            assert_eq!(covers(wide, narrow), expected, "{wide} {narrow}");
        }
    }
}
