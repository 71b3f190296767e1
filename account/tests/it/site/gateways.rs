//! The pages of gateways: everything that can be done there.

use super::Browser;
use crate::service::Service;

const PAGE: &str = "/my/gateways/my-gw";

#[tokio::test]
async fn a_gateway_is_created_changed_and_deleted() {
    let service = Service::start().await;
    let mut alice = Browser::of_user(&service, "alice").await;
    let fields = [("id", "my-gw"), ("frequency_plan", "US_902_928"), ("description", "On the <roof>")];
    let page = alice.submit("/my/gateways", &fields).await;
    assert_eq!((page.text("h1"), page.value("#description")), ("my-gw".to_owned(), "On the <roof>"));
    let key = page.value(".copy input").to_owned();
    assert_eq!(service.get("/api/v2/gateways/my-gw", &format!("Key {key}")).await.json()["key"], key);
    assert!(alice.get("/my/gateways").await.text("main").contains("Activated"));
    let fields = [
        ("frequency_plan", "EU_863_870"),
        ("latitude", "52.5"),
        ("longitude", "-4.25"),
        ("altitude", "12"),
        ("placement", "outdoor"),
        ("brand", "Acme"),
        ("status_public", "yes"),
    ];
    let page = alice.submit(PAGE, &fields).await;
    let values = ["latitude", "longitude", "altitude", "brand", "description"].map(|id| page.value(&format!("#{id}")));
    assert_eq!(values, ["52.5", "-4.25", "12", "Acme", ""]);
    assert!(
        page.has("#placement [selected][value=outdoor]") && page.has("#frequency_plan [selected][value=EU_863_870]")
    );
    let ticked: Vec<_> = page.all("[checked]").iter().map(|tick| tick.attr("id").unwrap()).collect();
    assert_eq!(ticked, ["status_public"]);
    assert!(alice.get(&format!("{PAGE}/delete")).await.text("main").contains("cannot be undone"));
    assert!(alice.submit(&format!("{PAGE}/delete"), &[]).await.has(".empty"));
    assert_eq!(alice.get(PAGE).await.status, 404);
}

#[tokio::test]
async fn hides_the_exact_location_without_the_right() {
    let service = Service::start().await;
    let mut alice = Browser::of_user(&service, "alice").await;
    let mut bob = Browser::of_user(&service, "bob").await;
    let place = [("latitude", "52.52"), ("longitude", "13.405")];
    let fields = [[("id", "my-gw"), ("frequency_plan", "EU_863_870")], place].concat();
    alice.post("/my/gateways", &fields).await;
    let people = format!("{PAGE}/collaborators");
    alice.post(&people, &[("username", "bob"), ("rights", "gateway:settings")]).await;
    let page = bob.get(PAGE).await;
    page.check(PAGE);
    assert_eq!((page.value("#latitude"), page.has("#key-heading")), ("", false));
    assert!(!["location", "status", "owner"].iter().any(|what| page.has(&format!("#{what}_public"))));
    alice.post(PAGE, &[("frequency_plan", "EU_863_870"), ("status_public", "yes")]).await;
    bob.post(PAGE, &[("frequency_plan", "EU_863_870"), ("latitude", ""), ("longitude", "")]).await;
    assert_eq!(alice.get(PAGE).await.value("#latitude"), "52.52", "empty fields change nothing");
    assert!(alice.get(PAGE).await.has("#status_public[checked]"), "a box that is not there changes nothing");
}
