//! Templates of webhooks, with which their form begins, for receivers that many people have.

/// The beginning of a form, for one kind of receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WebhookTemplate {
    /// Names it in the address of the page.
    pub(crate) name: &'static str,
    /// The receiver.
    pub(crate) label: &'static str,
    pub(crate) url: &'static str,
    pub(crate) events: &'static str,
    /// One `Name: value` per line, with what is to be replaced.
    pub(crate) headers: &'static str,
    /// Instructions: the parts to replace, and anything else to be done.
    pub(crate) hint: &'static str,
}

/// All templates. Each receiver takes the JSON of messages as it is.
pub(crate) const TEMPLATES: [WebhookTemplate; 5] = [
    WebhookTemplate {
        name: "home-assistant",
        label: "Home Assistant",
        url: "https://homeassistant.example.com/api/webhook/my-id",
        events: "up",
        headers: "",
        hint: "Replace the host, and my-id by the id of the webhook that triggers an automation there. Fields are in \
               trigger.json.payload_fields. A Home Assistant in a private network gets messages only if the operator \
               of this server allows such addresses.",
    },
    WebhookTemplate {
        name: "node-red",
        label: "Node-RED",
        url: "https://nodered.example.com:1880/airlock/{app_id}/{dev_id}",
        events: "",
        headers: "",
        hint: "Replace the host. Add a node “http in” with the method POST and the URL /airlock/:application/:device, \
               and a node “http response”. A Node-RED in a private network gets messages only if the operator of this \
               server allows such addresses.",
    },
    WebhookTemplate {
        name: "n8n",
        label: "n8n",
        url: "https://n8n.example.com/webhook/my-path",
        events: "up",
        headers: "",
        hint: "Copy the production URL of a node “Webhook” with the method POST, and activate its workflow. Its test \
               URL takes messages for a short time only.",
    },
    WebhookTemplate {
        name: "thingsboard",
        label: "ThingsBoard",
        url: "https://thingsboard.example.com/api/v1/{dev_id}/telemetry",
        events: "up",
        headers: "",
        hint: "Replace the host, and give each device there its id here as access token. Fields become the telemetry \
               payload_fields, as JSON. Whoever knows such a token can send in the name of the device, so choose \
               ids of devices that nobody guesses.",
    },
    WebhookTemplate {
        name: "azure-functions",
        label: "Azure Functions",
        url: "https://my-app.azurewebsites.net/api/my-function",
        events: "",
        headers: "x-functions-key: my-key",
        hint: "Copy the URL of a function with an HTTP trigger, and put its key into the header.",
    },
];

impl WebhookTemplate {
    /// Returns the template with this name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        TEMPLATES.into_iter().find(|template| template.name == name)
    }
}

#[cfg(test)]
mod tests {
    use types::Secret;

    use super::*;
    use crate::form::webhook::header_lines;

    #[test]
    fn each_template_has_a_name_and_headers_that_can_be_set() {
        for template in TEMPLATES {
            assert_eq!(WebhookTemplate::named(template.name), Some(template));
            assert!(template.url.starts_with("https://"), "{template:?}");
            let headers = header_lines(&Secret::new(template.headers)).unwrap();
            assert_eq!(headers.len(), template.headers.lines().count(), "{template:?}");
        }
        assert_eq!(WebhookTemplate::named("<b>"), None);
    }
}
