//! `airlock gateways …`, at a running network.

use super::Desk;

#[tokio::test(flavor = "multi_thread")]
async fn manages_gateways_and_collaborators() {
    let desk = Desk::set().await;
    assert!(desk.typed(&["gateways", "list"]).contains("airlock gateways register"));
    desk.typed(&["gateways", "register", "gw-1", "EU_863_870", "-52.5,4.25"]);
    assert!(desk.refused(&["gateways", "register", "gw-1", "EU_863_870"], "").1.contains("gw-1"));
    assert!(desk.typed(&["gateways", "list"]).contains("(-52.5, 4.25, 0)"));
    desk.typed(&[
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
    let info = desk.typed(&["gateways", "info", "gw-1"]);
    for expected in
        ["On the roof", "(52.5, 4.25, 30)", "Location Public: yes", "Status Public: no", "US_902_928", "Owner: alice"]
    {
        assert!(info.contains(expected), "{expected}: {info}");
    }
    assert!(desk.refused(&["gateways", "edit", "gw-1"], "").1.contains("nothing to change"));
    desk.typed(&["gateways", "collaborators", "add", "gw-1", "bob", "gateway:status"]);
    assert!(desk.typed(&["gateways", "info", "gw-1"]).contains("bob"));
    desk.typed(&["gateways", "collaborators", "delete", "gw-1", "bob"]);
    assert!(!desk.typed(&["gateways", "info", "gw-1"]).contains("bob"));
    assert!(desk.answered(&["gateways", "delete", "gw-1"], "no\n").contains("Not doing anything"));
    desk.answered(&["gateways", "delete", "gw-1"], "y\n");
    assert!(!desk.typed(&["gateways", "list"]).contains("gw-1"));
    desk.network.stack.stop().await;
}
