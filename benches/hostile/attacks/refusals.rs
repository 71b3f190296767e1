//! Row 11: refused requests from many addresses, while a user logs in: the audit file must have each login.

use std::{
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use tokio::time::sleep;

use super::logins;
use crate::{
    attack::{Attack, attacker},
    requests::{Connection, Requests, request},
    server_process::PASSWORD,
};

const ADDRESSES: usize = 20;
/// As many as a user may do in a burst from one address, but for the one that creates the neighbour's application.
const LOGINS: usize = 19;

pub(crate) const ATTACK: Attack = Attack {
    settings: "telemetry.audit_file = '{dir}/audit.jsonl'\n",
    ..Attack::new(11, "refused requests from 20 addresses, beside logins", |server| {
        let (account, file) = (server.account, server.dir().join("audit.jsonl"));
        Box::pin(async move {
            let wrong = |number| {
                let key = format!("Key ttn-account-v2.{number:042}X");
                request("GET", "/applications/neighbour", &key, "")
            };
            let requests = Requests::new(account, ADDRESSES, wrong).at_addresses(ADDRESSES);
            attacker(move |end| attack(requests, account, file, end))
        })
    })
};

async fn attack(requests: Requests, account: std::net::SocketAddr, file: PathBuf, end: Instant) -> String {
    let attacking = tokio::spawn(requests.run_until(end));
    let before = logged_in(&file);
    let mut done = 0;
    for _ in 0..LOGINS {
        sleep(Duration::from_millis(200)).await;
        let login = logins::request("neighbour", PASSWORD);
        done += usize::from(Connection::new(account).send(&login, Duration::from_secs(10)).await == Some(200));
    }
    let statuses = attacking.await.unwrap();
    format!("{} of {done} logins of a neighbour in the audit file; {statuses}", logged_in(&file) - before)
}

/// Returns the number of logins in the audit file.
fn logged_in(file: &Path) -> usize {
    let text = fs::read_to_string(file).unwrap();
    text.lines().filter(|line| line.contains("\"event\":\"login\"")).count()
}
