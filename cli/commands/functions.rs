//! `airlock functions …`: payload functions in a local sandbox, without a server.

pub(crate) mod args;
mod bench;
mod fuzz;
mod lint;
mod new;
mod output;
mod port;
mod profile;
mod run;
mod serve;
mod test;
mod watch;

use types::Clock;

use self::args::Functions;
pub(super) use self::args::values::variables;
use crate::settings::Settings;

/// Factor on the limits of wall-clock time. Fuel is what ends a function: a busy machine, or counting steps, must not
/// change a verdict.
const PATIENCE: u64 = 30;

pub(crate) async fn run(command: Functions, settings: Settings, clock: &dyn Clock) -> anyhow::Result<()> {
    let sandbox = || sandbox(&settings);
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

/// The settings of the sandbox. No cache: the commands measure how long loading takes, and a device repository has
/// thousands of functions.
pub(super) fn sandbox(settings: &Settings) -> runtime::Settings {
    let mut sandbox = runtime::Settings { cache_bytes_max: 0, ..settings.sandbox.clone() };
    let limits = &mut sandbox.limits;
    limits.time_ms_max = limits.time_ms_max.saturating_mul(PATIENCE);
    limits.load_time_ms_max = limits.load_time_ms_max.saturating_mul(PATIENCE);
    sandbox
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fuel_runs_out_long_before_time() {
        let (own, all) = (sandbox(&Settings::default()).limits, runtime::Limits::default());
        assert_eq!((own.fuel, own.time_ms_max), (all.fuel, 30 * all.time_ms_max));
    }
}
