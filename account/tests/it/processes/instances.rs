//! Several instances on one Redis, each in its own process: changes on one are visible on the others at once.

use std::{
    io::{BufRead, BufReader, Read},
    process::{Child, Command, Stdio},
};

use serde_json::{Value, json};

use crate::{
    oauth::authorize::session,
    service::{PASSWORD, Service, send},
};

const REDIS_URL: &str = "ACCOUNT_TEST_REDIS_URL";
/// The prefix of the line with its address.
const SERVES: &str = "serves at ";

struct Process(Child);

impl Process {
    fn start(redis_url: &str) -> (Self, String) {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "processes::instances::serves_until_killed", "--ignored", "--nocapture"]);
        let mut child = command.env(REDIS_URL, redis_url).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let process = Self(child);
        let address = lines.find_map(|line| Some(line.split_once(SERVES)?.1.to_owned()));
        (process, address.expect("the other process did not start"))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test]
#[ignore = "the process that the test below asks"]
async fn serves_until_killed() {
    let Some(url) = std::env::var_os(REDIS_URL) else { return };
    let service = Service::start_on(url.into_string().unwrap()).await;
    println!("{SERVES}{}", service.base);
    // Its input is closed when its parent ends for any reason.
    tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new())).await.unwrap().unwrap();
}

#[tokio::test]
async fn changes_on_one_instance_are_visible_on_the_other() {
    for one in Service::start_on_each_store().await {
        let Some(url) = one.redis_url() else { continue };
        let (_process, address) = Process::start(&url);
        // Every request goes to the other process.
        let mut other = Service::start().await;
        other.base = address;
        let general = one.user("alice").await;
        assert_eq!(other.get("/api/v2/users/me", &general).await.json()["username"], "alice");
        let cookie = session(&one, "alice").await;
        let me = async |service: &Service| {
            send(service.request("GET", "/api/v2/users/me", "").header("cookie", &cookie)).await.status.as_u16()
        };
        assert_eq!((me(&one).await, me(&other).await), (200, 200), "who logged in at one is logged in");
        let mine = other.application(&general, "my-app").await;
        let key = one.key(&mine, "my-app", "reader", &["messages:up:r"]).await;
        let exchange = async |service: &Service| {
            let body = json!({"username": "my-app", "password": key});
            service.post("/api/v2/applications/token", "", body).await.status.as_u16()
        };
        assert_eq!((exchange(&one).await, exchange(&other).await), (200, 200));
        let path = "/applications/my-app/access-keys/reader";
        assert_eq!(one.call("DELETE", path, &mine, Value::Null).await.status, 204);
        assert_eq!((exchange(&one).await, exchange(&other).await), (401, 401), "what one deleted is gone");
        let logout = other.request("POST", "/users/logout", "").header("cookie", &cookie);
        assert_eq!(send(logout.header("sec-fetch-site", "same-origin")).await.status, 204);
        assert_eq!((me(&one).await, me(&other).await), (401, 401), "who logged out at one is logged out");
        for number in 0..18 {
            let service = if number % 2 == 0 { &one } else { &other };
            assert_eq!(service.login("alice", "wrong password", Value::Null).await.status, 400, "{number}");
        }
        for service in [&one, &other] {
            assert_eq!(service.login("alice", PASSWORD, Value::Null).await.status, 429, "they count together");
        }
    }
}
