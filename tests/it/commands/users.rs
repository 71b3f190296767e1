//! `airlock user list`.

use api::rest::account::NewUser;
use client::account::AccountClient;
use serde_json::Value;
use types::Secret;

use crate::{
    console::operator::operated,
    harness::{PASSWORD, complaint, printed},
};

/// A character that changes the direction of text, which an e-mail address may have.
const HOSTILE: &str = "mallory\u{202e}@example.org";

// Conformance: GET /users, GET /users/{user_id}: all users in pages with search, for operators
#[tokio::test(flavor = "multi_thread")]
async fn operators_list_users() {
    let network = operated("").await;
    let account = AccountClient::new(&network.stack.settings().client.auth_server).unwrap();
    for (name, email) in [("bobby", "bobby@example.com"), ("mallory", HOSTILE)] {
        let (username, email) = (name.parse().unwrap(), email.to_owned());
        account.register_user(&NewUser { username, email, password: Secret::new(PASSWORD) }).await.unwrap();
    }
    let log_in = |name| printed(&network.type_command(&["user", "login", name, "--password-stdin"], PASSWORD));
    log_in("bobby");
    let refused = network.type_command(&["user", "list"], "");
    assert_eq!(refused.status.code(), Some(4));
    assert!(complaint(&refused).contains("only operators can do this"), "{}", complaint(&refused));

    log_in("alice");
    let typed = |arguments: &[&str]| printed(&network.type_command(&[&["user", "list"][..], arguments].concat(), ""));
    let table = typed(&[]);
    assert_eq!(table.lines().count(), 4, "{table}");
    assert!(table.contains("alice@example.com") && table.contains("mallory"), "{table}");
    let json = typed(&["--output", "json", "--search", "EXAMPLE.com", "--after", "alice"]);
    let users: Value = serde_json::from_str(&json).unwrap();
    assert_eq!((users.as_array().unwrap().len(), &users[0]["username"]), (1, &Value::from("bobby")));
    assert_eq!((&users[0]["disabled"], users[0]["id"].as_str().unwrap().len()), (&Value::from(false), 24));
    for output in [table, typed(&["--output", "json", "--search", "mallory"])] {
        assert!(output.contains("mallory") && !output.contains('\u{202e}'), "{output}");
    }
    assert_eq!(typed(&["--quiet", "--search", "mallory"]), "mallory\n");
    assert_eq!(typed(&["--search", "nobody-like-this"]), "There are no such users\n");
    network.stack.stop().await;
}
