//! Operator commands on the server's own store, and their effect on the service.

use std::{path::Path, process::Output};

use airlock::{
    serve::{Service, Stack},
    settings::Settings,
};
use api::rest::handler::LorawanDevice;
use client::account::{AccountClient, ClientCredentials};
use tempfile::TempDir;
use types::{Credential, Kind, Kinded, Secret};

use crate::harness::{Network, Owner, PASSWORD, airlock, complaint, device, environment, printed, run};

/// A server's data directory, which the account service and commands use.
struct Server(TempDir);

impl Server {
    fn new() -> Self {
        server::system::install_crypto();
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn try_type(&self, arguments: &[&str], input: &str) -> Output {
        run(
            airlock(self.path()).env("AIRLOCK_TELEMETRY__AUDIT_FILE", self.audit()).arg("account").args(arguments),
            input,
        )
    }

    fn typed(&self, arguments: &[&str]) -> String {
        printed(&self.try_type(arguments, PASSWORD))
    }

    fn audit(&self) -> std::path::PathBuf {
        self.path().join("audit.log")
    }

    async fn serve(&self) -> (Stack, AccountClient) {
        let settings = Settings::default().temporary(self.path());
        let stack = Stack::start(settings, Some(Service::Account), environment()).await.unwrap();
        let client = AccountClient::new(&stack.settings().client.auth_server).unwrap();
        (stack, client)
    }
}

async fn log_in(account: &AccountClient, client: &ClientCredentials, password: &str) -> client::Result<Secret> {
    let (username, password) = ("alice".parse().unwrap(), Secret::new(password));
    Ok(account.password_token(client, &username, &password, &[]).await?.access_token)
}

fn first_party() -> ClientCredentials {
    ClientCredentials { id: "airlock".parse().unwrap(), secret: Secret::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disabled_user_cannot_log_in() {
    let server = Server::new();
    server.typed(&["users", "create", "alice", "alice@example.com", "--password-stdin"]);
    let shown = server.typed(&["users", "show", "alice"]);
    assert!(shown.contains("alice@example.com") && shown.contains("Confirmed: yes"), "{shown}");
    let (stack, account) = server.serve().await;
    let token = log_in(&account, &first_party(), PASSWORD).await.unwrap();
    assert!(account.me(&Credential::Token(token)).await.unwrap().valid);
    stack.stop().await;

    server.typed(&["users", "disable", "alice"]);
    assert!(server.typed(&["users", "list"]).lines().any(|line| line.contains("alice") && line.contains("yes")));
    let (stack, account) = server.serve().await;
    log_in(&account, &first_party(), PASSWORD).await.unwrap_err();
    stack.stop().await;

    server.typed(&["users", "enable", "alice"]);
    let reset = ["users", "reset-password", "alice", "--password-stdin"];
    printed(&server.try_type(&reset, "staple battery horse\n"));
    let (stack, account) = server.serve().await;
    log_in(&account, &first_party(), PASSWORD).await.unwrap_err();
    log_in(&account, &first_party(), "staple battery horse").await.unwrap();
    stack.stop().await;
}

// Conformance: Clients are registered with the operator
#[tokio::test(flavor = "multi_thread")]
async fn registers_approves_rejects_and_deletes_a_client() {
    let server = Server::new();
    server.typed(&["users", "create", "alice", "alice@example.com", "--password-stdin"]);
    let register = ["clients", "register", "my-tool", "--scope", "apps", "--scope", "profile", "--first-party"];
    let secret = server.typed(&register).lines().last().unwrap().to_owned();
    assert_eq!(secret.len(), 43, "{secret}");
    let listed = server.typed(&["clients", "list"]);
    assert!(listed.contains("my-tool") && listed.contains("ttnctl") && !listed.contains(&secret), "{listed}");
    let credentials = ClientCredentials { id: "my-tool".parse().unwrap(), secret: Secret::new(secret) };
    let declined = server.try_type(&["clients", "remove", "my-tool"], "no\n");
    assert!(complaint(&declined).contains("use --yes"), "{declined:?}");
    let remove = ["remove", "--yes"];
    for (command, comes) in [(&["approve"][..], true), (&["reject"], false), (&["approve"], true), (&remove, false)] {
        server.typed(&[&["clients"], command, &["my-tool"]].concat());
        let (stack, account) = server.serve().await;
        assert_eq!(log_in(&account, &credentials, PASSWORD).await.is_ok(), comes, "{command:?}");
        stack.stop().await;
    }
    let taken = server.try_type(&register, "");
    assert!(complaint(&taken).contains("taken"), "{taken:?}");
}

#[test]
fn issues_component_tokens_and_rotates_keys() {
    let server = Server::new();
    let token = server.typed(&["components", "token", "router", "my-router"]);
    assert_eq!(token.trim().split('.').count(), 3, "{token}");
    let listed = server.typed(&["components", "list"]);
    assert!(listed.contains("router") && listed.contains("my-router"), "{listed}");
    let refused = server.try_type(&["components", "token", "broker", "my-router"], "");
    assert!(complaint(&refused).contains("taken"), "{refused:?}");
    let keys = || server.typed(&["keys", "list"]).lines().count() - 1;
    assert_eq!(keys(), 1);
    let rotated = server.try_type(&["keys", "rotate"], "");
    printed(&rotated);
    assert!(String::from_utf8_lossy(&rotated.stderr).contains("signing key rotated"), "{rotated:?}");
    assert_eq!(keys(), 2);
    assert!(complaint(&server.try_type(&["keys", "rotate"], "")).contains("the next signing key is not in use yet"));
    let declined = server.try_type(&["keys", "rotate", "--at-once"], "no\n");
    assert!(complaint(&declined).contains("use --yes") && keys() == 2, "{declined:?}");
    server.typed(&["keys", "rotate", "--at-once", "--yes"]);
    assert_eq!(keys(), 1);
    let audit = std::fs::read_to_string(server.audit()).unwrap();
    assert_eq!(audit.matches("signing key rotated").count(), 2, "{audit}");
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_work_while_the_server_runs() {
    let server = Server::new();
    let (stack, account) = server.serve().await;
    let type_beside = |arguments: &'static [&str]| tokio::task::block_in_place(|| server.typed(arguments));
    type_beside(&["users", "create", "alice", "alice@example.com", "--password-stdin"]);
    let token = log_in(&account, &first_party(), PASSWORD).await.unwrap();
    type_beside(&["keys", "rotate"]);
    assert_eq!(type_beside(&["keys", "list"]).lines().count(), 3);
    assert!(account.me(&Credential::Token(token.clone())).await.unwrap().valid, "tokens of the older key go on");
    type_beside(&["users", "disable", "alice"]);
    log_in(&account, &first_party(), PASSWORD).await.unwrap_err();
    account.me(&Credential::Token(token)).await.unwrap_err();
    stack.stop().await;

    let (stack, account) = server.serve().await;
    type_beside(&["users", "enable", "alice"]);
    log_in(&account, &first_party(), PASSWORD).await.unwrap();
    stack.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_name_their_reason() {
    let server = Server::new();
    for (arguments, code, reason) in [
        (&["users", "show", "nobody"][..], 3, "`nobody` not found"),
        (&["users", "create", "bob", "no address", "--password-stdin"], 2, "email not valid"),
        (&["clients", "approve", "no-client"], 3, "`no-client` not found"),
        (&["clients", "register", "mine", "--scope", "apps:my-app"], 2, "scope not valid"),
        (&["clients", "register", "mine", "--scope", "apps", "--redirect-uri", "javascript://x"], 2, "uri not valid"),
        (&["components", "token", "gateway", "x1"], 2, "gateway"),
    ] {
        let output = server.try_type(arguments, PASSWORD);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}");
        assert!(complaint(&output).contains(reason), "{arguments:?}: {output:?}");
    }
    // A server that could not serve its store.
    let (stack, _) = server.serve().await;
    std::fs::remove_file(server.path().join("airlock.sock")).unwrap();
    let complaint = complaint(&server.try_type(&["users", "list"], ""));
    assert!(complaint.contains("already running") && complaint.contains("use Redis"), "{complaint}");
    stack.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn euis_that_somebody_else_registered_can_be_released() {
    let network = Network::start().await;
    let (squatter, rightful) = (network.owner("squatter").await, network.owner("rightful").await);
    let register = async |owner: &Owner| {
        let mut device = device(&owner.app_id, "dev");
        let (app_eui, dev_eui) = ("70B3D57ED0000001".parse().unwrap(), "0102030405060708".parse().unwrap());
        let lorawan = device.lorawan_device.take().unwrap();
        device.lorawan_device = Some(LorawanDevice { app_eui, dev_eui, ..lorawan });
        owner.handler.set_device(device.into()).await
    };
    let type_euis = |verb: &str, input| {
        network.type_command(&["handler", "euis", verb, "70B3D57ED0000001", "0102030405060708"], input)
    };
    let euis = |verb: &str| printed(&type_euis(verb, "yes\n"));
    assert!(euis("show").contains("Nobody"));
    register(&squatter).await.unwrap();
    assert_eq!(register(&rightful).await.unwrap_err().kind(), Kind::AlreadyExists);
    let holder = euis("show");
    assert!(holder.contains("Application: squatter-app\n") && holder.contains("Device: dev\n"), "{holder}");
    let declined = type_euis("release", "no\n");
    assert!(complaint(&declined).contains("use --yes") && euis("show").contains("squatter-app"), "{declined:?}");
    assert!(euis("release").contains("Deleted device dev of application squatter-app"));
    assert!(euis("show").contains("Nobody"));
    register(&rightful).await.unwrap();
    assert!(euis("show").contains("rightful-app"));
    network.stack.stop().await;
}
