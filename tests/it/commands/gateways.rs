//! `airlock gateways …`.

use api::rest::account::{GatewayUpdate, NewGateway};
use client::account::AccountClient;
use types::Credential;

use super::{CommandLine, names_user};

// Conformance: gateways: register, list, info, edit, delete, collaborators
#[tokio::test(flavor = "multi_thread")]
async fn manages_gateways_and_collaborators() {
    let line = CommandLine::start().await;
    assert!(line.typed(&["gateways", "list"]).contains("airlock gateways register"));
    line.typed(&["gateways", "register", "gw-1", "EU_863_870", "-52.5,4.25"]);
    let with_router = ["--router-id", "no-router", "gateways", "register", "gw-2", "EU_863_870"];
    assert!(line.refused(&with_router, "").1.contains("the id of a router of this network"));
    assert!(line.refused(&["gateways", "register", "gw-1", "EU_863_870"], "").1.contains("gw-1"));
    assert!(line.typed(&["gateways", "list"]).contains("(-52.5, 4.25, 0)"));
    line.typed(&[
        "gateways",
        "edit",
        "gw-1",
        "--description",
        "On the roof",
        "--brand",
        "Brand",
        "--antenna-model",
        "Long",
        "--location",
        "52.5,4.25,30",
        "--location-public",
        "--owner-private",
        "--frequency-plan",
        "US_902_928",
    ]);
    let info = line.typed(&["gateways", "info", "gw-1"]);
    for expected in
        ["On the roof", "(52.5, 4.25, 30)", "Location Public: yes", "Status Public: no", "US_902_928", "Owner: alice"]
    {
        assert!(info.contains(expected), "{expected}: {info}");
    }
    assert!(line.refused(&["gateways", "edit", "gw-1"], "").1.contains("nothing to change"));
    line.typed(&["gateways", "collaborators", "add", "gw-1", "bob", "gateway:status"]);
    assert!(names_user(&line.typed(&["gateways", "info", "gw-1"]), "bob"));
    line.typed(&["gateways", "collaborators", "delete", "gw-1", "bob"]);
    let info = line.typed(&["gateways", "info", "gw-1"]);
    assert!(!names_user(&info, "bob"), "{info}");
    assert!(line.refused(&["gateways", "delete", "gw-1"], "no\n").1.contains("cancelled"));
    line.run_with_input(&["gateways", "delete", "gw-1"], "y\n");
    assert!(!line.typed(&["gateways", "list"]).contains("gw-1"));
    line.network.stack.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn shows_the_public_part_of_a_foreign_gateway() {
    let line = CommandLine::start().await;
    let other = line.network.owner("carol").await;
    let account = AccountClient::new(&line.network.stack.settings().client.auth_server).unwrap();
    let general = other.session(&account).await;
    let frequency_plan = Some("EU_863_870".to_owned());
    let settings = GatewayUpdate { frequency_plan, ..GatewayUpdate::default() };
    let new = NewGateway { id: "foreign".parse().unwrap(), settings };
    let key = account.create_gateway(&Credential::Token(general), &new).await.unwrap().key.unwrap();
    let info = line.typed(&["gateways", "info", "foreign"]);
    assert!(info.contains("foreign") && info.contains("EU_863_870"), "{info}");
    assert!(!info.contains(&String::from(key)) && !info.contains("carol"), "{info}");
    assert!(line.refused(&["gateways", "info", "no-gw"], "").1.contains("no-gw"));
    line.network.stack.stop().await;
}
