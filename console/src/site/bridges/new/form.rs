//! The form of a network that is to be connected, and the entry for the settings that it makes.

use types::{AppId, Secret};

use crate::{site::viewer::Sent, status::NewNetwork};

/// The names of files for secrets.
const CHIRPSTACK_KEY: &str = "chirpstack.key";
const THINGS_STACK_KEY: &str = "things-stack.key";
const PASSWORD: &str = "chirpstack-mqtt.password";

/// The form, with what was entered.
#[derive(Clone, Debug, Default)]
pub(super) struct NetworkForm {
    pub(super) is_things_stack: bool,
    pub(super) mqtt_url: String,
    pub(super) username: String,
    pub(super) api_url: String,
    pub(super) application: String,
    pub(super) app_id: String,
    /// No page has it.
    password: Secret,
    /// No page has it.
    api_key: Secret,
}

impl NetworkForm {
    /// The form before anybody types, for a network whose devices this application gets.
    pub(super) fn for_application(app_id: &str) -> Self {
        Self { app_id: app_id.trim().to_owned(), ..Self::default() }
    }

    pub(super) fn of(sent: &Sent) -> Self {
        let text = |name: &str| sent.value(name).trim().to_owned();
        Self {
            is_things_stack: sent.value("kind") == "things-stack",
            mqtt_url: text("mqtt_url"),
            username: text("username"),
            api_url: text("api_url"),
            application: text("application"),
            app_id: text("app_id"),
            password: Secret::new(sent.value("password")),
            api_key: Secret::new(text("api_key")),
        }
    }

    /// Returns the application here and the network to try, or what is wrong with the form.
    pub(super) fn network(&self) -> Result<(AppId, NewNetwork), &'static str> {
        let Self { mqtt_url, username, api_url, application, app_id, .. } = self.clone();
        if !["http://", "https://"].iter().any(|scheme| api_url.starts_with(scheme)) {
            return Err("The API must be a URL, such as http://localhost:8080 or https://eu1.cloud.thethings.network.");
        }
        // The printed settings and errors show addresses.
        if [&api_url, &mqtt_url].iter().any(|url| url.contains('@')) {
            return Err("Leave users and passwords out of addresses: those of the broker have fields of their own.");
        }
        if self.api_key.expose().is_empty() {
            return Err("The API key is missing: create one in the network.");
        }
        if application.is_empty() || application.contains(char::is_control) {
            return Err("The application there is missing.");
        }
        let Ok(app_id) = app_id.parse::<AppId>() else {
            return Err("The application here must be the id of a registered application, such as my-app.");
        };
        let api_key = self.api_key.clone();
        if self.is_things_stack {
            return Ok((app_id, NewNetwork::ThingsStack { api_url, mqtt_url, application, api_key }));
        }
        if mqtt_url.is_empty() {
            return Err("The broker is missing: enter its URL, such as mqtt://localhost:1883.");
        }
        let login = (!username.is_empty()).then(|| (username, self.password.clone()));
        Ok((app_id, NewNetwork::ChirpStack { mqtt_url, login, api_url, application, api_key }))
    }

    /// The entry for the settings. Secrets are in files that it names.
    pub(super) fn settings(&self) -> String {
        let Self { is_things_stack, mqtt_url, username, api_url, application, app_id, .. } = self;
        let table = if *is_things_stack { "things_stack" } else { "chirpstack" };
        let mut lines = vec!["[[bridge]]".to_owned()];
        let mut set = |name: &str, value: &str| lines.push(format!("{table}.{name} = {}", quoted(value)));
        if !mqtt_url.is_empty() {
            set("mqtt.url", mqtt_url);
        }
        if *is_things_stack {
            set("api.url", api_url);
            set("key_file", THINGS_STACK_KEY);
        } else {
            if !username.is_empty() {
                set("mqtt.username", username);
                set("mqtt.password_file", PASSWORD);
            }
            set("grpc.url", api_url);
            set("grpc.token_file", CHIRPSTACK_KEY);
        }
        lines.extend([String::new(), "[[bridge.applications]]".to_owned()]);
        lines.push(format!("application = {}", quoted(application)));
        lines.push(format!("app_id = {}", quoted(app_id)));
        lines.push("register = true".to_owned());
        lines.join("\n")
    }

    /// The files that the entry names, each with what it must hold.
    pub(super) fn files(&self) -> Vec<(&'static str, &'static str)> {
        match self.is_things_stack {
            true => vec![(THINGS_STACK_KEY, "the API key")],
            false if self.username.is_empty() => vec![(CHIRPSTACK_KEY, "the API key")],
            false => vec![(CHIRPSTACK_KEY, "the API key"), (PASSWORD, "the password of the broker")],
        }
    }
}

/// A text as a string of TOML, which has the escapes of JSON.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form() -> NetworkForm {
        NetworkForm {
            mqtt_url: "mqtt://broker".to_owned(),
            api_url: "http://chirpstack:8080".to_owned(),
            application: "My \"lab\"".to_owned(),
            app_id: "my-app".to_owned(),
            password: Secret::new("hush"),
            api_key: Secret::new("key"),
            ..NetworkForm::default()
        }
    }

    #[test]
    fn an_entry_names_files_in_place_of_secrets() {
        let expected = "[[bridge]]\nchirpstack.mqtt.url = \"mqtt://broker\"\nchirpstack.grpc.url = \"http://chirpstack:8080\"\n\
                        chirpstack.grpc.token_file = \"chirpstack.key\"\n\n[[bridge.applications]]\n\
                        application = \"My \\\"lab\\\"\"\napp_id = \"my-app\"\nregister = true";
        assert_eq!(form().settings(), expected);
        assert_eq!(form().files().len(), 1);
        let with_login = NetworkForm { username: "me".to_owned(), ..form() };
        assert!(with_login.settings().contains("mqtt.password_file") && !with_login.settings().contains("hush"));
        assert_eq!(with_login.files().len(), 2);
        let things_stack = NetworkForm { is_things_stack: true, mqtt_url: String::new(), ..form() };
        let settings = things_stack.settings();
        assert!(
            settings
                .starts_with("[[bridge]]\nthings_stack.api.url = \"http://chirpstack:8080\"\nthings_stack.key_file")
        );
    }

    #[test]
    fn what_is_missing_is_named() {
        let refused = |change: fn(&mut NetworkForm)| {
            let mut form = form();
            change(&mut form);
            form.network().unwrap_err()
        };
        assert!(form().network().is_ok());
        assert!(refused(|form| form.api_url = "chirpstack:8080".to_owned()).contains("URL"));
        assert!(refused(|form| form.api_url = "http://me:hush@chirpstack".to_owned()).contains("passwords"));
        assert!(refused(|form| form.mqtt_url = "mqtt://me:hush@broker".to_owned()).contains("passwords"));
        assert!(refused(|form| form.api_key = Secret::default()).contains("key"));
        assert!(refused(|form| form.application.clear()).contains("there"));
        assert!(refused(|form| form.app_id = "NO".to_owned()).contains("here"));
        assert!(refused(|form| form.mqtt_url.clear()).contains("broker"));
        let things_stack = NetworkForm { is_things_stack: true, mqtt_url: String::new(), ..form() };
        assert!(matches!(things_stack.network(), Ok((_, NewNetwork::ThingsStack { .. }))));
    }
}
