//! Labels of rights, scopes and dates.

use types::{ApplicationRight, GatewayRight, Scope, Timestamp};

pub(in crate::http::site) fn application_right(right: ApplicationRight) -> &'static str {
    match right {
        ApplicationRight::Settings => "View and change settings, EUIs and access keys",
        ApplicationRight::Delete => "Delete and restore the application",
        ApplicationRight::Collaborators => "Add, change and remove collaborators",
        ApplicationRight::MessagesUpRead => "Read messages from devices",
        ApplicationRight::MessagesUpWrite => "Send messages as if from devices",
        ApplicationRight::MessagesDownWrite => "Send messages to devices",
        ApplicationRight::Devices => "View and change devices",
    }
}

pub(in crate::http::site) fn gateway_right(right: GatewayRight) -> &'static str {
    match right {
        GatewayRight::Settings => "View and change settings",
        GatewayRight::Delete => "Delete the gateway",
        GatewayRight::Collaborators => "Add, change and remove collaborators",
        GatewayRight::Status => "View its status",
        GatewayRight::Location => "View its exact location",
        GatewayRight::Owner => "View its owner",
        GatewayRight::Messages => "Read its messages",
    }
}

/// Returns the permissions of a scope as text that follows "It may".
pub(in crate::http::site) fn scope(scope: &Scope) -> String {
    match scope {
        Scope::Profile => "see and change your profile, including your name and e-mail address".to_owned(),
        Scope::Apps => "see, change, create and delete your applications, with their devices and messages".to_owned(),
        Scope::App(id) => format!("see, change and delete the application {id}, with its devices and messages"),
        Scope::Gateways => "see, change, create and delete your gateways".to_owned(),
        Scope::Gateway(id) => format!("see, change and delete the gateway {id}"),
        Scope::Components => "see, create and delete your network components".to_owned(),
        Scope::Component(id) => format!("see and delete the network component {id}"),
        Scope::Clients => "see, register and change your OAuth clients".to_owned(),
    }
}

/// The date in UTC, such as `2026-01-31`.
pub(in crate::http::site) fn day(time: Timestamp) -> String {
    time.to_rfc3339().chars().take(10).collect()
}
