//! `airlock functions …`: payload functions in a local sandbox, without a server.

pub(crate) mod args;
mod bench;
mod colour;
mod fuzz;
mod lint;
mod message;
mod network_message;
mod new;
mod port;
mod problems;
mod profile;
mod run;
mod serve;
mod test;
mod values;
mod watch;

use types::Clock;

use self::args::Functions;
use crate::settings::Settings;

pub(crate) async fn run(command: Functions, settings: Settings, clock: &dyn Clock) -> anyhow::Result<()> {
    // No cache: the commands measure how long loading takes, and a device repository has thousands of functions.
    let sandbox = || runtime::Settings { cache_bytes_max: 0, ..settings.sandbox.clone() };
    match command {
        Functions::Test(command) => test::run(&command, &sandbox()),
        Functions::Watch(command) => watch::run(&command, &sandbox()).await,
        Functions::New(command) => new::run(&command),
        Functions::Run(run) => run::run(&run, &sandbox(), clock),
        Functions::Bench(command) => bench::run(&command, &sandbox(), clock),
        Functions::Lint(command) => lint::run(&command, &sandbox()),
        Functions::Port(command) => port::run(&command, &sandbox()),
        Functions::Profile(command) => profile::run(&command, &sandbox(), clock),
        Functions::Fuzz(command) => fuzz::run(&command, &sandbox()),
        Functions::Serve(command) => serve::run(command, settings).await,
    }
}
