//! Receives an authorization code from a browser on this machine (RFC 8252, section 7.3).

use std::{net::Ipv4Addr, time::Duration};

use anyhow::{Context, bail};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
    time::timeout,
};
use types::Secret;
use url::Url;

const PATH: &str = "/oauth/callback";
/// Time for the user to log in and to consent. A code expires sooner.
const WAIT: Duration = Duration::from_secs(10 * 60);
/// Time for a connection to send its request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum length of a request line, in bytes.
const LINE_BYTES_MAX: u64 = 8 << 10;

/// Listens for the redirect of one login.
pub(super) struct Loopback {
    listener: TcpListener,
    base: Url,
    state: String,
}

impl Loopback {
    /// `state` is sent along, and tells this login's redirect from others.
    pub(super) async fn listen(state: String) -> anyhow::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.context("cannot listen for the browser")?;
        let base = Url::parse(&format!("http://{}", listener.local_addr()?))?;
        Ok(Self { listener, base, state })
    }

    pub(super) fn redirect_uri(&self) -> String {
        format!("{}{}", self.base.as_str().trim_end_matches('/'), PATH)
    }

    /// Adds what comes back with the redirect to the URL of the authorization.
    pub(super) fn add_state(&self, url: &mut Url) {
        url.query_pairs_mut().append_pair("state", &self.state);
    }

    /// Waits for the redirect with the code.
    pub(super) async fn code(self) -> anyhow::Result<Secret> {
        let redirect = async {
            loop {
                let (mut connection, _) = self.listener.accept().await.context("cannot listen for the browser")?;
                // Whatever else connects does not end the login.
                let Ok(Some(url)) = timeout(REQUEST_TIMEOUT, self.request(&mut connection)).await else { continue };
                let answer = self.answer(&url);
                let page = match &answer {
                    None => ("404 Not Found", "There is nothing here."),
                    Some(Ok(_)) => ("200 OK", "You are logged in. You can close this page."),
                    Some(Err(_)) => {
                        ("400 Bad Request", "The login failed; the terminal says why. You can close this page.")
                    }
                };
                // Without the page the user is logged in all the same.
                _ = timeout(REQUEST_TIMEOUT, respond(&mut connection, page)).await;
                if let Some(answer) = answer {
                    return answer;
                }
            }
        };
        timeout(WAIT, redirect).await.context("nobody logged in within 10 minutes: run the command again")?
    }

    /// The URL that a request is for.
    async fn request(&self, connection: &mut TcpStream) -> Option<Url> {
        let mut line = String::new();
        BufReader::new(connection.take(LINE_BYTES_MAX)).read_line(&mut line).await.ok()?;
        let target = line.strip_prefix("GET ")?.split(' ').next()?;
        self.base.join(target).ok().filter(|url| url.origin() == self.base.origin())
    }

    /// Returns the code or the error of a redirect; `None` if it does not belong to this login.
    fn answer(&self, url: &Url) -> Option<anyhow::Result<Secret>> {
        let parameter = |wanted: &str| url.query_pairs().find(|(name, _)| name == wanted).map(|(_, value)| value);
        if url.path() != PATH || parameter("state")? != self.state.as_str() {
            return None;
        }
        Some(match (parameter("code"), parameter("error")) {
            (Some(code), _) => Ok(Secret::new(&*code)),
            (None, Some(error)) if error == "access_denied" => refused(),
            (None, error) => {
                Err(anyhow::anyhow!("the account service did not log you in: {}", error.unwrap_or_default()))
            }
        })
    }
}

fn refused() -> anyhow::Result<Secret> {
    bail!("you did not authorize this program, so you are not logged in")
}

async fn respond(connection: &mut TcpStream, (status, text): (&str, &str)) -> std::io::Result<()> {
    let body = format!("<!doctype html><html lang=en><title>Airlock</title><p>{text}</p></html>\n");
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/html; charset=utf-8\r\ncontent-length: {}\r\n\
         cache-control: no-store\r\nreferrer-policy: no-referrer\r\nconnection: close\r\n\r\n",
        body.len()
    );
    connection.write_all(head.as_bytes()).await?;
    connection.write_all(body.as_bytes()).await?;
    connection.shutdown().await
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn get(uri: &str, target: &str) -> String {
        let address = Url::parse(uri).unwrap().socket_addrs(|| None).unwrap()[0];
        let mut connection = TcpStream::connect(address).await.unwrap();
        connection.write_all(format!("GET {target} HTTP/1.1\r\nhost: x\r\n\r\n").as_bytes()).await.unwrap();
        let mut page = String::new();
        // A connection may be reset, since the rest of the request is not read.
        _ = connection.read_to_string(&mut page).await;
        page
    }

    #[tokio::test]
    async fn only_the_redirect_of_this_login_ends_it() {
        let loopback = Loopback::listen("mine".to_owned()).await.unwrap();
        let uri = loopback.redirect_uri();
        let login = tokio::spawn(loopback.code());
        for other in [
            "/",
            "/oauth/callback",
            "/oauth/callback?code=c1&state=other",
            "//evil.com/oauth/callback?code=c1&state=mine",
        ] {
            assert!(!get(&uri, other).await.contains("You are logged in"), "{other}");
        }
        get(&uri, "/oauth/callback?code=c2&state=mine").await;
        assert_eq!(login.await.unwrap().unwrap(), Secret::new("c2"));
    }

    #[tokio::test]
    async fn a_refusal_is_an_error() {
        for (error, expected) in [("access_denied", "did not authorize"), ("server_error", "server_error")] {
            let loopback = Loopback::listen("mine".to_owned()).await.unwrap();
            let uri = loopback.redirect_uri();
            let login = tokio::spawn(loopback.code());
            get(&uri, &format!("/oauth/callback?error={error}&state=mine")).await;
            let error = login.await.unwrap().unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
