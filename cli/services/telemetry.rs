//! Metrics and health of commands that run on their own.

use std::sync::Arc;

use server::{
    error_response::ErrorFormat,
    serve::{HttpService, Listeners, Server},
    shutdown::Shutdown,
    system::OsRandom,
    telemetry::{self, Health, Metrics, TelemetrySettings},
};

use crate::{settings::Settings, terminal::say};

/// A kind of process. Each has a default port of its own for metrics, so that one of each can run on a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Process {
    /// Also if the other services run in it.
    Handler,
    Account,
    Discovery,
    ChirpStackBridge,
    ThingsStackBridge,
    ChirpStackShadow,
    ThingsStackShadow,
    Codecs,
    Console,
}

impl Process {
    const fn port(self) -> u16 {
        match self {
            Self::Handler => 9100,
            Self::Account => 9101,
            Self::Discovery => 9102,
            Self::ChirpStackBridge => 9103,
            Self::ThingsStackBridge => 9104,
            Self::ChirpStackShadow => 9105,
            Self::ThingsStackShadow => 9106,
            Self::Codecs => 9107,
            Self::Console => 9108,
        }
    }

    /// Returns the address for metrics and health.
    pub(crate) fn listens_on(self, settings: &TelemetrySettings) -> String {
        settings.listen.clone().unwrap_or_else(|| format!("127.0.0.1:{}", self.port()))
    }
}

/// Serves metrics and health, and says where.
pub(crate) async fn serve(
    settings: &Settings,
    process: Process,
    metrics: Metrics,
    shutdown: &Shutdown,
    add_checks: impl FnOnce(&Health),
) -> anyhow::Result<()> {
    let health = Health::default();
    add_checks(&health);
    let stop = shutdown.requested.clone();
    let server = Server::new(settings.serve.clone(), Arc::new(OsRandom), stop);
    let listeners = Listeners::new().plain(&process.listens_on(&settings.telemetry)).await?;
    let router = telemetry::router(metrics, health);
    let service = HttpService::new("telemetry", router, ErrorFormat::GrpcGateway);
    let serving = server.start(service, listeners);
    let address = serving.addresses().first().map_or_else(String::new, ToString::to_string);
    say(format_args!("Metrics and health: http://{address}/metrics and http://{address}/readyz"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_on_one_machine_do_not_share_a_port() {
        let processes = [
            Process::Handler,
            Process::Account,
            Process::Discovery,
            Process::ChirpStackBridge,
            Process::ThingsStackBridge,
            Process::ChirpStackShadow,
            Process::ThingsStackShadow,
            Process::Codecs,
            Process::Console,
        ];
        let addresses = processes.map(|process| process.listens_on(&TelemetrySettings::default()));
        let expected: Vec<String> = (9100..9109).map(|port| format!("127.0.0.1:{port}")).collect();
        assert_eq!(addresses.as_slice(), expected.as_slice());
        let set = TelemetrySettings { listen: Some("[::]:7".to_owned()), ..TelemetrySettings::default() };
        assert_eq!(processes.map(|process| process.listens_on(&set)), [const { "[::]:7" }; 9]);
    }
}
