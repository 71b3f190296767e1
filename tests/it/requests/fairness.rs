//! Requests take turns by caller and by cost, whichever address they come from.

use api::{
    handler::{Application, ApplicationIdentifier, DryDownlinkMessage, DryUplinkMessage},
    rest::account::NewApplication,
};
use client::account::AccountClient;
use futures::future::join_all;
use metrics_exporter_prometheus::PrometheusBuilder;
use tonic::{Code, Status};
use types::{AppId, ComponentId, Credential, Scope, ServiceName};

use crate::harness::{Network, Owner};

const ENDLESS: &str = "while (true) {}";

fn application(owner: &Owner, function: [&str; 2]) -> Application {
    let [decoder, encoder] = function.map(str::to_owned);
    Application { app_id: owner.app_id.to_string(), decoder, encoder, ..Application::default() }
}

/// Runs a decoder that never ends.
async fn endless_uplink(network: &Network, owner: &Owner) -> Result<(), Status> {
    let app = application(owner, [&format!("function Decoder() {{ {ENDLESS} }}"), ""]);
    let message = DryUplinkMessage { payload: vec![1], app: Some(app), port: 1, ..Default::default() };
    network.manager().await.dry_uplink(owner.sign(message)).await.map(drop)
}

/// Runs an encoder that never ends.
async fn endless_downlink(network: &Network, owner: &Owner) -> Result<(), Status> {
    let app = Some(application(owner, ["", &format!("function Encoder() {{ {ENDLESS} }}")]));
    let message = DryDownlinkMessage { fields: "{}".to_owned(), app, port: 1, ..DryDownlinkMessage::default() };
    network.manager().await.dry_downlink(owner.sign(message)).await.map(drop)
}

