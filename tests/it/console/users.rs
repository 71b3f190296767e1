//! The pages of users, for operators: who sees them, what they show, and that nothing in them is markup.

use api::rest::account::NewUser;
use client::account::AccountClient;
use types::Secret;

use super::{
    operator::{id_of, operated, start},
    visitor::Visitor,
};
use crate::harness::{Network, PASSWORD, printed};

const PATH: &str = "/console/operator/users";

/// A browser of somebody who is logged in.
async fn visitor(network: &Network, name: &str) -> Visitor {
    let visitor = Visitor::logged_in(&network.stack.settings().client.auth_server, name).await;
    visitor.get("/console").await;
    visitor
}

async fn register(network: &Network, name: &str, email: &str) {
    let account = AccountClient::new(&network.stack.settings().client.auth_server).unwrap();
    let (username, email) = (name.parse().unwrap(), email.to_owned());
    account.register_user(&NewUser { username, email, password: Secret::new(PASSWORD) }).await.unwrap();
}

// Conformance: console: users, for operators
#[tokio::test(flavor = "multi_thread")]
async fn operators_see_users_and_others_do_not_learn_of_the_pages() {
    let network = operated("").await;
    let bobby_id = id_of(&network, &network.owner("bobby").await).await;
    let (alice, bobby) = (visitor(&network, "alice").await, visitor(&network, "bobby").await);
    let one = format!("{PATH}/{bobby_id}");
    let page = alice.get(PATH).await;
    for part in ["alice@example.com", "bobby@example.com", &format!("href=\"{one}\">bobby</a>")] {
        assert!(page.status == 200 && page.html.contains(part), "{part}: {}", page.html);
    }
    assert!(alice.get("/console/operator").await.html.contains(&format!("href=\"{PATH}\"")));

    let unknown = bobby.get("/console/nothing").await.html;
    for path in [PATH, &one] {
        let page = bobby.get(path).await;
        assert_eq!((page.status, page.html), (404, unknown.clone()), "{path}");
        assert_eq!(bobby.post(path, &[]).await.status, 404, "{path}");
        assert_eq!(alice.post(path, &[]).await.status, 404, "{path}");
        let page = Visitor::new(&network.stack.settings().client.auth_server).get(path).await;
        assert!(page.path.starts_with("/users/login"), "{}", page.path);
        assert!(!page.html.contains("wants to act for you"), "the console is the same site: {}", page.html);
    }

    printed(&network.type_command(&["account", "users", "disable", "alice"], ""));
    assert!(alice.get(PATH).await.path.starts_with("/users/login"));
    network.stack.stop().await;
}

// Conformance: console: users, for operators
#[tokio::test(flavor = "multi_thread")]
async fn users_are_searched_and_their_addresses_are_no_markup() {
    let network = operated("").await;
    register(&network, "mallory", "<b>\u{202e}@example.org").await;
    let alice = visitor(&network, "alice").await;
    let page = alice.get(&format!("{PATH}?search=EXAMPLE.org")).await;
    assert!(page.html.contains(r"&#60;b&#62;\u202e@example.org"), "{}", page.html);
    assert!(!page.html.contains(['\u{202e}']) && !page.html.contains("<b>"), "{}", page.html);
    assert!(!page.html.contains("alice@example.com") && page.html.contains("address not confirmed"), "{}", page.html);

    let page = alice.get(&format!("{PATH}?after=alice")).await;
    assert!(page.html.contains("mallory") && !page.html.contains("alice@example.com"), "{}", page.html);
    assert!(page.html.contains(&format!("href=\"{PATH}\">All users</a>")), "{}", page.html);
    let page = alice.get(&format!("{PATH}?search=%3Cb%3Enobody")).await;
    assert!(page.html.contains("address of a user has “&#60;b&#62;nobody”"), "{}", page.html);
    let page = alice.get(&format!("{PATH}?search={}", "a".repeat(255))).await;
    assert!(page.html.contains("Invalid input") && page.html.contains("at most 254 bytes"), "{}", page.html);
    network.stack.stop().await;
}

// Conformance: console: users, for operators
#[tokio::test(flavor = "multi_thread")]
async fn a_user_is_shown_with_what_they_have_and_use() {
    let network = operated("").await;
    let bobby = id_of(&network, &network.owner("bobby").await).await;
    let alice = visitor(&network, "alice").await;
    // What is stored is counted after the start.
    let page = alice.until(&format!("{PATH}/{bobby}"), "<td>stored bytes</td>").await;
    for part in ["bobby@example.com", "<td>user bobby</td>", "bobby-app", ">enabled<", bobby.as_str()] {
        assert!(page.html.contains(part), "{part}: {}", page.html);
    }
    assert!(!page.html.contains("applications/bobby-app") && !page.html.contains("user alice"), "{}", page.html);
    let listed = alice.get(&format!("{PATH}?search=alice")).await.html;
    let (_, rest) = listed.split_once(&format!("{PATH}/")).unwrap();
    let own = alice.get(&format!("{PATH}/{}", &rest[..24])).await;
    assert!(own.html.contains("href=\"/console/applications/alice-app\""), "{}", own.html);

    printed(&network.type_command(&["account", "users", "disable", "bobby"], ""));
    assert!(alice.get(&format!("{PATH}/{bobby}")).await.html.contains(">disabled<"));
    for id in ["0102030405060708090a0b0c", "bobby", "%FF"] {
        assert_eq!(alice.get(&format!("{PATH}/{id}")).await.status, 404, "{id}");
    }
    network.stack.stop().await;
}

// Conformance: console: users, for operators
#[tokio::test]
async fn a_console_says_when_the_account_service_shows_it_no_users() {
    let (network, [alice, ..]) = start(None).await;
    let one = format!("{PATH}/0102030405060708090a0b0c");
    for path in [PATH, &one] {
        let page = alice.get(path).await;
        assert!(page.status == 200 && page.html.contains("Access denied"), "{}: {}", page.status, page.html);
        assert!(page.html.contains("account.operators") && !page.html.contains("@example.com"), "{}", page.html);
    }
    network.stack.stop().await;
    for path in [PATH, &one] {
        let page = alice.get(path).await;
        assert!(page.status == 200 && page.html.contains("Cannot reach the account service"), "{}", page.html);
    }
}
