//! The pages of applications: everything that can be done there.

use super::Browser;
use crate::service::Service;

const PAGE: &str = "/my/applications/my-app";

#[tokio::test]
async fn an_application_is_created_renamed_deleted_and_restored() {
    let service = Service::start().await;
    let mut alice = Browser::of_user(&service, "alice").await;
    assert!(alice.get("/my/applications").await.has(".empty"));
    let page = alice.submit("/my/applications", &[("id", "my-app"), ("name", "Weather & <b>wind")]).await;
    assert_eq!(page.text("h1"), "my-app");
    assert!(page.text(".facts").contains("Weather & <b>wind") && !page.has("main b"));
    assert_eq!(page.text("code.value").len(), 16, "it has an EUI");
    assert!(alice.get("/my/applications").await.has(&format!("main a[href='{PAGE}']")));
    assert!(alice.submit(PAGE, &[("name", "Wind")]).await.text(".facts").contains("Wind"));
    let question = alice.get(&format!("{PAGE}/delete")).await;
    assert_eq!(question.text("h1"), "Delete application my-app?");
    let list = alice.submit(&format!("{PAGE}/delete"), &[]).await;
    assert!(list.has(".empty") && list.has(&format!("form[action='{PAGE}/restore']")));
    assert_eq!(alice.get(PAGE).await.status, 404);
    assert_eq!(alice.submit(&format!("{PAGE}/restore"), &[]).await.text("h1"), "my-app");
}

#[tokio::test]
async fn euis_are_assigned_or_given_and_can_be_removed() {
    let service = Service::start().await;
    let mut alice = Browser::of_user(&service, "alice").await;
    alice.post("/my/applications", &[("id", "my-app"), ("name", "")]).await;
    let euis = format!("{PAGE}/euis");
    alice.post(&euis, &[("eui", "")]).await;
    let page = alice.submit(&euis, &[("eui", "70b3d57ed0000001")]).await;
    assert_eq!(page.all("code.value").len(), 3);
    assert!(page.text("main").contains("70B3D57ED0000001"));
    let remove = format!("{euis}/70B3D57ED0000001/remove");
    assert!(alice.get(&remove).await.text("h1").contains("70B3D57ED0000001"));
    assert_eq!(alice.submit(&remove, &[]).await.all("code.value").len(), 2);
}

#[tokio::test]
async fn an_access_key_is_created_used_and_deleted() {
    let service = Service::start().await;
    let mut alice = Browser::of_user(&service, "alice").await;
    alice.post("/my/applications", &[("id", "my-app"), ("name", "")]).await;
    let fields = [("key_name", "../<b>odd?"), ("rights", "devices"), ("rights", "messages:up:r")];
    let page = alice.submit(&format!("{PAGE}/access-keys"), &fields).await;
    let keys: Vec<_> = page.all(".copy input").iter().map(|field| field.attr("value").unwrap().to_owned()).collect();
    assert_eq!(keys.len(), 2, "the default key and ours");
    let rights = async |key: &str| service.get("/api/v2/applications/my-app/rights", &format!("Key {key}")).await;
    assert_eq!(rights(&keys[1]).await.json(), serde_json::json!(["messages:up:r", "devices"]));
    let remove = page.all("a.danger[href*='/access-keys/']")[1].attr("href").unwrap().to_owned();
    assert!(alice.get(&remove).await.text("h1").contains("../<b>odd?"));
    assert_eq!(alice.submit(&remove, &[]).await.all(".copy input").len(), 1);
    assert_eq!(rights(&keys[1]).await.status, 401);
    assert_eq!(alice.get(&remove).await.status, 404);
}

#[tokio::test]
async fn collaborators_see_and_do_what_their_rights_allow() {
    let service = Service::start().await;
    let mut alice = Browser::of_user(&service, "alice").await;
    let mut bob = Browser::of_user(&service, "bob").await;
    alice.post("/my/applications", &[("id", "my-app"), ("name", "")]).await;
    let people = format!("{PAGE}/collaborators");
    let added = alice.submit(&people, &[("username", "bob"), ("rights", "devices")]).await;
    assert!(added.text("main").contains("bob@example.com"));
    let page = bob.get(PAGE).await;
    page.check(PAGE);
    assert!(!page.has("#keys-heading, #collaborators-heading, #name-heading, #delete-heading"));
    let dangers: Vec<_> = page.all(".danger").iter().map(|link| link.attr("href").unwrap()).collect();
    assert_eq!(dangers, [format!("{people}/bob/remove")], "everybody can leave");
    assert_eq!(bob.get(&people).await.status, 403);
    alice.post(&format!("{people}/bob"), &[("rights", "collaborators"), ("rights", "devices")]).await;
    let page = bob.get(&people).await;
    let open: Vec<_> =
        page.all("[name=rights]:not([disabled])").iter().map(|tick| tick.attr("value").unwrap()).collect();
    assert_eq!(open, ["collaborators", "devices"], "nobody gives what they do not have");
    assert_eq!(alice.get(&format!("{people}/bob")).await.all("[checked]").len(), 2);
    let gone = alice.submit(&format!("{people}/bob/remove"), &[]).await;
    assert!(!gone.text("main").contains("bob@example.com"));
    assert_eq!(bob.get(PAGE).await.status, 404);
}

#[tokio::test]
async fn removing_your_own_rights_redirects_to_what_you_may_see() {
    let service = Service::start().await;
    let mut alice = Browser::of_user(&service, "alice").await;
    let mut bob = Browser::of_user(&service, "bob").await;
    alice.post("/my/applications", &[("id", "my-app"), ("name", "")]).await;
    let people = format!("{PAGE}/collaborators");
    alice.post(&people, &[("username", "bob"), ("rights", "collaborators")]).await;
    let place = bob.post(&format!("{people}/bob/remove"), &[]).await.place();
    assert_eq!(place, "/my/applications?done=collaborator-removed");
}
