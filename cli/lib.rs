//! The command line of Airlock.
//!
//! Programs that want to use Airlock's services need `airlock-client`, not this crate. What is public here serves the
//! integration tests and the benchmarks.

mod args;
mod command_context;
mod commands;
mod exit;
mod html;
mod output;
mod playground_page;
pub mod serve;
mod services;
pub mod settings;
mod terminal;
mod values;
mod version;

use std::{io::Write, process::ExitCode, sync::Arc};

use args::{Args, Command};
use clap::{
    CommandFactory, Parser,
    builder::styling::{AnsiColor, Style},
};
use clap_complete::CompleteEnv;
use command_context::CommandContext;
use commands::shell;
use output::Output;
use server::system::{OsRandom, SystemClock, install_crypto};
use settings::{GlobalOptions, Settings};
use terminal::say;

/// The text that `airlock selfupdate` prints. A program that replaces itself would be one more thing to trust.
const HOW_TO_UPDATE: &str =
    "Airlock does not update itself: download the new sources and build them as described in the README";

/// The style of the word before an error, as clap has it.
const ERROR: Style = AnsiColor::Red.on_default().bold();

/// Number of tasks that a busy worker of tokio runs before it looks for data on sockets (61 by default), and for tasks
/// that sandboxes have woken. Whatever has to wait that long cannot be ordered fairly before.
const EVENT_INTERVAL: u32 = 8;
const GLOBAL_QUEUE_INTERVAL: u32 = 4;

/// Runs the command in this process's arguments, and prints its error if it fails.
pub fn run() -> ExitCode {
    CompleteEnv::with_factory(Args::command).var(shell::COMPLETE).complete();
    let Args { global, command } = Args::parse();
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let result =
        runtime.event_interval(EVENT_INTERVAL).global_queue_interval(GLOBAL_QUEUE_INTERVAL).enable_all().build();
    match result.map_err(Into::into).and_then(|runtime| runtime.block_on(run_command(command, &global))) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            if let Some(text) = exit::text(&error) {
                // With standard error closed, there is nobody to tell.
                _ = writeln!(anstream::stderr(), "{ERROR}error:{ERROR:#} {text}");
            }
            exit::code(&error)
        }
    }
}

async fn run_command(command: Command, global: &GlobalOptions) -> anyhow::Result<()> {
    install_crypto();
    let settings = || Settings::load(global);
    let output = |options| Output::new(options, Arc::new(SystemClock));
    let context =
        |options| anyhow::Ok(CommandContext::new(settings()?, options, Arc::new(SystemClock), Arc::new(OsRandom)));
    match command {
        Command::Demo(demo) => commands::demo::run(demo, settings()?, Arc::new(OsRandom)).await,
        Command::Serve(serve) => serve::run(serve, settings()?, global).await,
        Command::Bridge { command } => commands::bridge::run(command, settings()?).await,
        Command::User { output, command } => commands::user::run(command, &context(output)?).await,
        Command::Applications { output, command } => commands::applications::run(command, &context(output)?).await,
        Command::Devices { output, app_id, app_eui, command } => {
            commands::devices::run(command, (app_id, app_eui), &context(output)?).await
        }
        Command::Webhooks { output, app_id, command } => {
            commands::webhooks::run(command, app_id, &context(output)?).await
        }
        Command::History { output, app_id, command } => {
            commands::history::run(*command, app_id, &context(output)?).await
        }
        Command::Gateways { output, command } => commands::gateways::run(command, &context(output)?).await,
        Command::Downlink(downlink) => commands::downlink::run(&context(downlink.output)?, downlink).await,
        Command::Subscribe(subscribe) => commands::subscribe::run(&context(subscribe.output)?, subscribe).await,
        Command::Functions { command } => commands::functions::run(command, settings()?, &SystemClock).await,
        Command::Playground(command) => commands::playground::run(command, settings()?).await,
        Command::Replay(command) => commands::replay::run(*command, &settings()?, &SystemClock).await,
        Command::Account { output: options, command } => {
            commands::account::run(command, settings()?, &output(options)).await
        }
        Command::Handler { output: options, command } => {
            commands::handler::run(command, settings()?, &output(options)).await
        }
        Command::Load(load) => commands::load::run(&context(load.output)?, load).await,
        Command::Backup(command) => {
            let output = output(command.output);
            commands::backup::backup(command, &settings()?, &output, Arc::new(SystemClock)).await
        }
        Command::Restore(command) => {
            commands::backup::restore(&command, &settings()?, &output(command.output), &SystemClock)
        }
        Command::Config { output: options, .. } => settings::print(&settings()?, &output(options)),
        Command::Completions(command) => shell::completions(&command),
        Command::Man(command) => shell::man(&command, Args::command()),
        Command::Version { output: options } => version::print(&output(options)),
        Command::Selfupdate => say(HOW_TO_UPDATE),
    }
}
