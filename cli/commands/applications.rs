//! `airlock applications …`: applications and their payload functions.

use std::path::PathBuf;

use anyhow::Context;
use api::{
    handler::Application,
    rest::account::{AccessKey, NewApplication},
};
use runtime::Dialect;
use types::{AppEui, AppId, ApplicationRight, Clock, Credential, Kind, Kinded};

use crate::{
    args::{Applications, PayloadFormat, PayloadFunctions},
    network::Network,
    script,
    terminal::{self, fields, inert, say, table},
};

/// Runs one of the commands.
pub(crate) async fn run(command: Applications, network: &Network, clock: &dyn Clock) -> anyhow::Result<()> {
    match command {
        Applications::Add { app_id, description, app_eui, skip_register, skip_select } => {
            let new = NewApplication { id: app_id, name: description, euis: app_eui, access_keys: Vec::new() };
            let app_id = add(network, clock, new).await?;
            if skip_select {
                return Ok(());
            }
            select(network, app_id.clone())?;
            if skip_register {
                return Ok(());
            }
            let registered = register(network, clock, &app_id).await;
            registered.context("it is not registered with the handler: try `airlock applications register` later")
        }
        Applications::List => list(network, clock).await,
        Applications::Info { app_id } => info(network, clock, network.application(app_id)?).await,
        Applications::Select { app_id } => select(network, app_id),
        Applications::Register => register(network, clock, &network.application(None)?).await,
        Applications::Key { app_id, name } => key(network, clock, network.application(app_id)?, name).await,
        Applications::Pf { command: None } => show_functions(network, clock).await,
        Applications::Pf { command: Some(PayloadFunctions::Set { what, file }) } => {
            set_function(network, clock, what, file).await
        }
    }
}

async fn add(network: &Network, clock: &dyn Clock, new: NewApplication) -> anyhow::Result<AppId> {
    let added = network.account()?.create_application(&network.credential(clock)?, &new).await?;
    let euis = added.euis.iter().map(AppEui::to_hex).collect::<Vec<_>>().join(", ");
    say(format_args!("Added application {} with EUI {euis}", added.id))?;
    Ok(added.id)
}

fn select(network: &Network, app_id: AppId) -> anyhow::Result<()> {
    say(format_args!("Selected application {app_id}"))?;
    network.files.select(app_id)
}

async fn register(network: &Network, clock: &dyn Clock, app_id: &AppId) -> anyhow::Result<()> {
    let credential = network.credential_for(app_id, clock).await?;
    match network.handler(credential).await?.register_application(app_id).await {
        Ok(()) => say(format_args!("Registered application {app_id} with the handler")),
        Err(error) if error.kind() == Kind::AlreadyExists => {
            say(format_args!("Application {app_id} is registered with the handler already"))
        }
        Err(error) => Err(error.into()),
    }
}

async fn list(network: &Network, clock: &dyn Clock) -> anyhow::Result<()> {
    let applications = network.account()?.applications(&network.credential(clock)?).await?;
    if applications.is_empty() {
        return say("You have no applications; add one with `airlock applications add`");
    }
    table(
        ["ID", "Description", "EUIs", "Access keys", "Collaborators"],
        applications.into_iter().map(|application| {
            [
                application.id.to_string(),
                application.name,
                application.euis.len().to_string(),
                application.access_keys.unwrap_or_default().len().to_string(),
                application.collaborators.unwrap_or_default().len().to_string(),
            ]
        }),
    )
}

async fn info(network: &Network, clock: &dyn Clock, app_id: AppId) -> anyhow::Result<()> {
    let credential = network.credential_for(&app_id, clock).await?;
    let application = network.account()?.application(&credential, &app_id).await?;
    let euis = application.euis.iter().map(AppEui::to_hex).collect::<Vec<_>>().join(", ");
    fields([("AppID", app_id.to_string()), ("Name", application.name), ("EUIs", euis)])?;
    let keys = application.access_keys.unwrap_or_default();
    table(
        ["Access key", "Key", "Rights"],
        keys.into_iter().map(|key| [key.name.clone(), shown(&key), names(&key.rights)]),
    )?;
    let collaborators = application.collaborators.unwrap_or_default();
    table(
        ["Collaborator", "Rights"],
        collaborators.into_iter().map(|person| [person.username.to_string(), names(&person.rights)]),
    )
}

