//! E-mail confirmation, over a real SMTP conversation.

use airlock_account::{MailSettings, Settings};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
    sync::mpsc,
};
use types::Secret;

use crate::service::{PASSWORD, Service};

pub(crate) struct Sink {
    url: String,
    mails: mpsc::UnboundedReceiver<String>,
}

impl Sink {
    pub(crate) async fn start(refused: usize) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("smtp://{}", listener.local_addr().unwrap());
        let (taken, mails) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            let mut refused = refused;
            while let Ok((stream, _)) = listener.accept().await {
                if let Some(mail) = converse(stream, &mut refused).await {
                    let _ = taken.send(mail);
                }
            }
        });
        Self { url, mails }
    }

    /// The text of the next mail, with unfolded lines, and the link in it.
    pub(crate) async fn next(&mut self) -> (String, String) {
        let text = self.mails.recv().await.unwrap().replace("=\r\n", "").replace("=3D", "=");
        let link = text.lines().find(|line| line.starts_with("http")).unwrap_or_else(|| panic!("{text}")).to_owned();
        (text, link)
    }
}

async fn converse(stream: TcpStream, refused: &mut usize) -> Option<String> {
    let mut stream = BufReader::new(stream);
    let (mut mail, mut in_mail) = (String::new(), false);
    stream.write_all(b"220 sink ESMTP\r\n").await.ok()?;
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).await.ok()? == 0 {
            return None;
        }
        if in_mail && line != ".\r\n" {
            mail.push_str(&line);
            continue;
        }
        let (response, done) = match line.split([' ', '\r']).next().unwrap() {
            "." => ("250 taken\r\n", true),
            "EHLO" => ("250 sink\r\n", false),
            "MAIL" if *refused > 0 => {
                *refused -= 1;
                ("451 later\r\n", false)
            }
            "DATA" => {
                in_mail = true;
                ("354 go on\r\n", false)
            }
            "QUIT" => return None,
            _ => ("250 ok\r\n", false),
        };
        stream.write_all(response.as_bytes()).await.ok()?;
        if done {
            return Some(mail);
        }
    }
}

pub(crate) fn settings(sink: &Sink) -> Settings {
    let mail = MailSettings { url: Secret::new(&*sink.url), from: "Airlock <airlock@example.com>".to_owned() };
    let public_url = Some("https://account.example.com".parse().unwrap());
    Settings { mail: Some(mail), public_url, ..Settings::default() }
}

async fn follow(service: &Service, link: &str) -> u16 {
    let path = link.strip_prefix("https://account.example.com").unwrap_or_else(|| panic!("{link}"));
    service.get(path, "").await.status.as_u16()
}

#[tokio::test]
async fn a_new_user_confirms_the_address_with_the_mailed_link() {
    let mut sink = Sink::start(0).await;
    let service = Service::start_with(settings(&sink)).await;
    let body = json!({"username": "alice", "email": "alice@example.com", "password": PASSWORD});
    let request = service.request("POST", "/api/v2/users", "").header("x-forwarded-host", "evil.example").json(&body);
    assert_eq!(request.send().await.unwrap().status(), 201);
    let (text, link) = sink.next().await;
    assert!(
        text.contains("To: alice@example.com") && text.contains("From: \"Airlock\" <airlock@example.com>")
            || text.contains("From: Airlock <airlock@example.com>"),
        "{text}"
    );
    assert!(!text.contains("evil"), "{text}");
    let token = service.general("alice").await;
    let valid = async || service.get("/api/v2/users/me", &token).await.json()["valid"].clone();
    assert_eq!(valid().await, json!(false));
    let (start, code) = link.split_at(link.find('?').unwrap() - 4);
    assert_eq!(follow(&service, &format!("{start}AAAA{}", &code[4..])).await, 400, "a forged link");
    assert_eq!(valid().await, json!(false));
    assert_eq!(follow(&service, &link).await, 200);
    assert_eq!(valid().await, json!(true));
    assert_eq!(follow(&service, &link).await, 200, "twice does no harm");
}

#[tokio::test]
async fn a_link_confirms_only_its_address_for_a_week() {
    let mut sink = Sink::start(0).await;
    let service = Service::start_with(settings(&sink)).await;
    let token = service.user("alice").await;
    let old = sink.next().await.1;
    let change = json!({"email": "other@example.com"});
    assert_eq!(service.call("PATCH", "/api/v2/users/me", &token, change).await.status, 204);
    let (text, new) = sink.next().await;
    assert!(text.contains("To: other@example.com"), "{text}");
    assert_eq!(follow(&service, &old).await, 400);
    service.pass(7 * 24 * 3600);
    assert_eq!(follow(&service, &new).await, 400);
    let token = service.general("alice").await;
    let again = async || service.post("/api/v2/users/me/emails/validate_email", &token, Value::Null).await;
    assert_eq!(again().await.status, 204);
    assert_eq!(follow(&service, &sink.next().await.1).await, 200);
    assert_eq!(again().await.status, 204, "nothing is left to confirm, and nothing is sent");
}

#[tokio::test]
async fn repeated_requests_for_mails_are_rate_limited() {
    let sink = Sink::start(0).await;
    let service = Service::start_with(settings(&sink)).await;
    let token = service.user("alice").await;
    let mut statuses = Vec::new();
    for _ in 0..4 {
        let response = service.post("/api/v2/users/me/emails/validate_email", &token, Value::Null).await;
        statuses.push(response.status.as_u16());
    }
    assert_eq!(statuses, [204, 204, 204, 429]);
    assert_eq!(service.post("/api/v2/users/me/emails/validate_email", "", Value::Null).await.status, 401);
}

#[tokio::test]
async fn retries_after_a_temporary_error_of_the_mail_server() {
    let mut sink = Sink::start(1).await;
    let service = Service::start_with(settings(&sink)).await;
    service.user("alice").await;
    assert_eq!(follow(&service, &sink.next().await.1).await, 200);
}

#[tokio::test]
async fn refuses_invalid_mail_settings_at_startup() {
    let sink = Sink::start(0).await;
    let good = settings(&sink).mail.unwrap();
    for (url, from) in [("no address", &*good.from), ("http://example.com", &good.from), (&sink.url, "nobody")] {
        let mail = Some(MailSettings { url: Secret::new(url), from: from.to_owned() });
        let opened = Service::try_open(Settings { mail, ..Settings::default() }).await;
        assert!(opened.unwrap_err().to_string().contains("account.mail"), "{url} {from}");
    }
}
