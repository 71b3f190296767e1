//! Texts with `{app_id}`, `{dev_id}` and `{event}` in them.

use types::AppId;

use crate::{Error, message::OutputMessage};

const NAMES: [&str; 3] = ["app_id", "dev_id", "event"];

/// Refuses braces that stand for nothing.
pub(super) fn check(what: &'static str, text: &str) -> Result<(), Error> {
    let mut rest = text;
    while let Some(at) = rest.find(['{', '}']) {
        let name = NAMES.iter().find(|name| {
            rest[at..]
                .strip_prefix('{')
                .and_then(|rest| rest.strip_prefix(**name))
                .is_some_and(|rest| rest.starts_with('}'))
        });
        let Some(name) = name else {
            return Err(Error::invalid(what, "only {app_id}, {dev_id} and {event} may stand in braces"));
        };
        rest = &rest[at + name.len() + 2..];
    }
    Ok(())
}

/// The text for one message. Ids and events have no characters that mean something in an address or a header.
pub(super) fn fill(text: &str, app_id: &AppId, message: &OutputMessage) -> String {
    let dev_id = message.dev_id.as_ref().map_or("", |dev_id| dev_id.as_str());
    text.replace("{app_id}", app_id.as_str()).replace("{dev_id}", dev_id).replace("{event}", &message.event)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fills_in_what_it_knows_and_refuses_the_rest() {
        for text in ["/{app_id}/{dev_id}/{event}", "/plain", "", "{event}{event}"] {
            check("URL", text).unwrap();
        }
        for text in ["/{}", "/{device}", "/{app_id", "/app_id}", "{{app_id}}", "{ app_id}"] {
            assert!(check("URL", text).is_err(), "{text}");
        }
        let body = serde_json::value::to_raw_value(&1).unwrap();
        let message = OutputMessage {
            dev_id: Some("dev-1".parse().unwrap()),
            event: "down/sent".to_owned(),
            time: types::Timestamp::default(),
            identity: 0,
            body,
        };
        let filled = fill("/{app_id}/{dev_id}?event={event}", &"my-app".parse().unwrap(), &message);
        assert_eq!(filled, "/my-app/dev-1?event=down/sent");
    }
}
