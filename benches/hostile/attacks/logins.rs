//! Row 20: strangers guess passwords, from many addresses: each may try often before its limit is reached.

use crate::{attack::Attack, requests::Requests};

const CONNECTIONS: usize = 100;

pub(crate) const ATTACK: Attack = Attack {
    has_busy_neighbour: true,
    ..Attack::new(20, "wrong passwords from 100 addresses", |server| {
        let account = server.account;
        Box::pin(async move {
            let login = |number| request(&format!("user-{number}"), &format!("correct horse {number}"));
            Requests::new(account, CONNECTIONS, login).at_addresses(CONNECTIONS).attacker()
        })
    })
};

/// A login with a password.
pub(super) fn request(user: &str, password: &str) -> Vec<u8> {
    let body = format!("grant_type=password&username={user}&password={}", password.replace(' ', "+"));
    // `airlock:` in base64.
    format!(
        "POST /users/token HTTP/1.1\r\nhost: bench\r\nauthorization: Basic YWlybG9jazo=\r\n\
         content-type: application/x-www-form-urlencoded\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}