/// Prints one access key and nothing else, so that a shell can use it.
async fn key(network: &Network, clock: &dyn Clock, app_id: AppId, name: Option<String>) -> anyhow::Result<()> {
    let credential = network.credential_for(&app_id, clock).await?;
    say(access_key(network, &credential, &app_id, name.as_deref()).await?.expose())
}

/// The access key of that name, else the first that may read messages.
pub(crate) async fn access_key(
    network: &Network,
    credential: &Credential,
    app_id: &AppId,
    name: Option<&str>,
) -> anyhow::Result<types::AccessKey> {
    let keys = network.account()?.access_keys(credential, app_id).await?;
    let wanted = |key: &AccessKey| match name {
        Some(name) => key.name == name,
        None => key.rights.contains(&ApplicationRight::MessagesUpRead),
    };
    let found = keys.into_iter().find(wanted).and_then(|key| key.key);
    found.with_context(|| {
        format!("no such access key of {app_id} that you may see: look with `airlock applications info`")
    })
}

async fn show_functions(network: &Network, clock: &dyn Clock) -> anyhow::Result<()> {
    let app_id = network.application(None)?;
    let handler = network.handler(network.credential_for(&app_id, clock).await?).await?;
    let application = handler.get_application(&app_id).await?;
    if !matches!(application.payload_format.as_str(), "" | "custom") {
        say(format_args!("// payload format: {}", inert(&application.payload_format)))?;
    }
    for (name, text) in [
        ("decoder", &application.decoder),
        ("converter", &application.converter),
        ("validator", &application.validator),
        ("encoder", &application.encoder),
    ] {
        match text.is_empty() {
            true => say(format_args!("// no {name}"))?,
            false => say(format_args!("// {name}\n{text}\n"))?,
        }
    }
    Ok(())
}

async fn set_function(
    network: &Network,
    clock: &dyn Clock,
    what: PayloadFormat,
    file: Option<PathBuf>,
) -> anyhow::Result<()> {
    let app_id = network.application(None)?;
    let handler = network.handler(network.credential_for(&app_id, clock).await?).await?;
    let mut application = handler.get_application(&app_id).await?;
    match format(what) {
        Some(format) => format.clone_into(&mut application.payload_format),
        None => set_text(&mut application, what, read_function(file)?),
    }
    handler.set_application(application).await?;
    say(format_args!("Updated application {app_id}"))
}

/// The word for it in applications; none for what is a function.
fn format(what: PayloadFormat) -> Option<&'static str> {
    match what {
        PayloadFormat::Custom => Some("custom"),
        PayloadFormat::Ts013 => Some(Dialect::Ts013.name()),
        PayloadFormat::V2 => Some(Dialect::V2.name()),
        PayloadFormat::ChirpStack3 => Some(Dialect::ChirpStack3.name()),
        PayloadFormat::CayenneLpp => Some("cayennelpp"),
        PayloadFormat::Decoder | PayloadFormat::Converter | PayloadFormat::Validator | PayloadFormat::Encoder => None,
    }
}

/// Sets the text of a function. It counts from now on: whoever sets one does not want Cayenne LPP any more.
fn set_text(application: &mut Application, what: PayloadFormat, text: String) {
    if Dialect::from_name(&application.payload_format).is_none() {
        "custom".clone_into(&mut application.payload_format);
    }
    match what {
        PayloadFormat::Decoder => application.decoder = text,
        PayloadFormat::Converter => application.converter = text,
        PayloadFormat::Validator => application.validator = text,
        _ => application.encoder = text,
    }
}

fn read_function(file: Option<PathBuf>) -> anyhow::Result<String> {
    match file {
        Some(path) => script::read(&path),
        None => terminal::read_input(),
    }
}

fn shown(key: &AccessKey) -> String {
    key.key.as_ref().map(|key| key.expose().to_owned()).unwrap_or_default()
}

fn names(rights: &[ApplicationRight]) -> String {
    rights.iter().map(|right| right.as_str()).collect::<Vec<_>>().join(", ")
}