/// Returns the fuel of a service's requests, according to the metrics.
fn fuel(service: &str, metrics: &str) -> u64 {
    let name = format!("airlock_requests_fuel_total{{service=\"{service}\"}} ");
    metrics.lines().find_map(|line| line.strip_prefix(&name)).map_or(0, |number| number.parse().unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn endless_loops_of_one_caller_leave_turns_for_another() {
    // One caller gets two turns and two places to wait.
    let network = Network::with(|settings| (settings.serve.running_max, settings.serve.waiting_max) = (4, 4)).await;
    let (hostile, honest) = (network.owner("hostile").await, network.owner("honest").await);
    let name = |owner: &Owner| ApplicationIdentifier { app_id: owner.app_id.to_string() };
    // Their first calls show whose credentials these are.
    for owner in [&hostile, &honest] {
        network.manager().await.get_application(owner.sign(name(owner))).await.unwrap();
    }
    let flood = join_all((0..30).map(|_| endless_uplink(&network, &hostile)));
    let calls = async {
        for _ in 0..10 {
            network.manager().await.get_application(honest.sign(name(&honest))).await.unwrap();
        }
    };
    let (answers, ()) = tokio::join!(flood, calls);
    let count = |code| answers.iter().filter(|answer| answer.as_ref().is_err_and(|it| it.code() == code)).count();
    let (ran, refused) = (count(Code::InvalidArgument), count(Code::ResourceExhausted));
    assert!(ran >= 4 && refused > 0 && ran + refused == 30, "{ran} ran, {refused} were refused: {answers:?}");
    network.stack.stop().await;
}

/// All tasks run in the thread of this test, whose metrics are its own.
#[tokio::test]
async fn what_a_sandbox_used_is_charged_to_the_request() {
    let recorder = PrometheusBuilder::new().build_recorder();
    let _guard = metrics::set_default_local_recorder(&recorder);
    let charged = || fuel("handler", &recorder.handle().render());
    let network = Network::start().await;
    let owner = network.owner("owner").await;
    owner.add_device("dev").await;
    owner.set_functions([&format!("function Decoder() {{ {ENDLESS} }}"), "", ""]).await.unwrap();
    let fuel_max = network.stack.settings().sandbox.limits.fuel;

    let before = charged();
    assert!(before < fuel_max, "{before}");
    endless_uplink(&network, &owner).await.unwrap_err();
    let after_uplink = charged();
    assert!(after_uplink - before >= fuel_max, "a dry run cost {}", after_uplink - before);
    endless_downlink(&network, &owner).await.unwrap_err();
    let after_downlink = charged();
    assert!(after_downlink - after_uplink >= fuel_max, "a downlink cost {}", after_downlink - after_uplink);
    owner.simulate("dev", &[1], 1).await.unwrap();
    let after_all = charged();
    assert!(after_all - after_downlink >= fuel_max, "a simulated uplink cost {}", after_all - after_downlink);
    network.stack.stop().await;
}

#[tokio::test]
async fn loading_functions_is_charged_to_the_request() {
    let recorder = PrometheusBuilder::new().build_recorder();
    let _guard = metrics::set_default_local_recorder(&recorder);
    let charged = || fuel("handler", &recorder.handle().render());
    let network = Network::start().await;
    let owner = network.owner("owner").await;
    owner.add_device("dev").await;
    let load_fuel_max = network.stack.settings().sandbox.limits.load_fuel;

    // Each comment makes another source, which has to be loaded.
    let functions = |comment: &str| application(&owner, [&format!("{ENDLESS} // {comment}"), "function Encoder() {}"]);
    let before = charged();
    let message = DryUplinkMessage { payload: vec![1], app: Some(functions("uplink")), port: 1, ..Default::default() };
    network.manager().await.dry_uplink(owner.sign(message)).await.unwrap_err();
    let after_uplink = charged();
    assert!(after_uplink - before >= load_fuel_max, "a dry run cost {}", after_uplink - before);
    let app = Some(functions("downlink"));
    let message = DryDownlinkMessage { fields: "{}".to_owned(), app, port: 1, ..DryDownlinkMessage::default() };
    network.manager().await.dry_downlink(owner.sign(message)).await.unwrap_err();
    let after_downlink = charged();
    assert!(after_downlink - after_uplink >= load_fuel_max, "a downlink cost {}", after_downlink - after_uplink);
    owner.set_functions([&format!("{ENDLESS} // save"), "", ""]).await.unwrap_err();
    let after_save = charged();
    assert!(after_save - after_downlink >= load_fuel_max, "a save cost {}", after_save - after_downlink);
    network.stack.stop().await;
}

#[tokio::test]
async fn a_list_is_charged_by_the_entries_that_it_returns() {
    let recorder = PrometheusBuilder::new().build_recorder();
    let _guard = metrics::set_default_local_recorder(&recorder);
    let charged = || fuel("handler", &recorder.handle().render());
    let network = Network::start().await;
    let owner = network.owner("owner").await;
    for number in 0..20 {
        owner.add_device(&format!("dev-{number}")).await;
    }
    let list = async |limit: &str| {
        let before = charged();
        let mut request = owner.sign(ApplicationIdentifier { app_id: owner.app_id.to_string() });
        request.metadata_mut().insert("limit", limit.parse().unwrap());
        network.manager().await.get_devices_for_application(request).await.unwrap();
        charged() - before
    };
    let (one, twenty) = (list("1").await, list("20").await);
    assert!(twenty > one + 19 * 10_000, "one device cost {one}, twenty {twenty}");
    network.stack.stop().await;
}

#[tokio::test]
async fn what_account_and_discovery_return_is_charged() {
    let recorder = PrometheusBuilder::new().build_recorder();
    let _guard = metrics::set_default_local_recorder(&recorder);
    let network = Network::start().await;
    let owner = network.owner("owner").await;
    let account = AccountClient::new(&network.stack.settings().client.auth_server).unwrap();
    let session = owner.session(&account).await;
    let token = Credential::Token(session.clone());
    let handler: ComponentId = network.announcement().await.id.parse().unwrap();

    // The services call each other meanwhile, so the cheapest of several reads counts.
    let cheapest = async |service: &str| {
        let mut cheapest = u64::MAX;
        for _ in 0..5 {
            let before = fuel(service, &recorder.handle().render());
            match service {
                "account" => drop(account.applications(&token).await.unwrap()),
                _ => drop(network.discovery().get(ServiceName::Handler, &handler).await.unwrap()),
            }
            cheapest = cheapest.min(fuel(service, &recorder.handle().render()) - before);
        }
        cheapest
    };
    let before = [cheapest("account").await, cheapest("discovery").await];
    for number in 0..20 {
        let id: AppId = format!("another-app-{number}").parse().unwrap();
        let new = NewApplication { id: id.clone(), name: "Another".to_owned(), euis: vec![], access_keys: vec![] };
        account.create_application(&token, &new).await.unwrap();
        let of_application = account.restrict_token(&session, &[Scope::App(id.clone())]).await.unwrap();
        network.discovery().add_application(&Credential::Token(of_application), &handler, &id).await.unwrap();
    }
    let after = [cheapest("account").await, cheapest("discovery").await];
    assert!((0..2).all(|service| after[service] > before[service] + 20 * 10_000), "{before:?}, then {after:?}");
    network.stack.stop().await;
}
